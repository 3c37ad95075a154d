-- +goose Up

-- How the platform publishes, and a counter of steps of rollouts.
ALTER TABLE edge.platform
    ADD COLUMN rollouts          bigint        NOT NULL DEFAULT 0 CHECK (rollouts >= 0),
    ADD COLUMN rollout_mode      edge.bytewise NOT NULL DEFAULT 'direct' CHECK (rollout_mode IN ('direct', 'coordinated')),
    ADD COLUMN confirm_window_ms bigint        NOT NULL DEFAULT 0 CHECK (confirm_window_ms >= 0),
    ADD COLUMN deadline_ms       bigint        NOT NULL DEFAULT 300000 CHECK (deadline_ms > 0),
    ADD COLUMN soak_ms           bigint        NOT NULL DEFAULT 10000 CHECK (soak_ms > 0),
    ADD COLUMN margin            integer       NOT NULL DEFAULT 100 CHECK (margin BETWEEN 1 AND 10000),
    ADD COLUMN settings_revision bigint        NOT NULL DEFAULT 1 CHECK (settings_revision >= 1),
    ADD CONSTRAINT platform_window
        CHECK (confirm_window_ms = 0 OR rollout_mode = 'coordinated' AND confirm_window_ms >= 2 * soak_ms);

DROP TRIGGER platform_monotonic ON edge.platform;

CREATE TRIGGER platform_monotonic BEFORE UPDATE ON edge.platform FOR EACH ROW
WHEN (NEW.generation < OLD.generation OR NEW.epoch < OLD.epoch OR NEW.directory < OLD.directory
      OR NEW.rollouts < OLD.rollouts OR NEW.settings_revision < OLD.settings_revision
      OR NEW.id <> OLD.id OR NEW.one <> OLD.one)
EXECUTE FUNCTION edge.refuse('epoch, generation and counters never go down, the id never changes');

-- What each rollout carries; how far it has come the cohort's own tables say. Append-only, but that provisional is filled in
-- when its trial is decided.
CREATE TABLE edge.rollout (
    id           edge.bytewise PRIMARY KEY CHECK (length(id) = 36),
    epoch        bigint      NOT NULL CHECK (epoch >= 1),
    generation   bigint      NOT NULL CHECK (generation >= 1),
    kind         text        NOT NULL CHECK (kind IN ('apply', 'rollback')),
    version      bigint      NOT NULL REFERENCES edge.snapshot (version),
    content_hash text        NOT NULL CHECK (content_hash ~ '^[0-9a-f]{64}$'),
    message      text        NOT NULL,
    by           text        NOT NULL,
    margin       integer     NOT NULL CHECK (margin BETWEEN 1 AND 10000),
    created_at   timestamptz NOT NULL,
    provisional  text        CHECK (provisional <> ''),
    CONSTRAINT rollout_generation UNIQUE (epoch, generation)
);

CREATE INDEX rollout_version ON edge.rollout (version);

CREATE TRIGGER rollout_append_only BEFORE UPDATE ON edge.rollout FOR EACH ROW
WHEN (OLD.provisional IS NOT NULL OR NEW.provisional IS NULL
      OR (NEW.id, NEW.epoch, NEW.generation, NEW.kind, NEW.version, NEW.content_hash, NEW.message, NEW.by, NEW.margin, NEW.created_at)
         IS DISTINCT FROM
         (OLD.id, OLD.epoch, OLD.generation, OLD.kind, OLD.version, OLD.content_hash, OLD.message, OLD.by, OLD.margin, OLD.created_at))
EXECUTE FUNCTION edge.refuse('append-only, but that a trial''s activation is filled in once');

CREATE TRIGGER rollout_kept BEFORE DELETE OR TRUNCATE ON edge.rollout FOR EACH STATEMENT
EXECUTE FUNCTION edge.refuse('append-only');
