-- +goose Up

-- Times are microseconds since 1970, UTC.

-- What a cohort has decided: one row each, for ever. Its newest rollout is that of rollout_generation, the one before it
-- that of previous_generation. votes counts what was written to barrier_member and barrier_ballot: here nothing else tells
-- another process.
CREATE TABLE barrier_head (
    cohort               TEXT    NOT NULL PRIMARY KEY CHECK (cohort <> ''),
    revision             INTEGER NOT NULL CHECK (revision >= 0),
    votes                INTEGER NOT NULL DEFAULT 0,
    generation           INTEGER NOT NULL CHECK (generation >= 0),
    rollout_generation   INTEGER CHECK (rollout_generation > 0 AND rollout_generation <= generation),
    previous_generation  INTEGER CHECK (previous_generation > 0 AND previous_generation < rollout_generation),
    claim                INTEGER NOT NULL CHECK (claim >= 0),
    committed_generation INTEGER CHECK (committed_generation >= 0 AND committed_generation <= generation),
    committed_digest     TEXT    CHECK (committed_digest <> ''),
    committed_version    INTEGER CHECK (committed_version >= 0),
    roster_revision      INTEGER NOT NULL CHECK (roster_revision >= 0),
    CHECK ((committed_generation IS NULL) = (committed_digest IS NULL) AND (committed_digest IS NULL) = (committed_version IS NULL))
) STRICT, WITHOUT ROWID;

-- +goose StatementBegin
CREATE TRIGGER barrier_head_monotonic BEFORE UPDATE ON barrier_head WHEN NEW.cohort <> OLD.cohort OR NEW.revision < OLD.revision OR NEW.generation < OLD.generation OR NEW.claim < OLD.claim
  OR NEW.roster_revision < OLD.roster_revision
  OR OLD.rollout_generation IS NOT NULL
     AND (NEW.rollout_generation IS NULL OR NEW.rollout_generation < OLD.rollout_generation)
  OR OLD.committed_generation IS NOT NULL
     AND (NEW.committed_generation IS NULL OR NEW.committed_generation < OLD.committed_generation)
BEGIN
    SELECT RAISE(ABORT, 'barrier_head: nothing in it ever goes down');
END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER barrier_head_kept BEFORE DELETE ON barrier_head
BEGIN
    SELECT RAISE(ABORT, 'barrier_head: the row is never deleted');
END;
-- +goose StatementEnd

-- REPLACE deletes without firing the trigger on deletion; this one it does fire.
-- +goose StatementBegin
CREATE TRIGGER barrier_head_single BEFORE INSERT ON barrier_head WHEN EXISTS (SELECT 1 FROM barrier_head WHERE cohort = NEW.cohort)
BEGIN
    SELECT RAISE(ABORT, 'barrier_head: the row is there already');
END;
-- +goose StatementEnd

-- Who must agree to the next rollout.
CREATE TABLE barrier_roster (
    cohort TEXT NOT NULL,
    member TEXT NOT NULL CHECK (member <> ''),
    PRIMARY KEY (cohort, member)
) STRICT, WITHOUT ROWID;

-- The current process of each member that ever joined.
CREATE TABLE barrier_member (
    cohort      TEXT    NOT NULL,
    member      TEXT    NOT NULL CHECK (member <> ''),
    boot        TEXT    NOT NULL CHECK (boot <> ''),
    incarnation INTEGER NOT NULL CHECK (incarnation >= 1),
    joined      INTEGER NOT NULL CHECK (joined >= 0),
    PRIMARY KEY (cohort, member)
) STRICT, WITHOUT ROWID;

-- +goose StatementBegin
CREATE TRIGGER barrier_member_monotonic BEFORE UPDATE ON barrier_member WHEN NEW.cohort <> OLD.cohort OR NEW.member <> OLD.member OR NEW.incarnation <= OLD.incarnation OR NEW.joined < OLD.joined
BEGIN
    SELECT RAISE(ABORT, 'barrier_member: each process that joins has a higher incarnation');
END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER barrier_member_kept BEFORE DELETE ON barrier_member
BEGIN
    SELECT RAISE(ABORT, 'barrier_member: the row is never deleted: a delayed join of an old process would count');
END;
-- +goose StatementEnd

-- REPLACE deletes without firing the trigger on deletion; this one it does fire.
-- +goose StatementBegin
CREATE TRIGGER barrier_member_single BEFORE INSERT ON barrier_member WHEN EXISTS (SELECT 1 FROM barrier_member WHERE cohort = NEW.cohort AND member = NEW.member)
BEGIN
    SELECT RAISE(ABORT, 'barrier_member: the row is there already');
END;
-- +goose StatementEnd

-- Every rollout that ever was proposed.
CREATE TABLE barrier_rollout (
    cohort           TEXT    NOT NULL,
    generation       INTEGER NOT NULL CHECK (generation >= 1),
    id               TEXT    NOT NULL CHECK (id <> ''),
    state            TEXT    NOT NULL CHECK (state IN ('proposed', 'staging', 'committed', 'aborted', 'confirmed', 'reverted')),
    digest           TEXT    NOT NULL CHECK (digest <> ''),
    version          INTEGER NOT NULL CHECK (version >= 0),
    proposer         TEXT    NOT NULL,
    roster_revision  INTEGER NOT NULL,
    epoch_size       INTEGER NOT NULL CHECK (epoch_size >= 1),
    window_ms        INTEGER NOT NULL CHECK (window_ms >= 0),
    soak_ms          INTEGER NOT NULL,
    grace_ms         INTEGER NOT NULL,
    evidence_ttl_ms  INTEGER NOT NULL,
    proposed_at      INTEGER NOT NULL,
    deadline         INTEGER NOT NULL,
    committed_at     INTEGER,
    confirm_deadline INTEGER,
    decided_at       INTEGER,
    decided_by       TEXT NOT NULL,
    reason           TEXT NOT NULL,
    PRIMARY KEY (cohort, generation),
    UNIQUE (id, cohort),
    CHECK (state <> 'committed' OR committed_at IS NOT NULL),
    CHECK (state NOT IN ('confirmed', 'reverted') OR window_ms > 0 AND confirm_deadline IS NOT NULL)
) STRICT;

CREATE UNIQUE INDEX barrier_rollout_one_open ON barrier_rollout (cohort)
WHERE state IN ('proposed', 'staging') OR state = 'committed' AND window_ms > 0;

-- +goose StatementBegin
CREATE TRIGGER barrier_rollout_steps BEFORE UPDATE ON barrier_rollout WHEN NOT (OLD.state = 'proposed'  AND NEW.state IN ('staging', 'aborted')
    OR OLD.state = 'staging'   AND NEW.state IN ('committed', 'aborted')
    OR OLD.state = 'committed' AND NEW.state IN ('confirmed', 'reverted'))
  OR (NEW.cohort, NEW.generation, NEW.id, NEW.digest, NEW.version, NEW.proposer, NEW.roster_revision, NEW.epoch_size, NEW.window_ms,
      NEW.soak_ms, NEW.grace_ms, NEW.evidence_ttl_ms, NEW.proposed_at, NEW.deadline) IS NOT
     (OLD.cohort, OLD.generation, OLD.id, OLD.digest, OLD.version, OLD.proposer, OLD.roster_revision, OLD.epoch_size, OLD.window_ms,
      OLD.soak_ms, OLD.grace_ms, OLD.evidence_ttl_ms, OLD.proposed_at, OLD.deadline)
BEGIN
    SELECT RAISE(ABORT, 'barrier_rollout: a rollout goes from proposed by staging to committed or aborted, and on to confirmed or reverted; nothing else in it changes');
END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER barrier_rollout_kept BEFORE DELETE ON barrier_rollout
BEGIN
    SELECT RAISE(ABORT, 'barrier_rollout: rollouts are kept');
END;
-- +goose StatementEnd

-- REPLACE deletes without firing the trigger on deletion; this one it does fire.
-- +goose StatementBegin
CREATE TRIGGER barrier_rollout_single BEFORE INSERT ON barrier_rollout
WHEN EXISTS (SELECT 1 FROM barrier_rollout WHERE cohort = NEW.cohort AND (generation = NEW.generation OR id = NEW.id))
  OR EXISTS (SELECT 1 FROM barrier_rollout WHERE cohort = NEW.cohort
             AND (state IN ('proposed', 'staging') OR state = 'committed' AND window_ms > 0))
BEGIN
    SELECT RAISE(ABORT, 'barrier_rollout: one is open, or the row is there already');
END;
-- +goose StatementEnd

-- What each member of a rollout's epoch said of it. The rows are the epoch: all are made with the rollout.
CREATE TABLE barrier_ballot (
    cohort          TEXT    NOT NULL,
    generation      INTEGER NOT NULL,
    member          TEXT    NOT NULL CHECK (member <> ''),
    revision        INTEGER NOT NULL,
    boot            TEXT NOT NULL,
    vote            TEXT NOT NULL CHECK (vote IN ('', 'ack', 'nack')),
    build_digest    TEXT NOT NULL,
    reason          TEXT NOT NULL,
    voted_at        INTEGER,
    converged_since INTEGER,
    renewed_at      INTEGER,
    detail          TEXT NOT NULL,
    withdrawn       TEXT NOT NULL,
    withdrawn_at    INTEGER,
    PRIMARY KEY (cohort, generation, member),
    FOREIGN KEY (cohort, generation) REFERENCES barrier_rollout (cohort, generation)
) STRICT, WITHOUT ROWID;

-- +goose StatementBegin
CREATE TRIGGER barrier_ballot_kept BEFORE DELETE ON barrier_ballot
BEGIN
    SELECT RAISE(ABORT, 'barrier_ballot: ballots are kept');
END;
-- +goose StatementEnd

-- REPLACE deletes without firing the trigger on deletion; this one it does fire.
-- +goose StatementBegin
CREATE TRIGGER barrier_ballot_single BEFORE INSERT ON barrier_ballot WHEN EXISTS (SELECT 1 FROM barrier_ballot WHERE cohort = NEW.cohort AND generation = NEW.generation AND member = NEW.member)
BEGIN
    SELECT RAISE(ABORT, 'barrier_ballot: the row is there already');
END;
-- +goose StatementEnd

-- Who coordinates a cohort. holder is empty when it was released.
CREATE TABLE barrier_lease (
    cohort TEXT    NOT NULL PRIMARY KEY CHECK (cohort <> ''),
    token  INTEGER NOT NULL CHECK (token >= 1),
    holder TEXT    NOT NULL,
    until  INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- +goose StatementBegin
CREATE TRIGGER barrier_lease_monotonic BEFORE UPDATE ON barrier_lease WHEN NEW.cohort <> OLD.cohort OR NEW.token < OLD.token OR NEW.token = OLD.token AND NEW.holder NOT IN (OLD.holder, '')
BEGIN
    SELECT RAISE(ABORT, 'barrier_lease: the token never goes down, and grows with each holder');
END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER barrier_lease_kept BEFORE DELETE ON barrier_lease
BEGIN
    SELECT RAISE(ABORT, 'barrier_lease: the row is never deleted');
END;
-- +goose StatementEnd

-- REPLACE deletes without firing the trigger on deletion; this one it does fire.
-- +goose StatementBegin
CREATE TRIGGER barrier_lease_single BEFORE INSERT ON barrier_lease WHEN EXISTS (SELECT 1 FROM barrier_lease WHERE cohort = NEW.cohort)
BEGIN
    SELECT RAISE(ABORT, 'barrier_lease: the row is there already');
END;
-- +goose StatementEnd

-- The bytes that rollouts carry. The adapter sees to it that those which the head names are there.
CREATE TABLE barrier_artefact (
    cohort TEXT    NOT NULL,
    digest TEXT    NOT NULL CHECK (digest <> ''),
    bytes  BLOB    NOT NULL,
    put_at INTEGER NOT NULL,
    PRIMARY KEY (cohort, digest)
) STRICT;

CREATE INDEX barrier_artefact_age ON barrier_artefact (cohort, put_at);

-- +goose StatementBegin
CREATE TRIGGER barrier_artefact_fixed BEFORE UPDATE OF cohort, digest, bytes ON barrier_artefact
BEGIN
    SELECT RAISE(ABORT, 'barrier_artefact: bytes under a digest never change');
END;
-- +goose StatementEnd
