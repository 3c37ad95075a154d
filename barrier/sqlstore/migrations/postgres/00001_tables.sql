-- +goose Up

-- +goose StatementBegin
CREATE FUNCTION barrier.refuse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'barrier.%: %', TG_TABLE_NAME, TG_ARGV[0] USING ERRCODE = 'integrity_constraint_violation';
END
$$;
-- +goose StatementEnd

-- What a cohort has decided: one row each, for ever. Its newest rollout is that of rollout_generation, the one before it
-- that of previous_generation.
CREATE TABLE barrier.head (
    cohort               text COLLATE "C" PRIMARY KEY CHECK (cohort <> ''),
    revision             bigint NOT NULL CHECK (revision >= 0),
    generation           bigint NOT NULL CHECK (generation >= 0),
    rollout_generation   bigint CHECK (rollout_generation > 0 AND rollout_generation <= generation),
    previous_generation  bigint CHECK (previous_generation > 0 AND previous_generation < rollout_generation),
    claim                bigint NOT NULL CHECK (claim >= 0),
    committed_generation bigint CHECK (committed_generation >= 0 AND committed_generation <= generation),
    committed_digest     text   CHECK (committed_digest <> ''),
    committed_version    bigint CHECK (committed_version >= 0),
    roster_revision      bigint NOT NULL CHECK (roster_revision >= 0),
    CHECK (num_nulls(committed_generation, committed_digest, committed_version) IN (0, 3))
);

CREATE TRIGGER head_monotonic BEFORE UPDATE ON barrier.head FOR EACH ROW
WHEN (NEW.cohort <> OLD.cohort OR NEW.revision < OLD.revision OR NEW.generation < OLD.generation OR NEW.claim < OLD.claim
      OR NEW.roster_revision < OLD.roster_revision
      OR OLD.rollout_generation IS NOT NULL
         AND (NEW.rollout_generation IS NULL OR NEW.rollout_generation < OLD.rollout_generation)
      OR OLD.committed_generation IS NOT NULL
         AND (NEW.committed_generation IS NULL OR NEW.committed_generation < OLD.committed_generation))
EXECUTE FUNCTION barrier.refuse('nothing in it ever goes down');

CREATE TRIGGER head_kept BEFORE DELETE OR TRUNCATE ON barrier.head FOR EACH STATEMENT
EXECUTE FUNCTION barrier.refuse('the row is never deleted');

-- Who must agree to the next rollout.
CREATE TABLE barrier.roster (
    cohort text COLLATE "C" NOT NULL,
    member text COLLATE "C" NOT NULL CHECK (member <> ''),
    PRIMARY KEY (cohort, member)
);

-- The current process of each member that ever joined.
CREATE TABLE barrier.member (
    cohort      text COLLATE "C" NOT NULL,
    member      text COLLATE "C" NOT NULL CHECK (member <> ''),
    boot        text   NOT NULL CHECK (boot <> ''),
    incarnation bigint NOT NULL CHECK (incarnation >= 1),
    joined      bigint NOT NULL CHECK (joined >= 0),
    PRIMARY KEY (cohort, member)
);

CREATE TRIGGER member_monotonic BEFORE UPDATE ON barrier.member FOR EACH ROW
WHEN (NEW.cohort <> OLD.cohort OR NEW.member <> OLD.member OR NEW.incarnation <= OLD.incarnation OR NEW.joined < OLD.joined)
EXECUTE FUNCTION barrier.refuse('each process that joins has a higher incarnation');

CREATE TRIGGER member_kept BEFORE DELETE OR TRUNCATE ON barrier.member FOR EACH STATEMENT
EXECUTE FUNCTION barrier.refuse('the row is never deleted: a delayed join of an old process would count');

-- Every rollout that ever was proposed.
CREATE TABLE barrier.rollout (
    cohort           text COLLATE "C" NOT NULL,
    generation       bigint NOT NULL CHECK (generation >= 1),
    id               text COLLATE "C" NOT NULL CHECK (id <> ''),
    state            text   NOT NULL CHECK (state IN ('proposed', 'staging', 'committed', 'aborted', 'confirmed', 'reverted')),
    digest           text   NOT NULL CHECK (digest <> ''),
    version          bigint NOT NULL CHECK (version >= 0),
    proposer         text   NOT NULL,
    roster_revision  bigint NOT NULL,
    epoch_size       bigint NOT NULL CHECK (epoch_size >= 1),
    window_ms        bigint NOT NULL CHECK (window_ms >= 0),
    soak_ms          bigint NOT NULL,
    grace_ms         bigint NOT NULL,
    evidence_ttl_ms  bigint NOT NULL,
    proposed_at      timestamptz NOT NULL,
    deadline         timestamptz NOT NULL,
    committed_at     timestamptz,
    confirm_deadline timestamptz,
    decided_at       timestamptz,
    decided_by       text NOT NULL,
    reason           text NOT NULL,
    PRIMARY KEY (cohort, generation),
    CONSTRAINT rollout_id UNIQUE (id, cohort),
    CHECK (state <> 'committed' OR committed_at IS NOT NULL),
    CHECK (state NOT IN ('confirmed', 'reverted') OR window_ms > 0 AND confirm_deadline IS NOT NULL)
);

CREATE UNIQUE INDEX rollout_one_open ON barrier.rollout (cohort)
WHERE state IN ('proposed', 'staging') OR state = 'committed' AND window_ms > 0;

CREATE TRIGGER rollout_steps BEFORE UPDATE ON barrier.rollout FOR EACH ROW
WHEN (NOT (OLD.state = 'proposed'  AND NEW.state IN ('staging', 'aborted')
        OR OLD.state = 'staging'   AND NEW.state IN ('committed', 'aborted')
        OR OLD.state = 'committed' AND NEW.state IN ('confirmed', 'reverted'))
      OR (NEW.cohort, NEW.generation, NEW.id, NEW.digest, NEW.version, NEW.proposer, NEW.roster_revision, NEW.epoch_size, NEW.window_ms,
          NEW.soak_ms, NEW.grace_ms, NEW.evidence_ttl_ms, NEW.proposed_at, NEW.deadline) IS DISTINCT FROM
         (OLD.cohort, OLD.generation, OLD.id, OLD.digest, OLD.version, OLD.proposer, OLD.roster_revision, OLD.epoch_size, OLD.window_ms,
          OLD.soak_ms, OLD.grace_ms, OLD.evidence_ttl_ms, OLD.proposed_at, OLD.deadline))
EXECUTE FUNCTION barrier.refuse('a rollout goes from proposed by staging to committed or aborted, and on to confirmed or reverted; nothing else in it changes');

CREATE TRIGGER rollout_kept BEFORE DELETE OR TRUNCATE ON barrier.rollout FOR EACH STATEMENT
EXECUTE FUNCTION barrier.refuse('rollouts are kept');

-- A decision must be in time when it commits, not when its transaction looked at the clock: whoever sent it may have been
-- suspended since. This runs at COMMIT. The four seconds are maxDecision in tx.go.
-- +goose StatementBegin
CREATE FUNCTION barrier.in_time() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    at timestamptz := clock_timestamp();
BEGIN
    IF NEW.state = 'committed' AND at > NEW.deadline OR NEW.state = 'confirmed' AND at > NEW.confirm_deadline THEN
        RAISE EXCEPTION 'generation % of cohort % came to be % after its deadline', NEW.generation, NEW.cohort, NEW.state
            USING ERRCODE = 'ZB001';
    END IF;
    IF at > NEW.decided_at + interval '4 seconds' THEN
        RAISE EXCEPTION 'generation % of cohort % came to be % too long after the votes were counted', NEW.generation, NEW.cohort, NEW.state
            USING ERRCODE = 'ZB002';
    END IF;
    RETURN NULL;
END
$$;
-- +goose StatementEnd

CREATE CONSTRAINT TRIGGER rollout_in_time AFTER UPDATE ON barrier.rollout DEFERRABLE INITIALLY DEFERRED FOR EACH ROW
WHEN (NEW.state IN ('committed', 'confirmed') AND NEW.state <> OLD.state)
EXECUTE FUNCTION barrier.in_time();

-- What each member of a rollout's epoch said of it. The rows are the epoch: all are made with the rollout. Renewed evidence
-- updates them often, so pages keep room for that.
CREATE TABLE barrier.ballot (
    cohort          text COLLATE "C" NOT NULL,
    generation      bigint NOT NULL,
    member          text COLLATE "C" NOT NULL CHECK (member <> ''),
    revision        bigint NOT NULL,
    boot            text NOT NULL,
    vote            text NOT NULL CHECK (vote IN ('', 'ack', 'nack')),
    build_digest    text NOT NULL,
    reason          text NOT NULL,
    voted_at        timestamptz,
    converged_since timestamptz,
    renewed_at      timestamptz,
    detail          text NOT NULL,
    withdrawn       text NOT NULL,
    withdrawn_at    timestamptz,
    PRIMARY KEY (cohort, generation, member),
    FOREIGN KEY (cohort, generation) REFERENCES barrier.rollout (cohort, generation)
) WITH (fillfactor = 70);

CREATE TRIGGER ballot_kept BEFORE DELETE OR TRUNCATE ON barrier.ballot FOR EACH STATEMENT
EXECUTE FUNCTION barrier.refuse('ballots are kept');

-- Who coordinates a cohort. holder is empty when it was released.
CREATE TABLE barrier.lease (
    cohort text COLLATE "C" PRIMARY KEY CHECK (cohort <> ''),
    token  bigint NOT NULL CHECK (token >= 1),
    holder text   NOT NULL,
    until  timestamptz NOT NULL
);

CREATE TRIGGER lease_monotonic BEFORE UPDATE ON barrier.lease FOR EACH ROW
WHEN (NEW.cohort <> OLD.cohort OR NEW.token < OLD.token OR NEW.token = OLD.token AND NEW.holder NOT IN (OLD.holder, ''))
EXECUTE FUNCTION barrier.refuse('the token never goes down, and grows with each holder');

CREATE TRIGGER lease_kept BEFORE DELETE OR TRUNCATE ON barrier.lease FOR EACH STATEMENT
EXECUTE FUNCTION barrier.refuse('the row is never deleted');

-- The bytes that rollouts carry. The adapter sees to it that those which the head names are there.
CREATE TABLE barrier.artefact (
    cohort text COLLATE "C" NOT NULL,
    digest text COLLATE "C" NOT NULL CHECK (digest <> ''),
    bytes  bytea NOT NULL,
    put_at timestamptz NOT NULL,
    PRIMARY KEY (cohort, digest)
);

CREATE INDEX artefact_age ON barrier.artefact (cohort, put_at);

CREATE TRIGGER artefact_fixed BEFORE UPDATE OF cohort, digest, bytes ON barrier.artefact FOR EACH ROW
EXECUTE FUNCTION barrier.refuse('bytes under a digest never change');
