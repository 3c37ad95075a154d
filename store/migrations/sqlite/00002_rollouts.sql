-- +goose Up

-- How the platform publishes, and a counter of steps of rollouts.
ALTER TABLE platform ADD COLUMN rollouts INTEGER NOT NULL DEFAULT 0 CHECK (rollouts >= 0);
ALTER TABLE platform ADD COLUMN rollout_mode TEXT NOT NULL DEFAULT 'direct' CHECK (rollout_mode IN ('direct', 'coordinated'));
ALTER TABLE platform ADD COLUMN deadline_ms INTEGER NOT NULL DEFAULT 300000 CHECK (deadline_ms > 0);
ALTER TABLE platform ADD COLUMN soak_ms INTEGER NOT NULL DEFAULT 10000 CHECK (soak_ms > 0);
ALTER TABLE platform ADD COLUMN margin INTEGER NOT NULL DEFAULT 100 CHECK (margin BETWEEN 1 AND 10000);
ALTER TABLE platform ADD COLUMN settings_revision INTEGER NOT NULL DEFAULT 1 CHECK (settings_revision >= 1);
ALTER TABLE platform ADD COLUMN confirm_window_ms INTEGER NOT NULL DEFAULT 0 CHECK (confirm_window_ms >= 0)
    CHECK (confirm_window_ms = 0 OR rollout_mode = 'coordinated' AND confirm_window_ms >= 2 * soak_ms);

DROP TRIGGER platform_monotonic;

-- +goose StatementBegin
CREATE TRIGGER platform_monotonic BEFORE UPDATE ON platform
WHEN NEW.generation < OLD.generation OR NEW.epoch < OLD.epoch OR NEW.directory < OLD.directory
  OR NEW.rollouts < OLD.rollouts OR NEW.settings_revision < OLD.settings_revision
  OR NEW.id <> OLD.id OR NEW.one <> OLD.one
BEGIN
    SELECT RAISE(ABORT, 'platform: epoch, generation and counters never go down, the id never changes');
END;
-- +goose StatementEnd

-- What each rollout carries; how far it has come the cohort's own tables say. Append-only, but that provisional is filled in
-- when its trial is decided.
CREATE TABLE rollout (
    id           TEXT PRIMARY KEY CHECK (length(id) = 36),
    epoch        INTEGER NOT NULL CHECK (epoch >= 1),
    generation   INTEGER NOT NULL CHECK (generation >= 1),
    kind         TEXT    NOT NULL CHECK (kind IN ('apply', 'rollback')),
    version      INTEGER NOT NULL REFERENCES snapshot (version),
    content_hash TEXT    NOT NULL CHECK (length(content_hash) = 64 AND content_hash NOT GLOB '*[^0-9a-f]*'),
    message      TEXT    NOT NULL,
    by           TEXT    NOT NULL,
    margin       INTEGER NOT NULL CHECK (margin BETWEEN 1 AND 10000),
    created_at   INTEGER NOT NULL,
    provisional  TEXT    CHECK (provisional <> ''),
    CONSTRAINT rollout_generation UNIQUE (epoch, generation)
) STRICT;

CREATE INDEX rollout_version ON rollout (version);

-- +goose StatementBegin
CREATE TRIGGER rollout_append_only BEFORE UPDATE ON rollout
WHEN OLD.provisional IS NOT NULL OR NEW.provisional IS NULL
  OR (NEW.id, NEW.epoch, NEW.generation, NEW.kind, NEW.version, NEW.content_hash, NEW.message, NEW.by, NEW.margin, NEW.created_at)
     IS NOT
     (OLD.id, OLD.epoch, OLD.generation, OLD.kind, OLD.version, OLD.content_hash, OLD.message, OLD.by, OLD.margin, OLD.created_at)
BEGIN
    SELECT RAISE(ABORT, 'rollout: append-only, but that a trial''s activation is filled in once');
END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER rollout_kept BEFORE DELETE ON rollout
BEGIN
    SELECT RAISE(ABORT, 'rollout: append-only');
END;
-- +goose StatementEnd

-- REPLACE deletes without firing the trigger on deletion; this one it does fire.
-- +goose StatementBegin
CREATE TRIGGER rollout_no_replace BEFORE INSERT ON rollout
WHEN EXISTS (SELECT 1 FROM rollout WHERE id = NEW.id OR epoch = NEW.epoch AND generation = NEW.generation)
BEGIN
    SELECT RAISE(ABORT, 'rollout: append-only');
END;
-- +goose StatementEnd
