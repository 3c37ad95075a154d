-- +goose Up

-- What this control plane is: one row, for ever.
CREATE TABLE platform (
    one        INTEGER PRIMARY KEY CHECK (one = 1),
    id         TEXT    NOT NULL CHECK (length(id) = 36),
    epoch      INTEGER NOT NULL CHECK (epoch >= 1),
    generation INTEGER NOT NULL CHECK (generation >= 0),
    directory  INTEGER NOT NULL CHECK (directory >= 0)
) STRICT;

INSERT INTO platform (one, id, epoch, generation, directory)
VALUES (1,
        lower(hex(randomblob(4)) || '-' || hex(randomblob(2)) || '-4' || substr(hex(randomblob(2)), 2) || '-'
              || substr('89AB', abs(random() % 4) + 1, 1) || substr(hex(randomblob(2)), 2) || '-' || hex(randomblob(6))),
        1, 0, 0);

-- +goose StatementBegin
CREATE TRIGGER platform_monotonic BEFORE UPDATE ON platform
WHEN NEW.generation < OLD.generation OR NEW.epoch < OLD.epoch OR NEW.directory < OLD.directory
  OR NEW.id <> OLD.id OR NEW.one <> OLD.one
BEGIN
    SELECT RAISE(ABORT, 'platform: epoch, generation and directory never go down, the id never changes');
END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER platform_kept BEFORE DELETE ON platform
BEGIN
    SELECT RAISE(ABORT, 'platform: the row is never deleted');
END;
-- +goose StatementEnd

-- REPLACE deletes without firing the trigger above; this one it does fire.
-- +goose StatementBegin
CREATE TRIGGER platform_single BEFORE INSERT ON platform WHEN EXISTS (SELECT 1 FROM platform)
BEGIN
    SELECT RAISE(ABORT, 'platform: there is one row');
END;
-- +goose StatementEnd

-- What a node proved to have and this database does not know: it stops all signing until the epoch is raised.
CREATE TABLE ahead (
    one        INTEGER PRIMARY KEY CHECK (one = 1),
    epoch      INTEGER NOT NULL CHECK (epoch >= 1),
    generation INTEGER NOT NULL CHECK (generation >= 1),
    version    INTEGER NOT NULL CHECK (version >= 1),
    node       TEXT    NOT NULL,
    signed     TEXT    NOT NULL,
    seen_at    INTEGER NOT NULL
) STRICT;

-- The last snapshot version that was given out.
CREATE TABLE config_version_seq (
    one  INTEGER PRIMARY KEY CHECK (one = 1),
    last INTEGER NOT NULL CHECK (last >= 0)
) STRICT;

INSERT INTO config_version_seq (one, last) VALUES (1, 0);

-- +goose StatementBegin
CREATE TRIGGER config_version_seq_rises BEFORE UPDATE ON config_version_seq
WHEN NEW.last <= OLD.last OR NEW.one <> OLD.one
BEGIN
    SELECT RAISE(ABORT, 'config_version_seq: a version is given out once');
END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER config_version_seq_kept BEFORE DELETE ON config_version_seq
BEGIN
    SELECT RAISE(ABORT, 'config_version_seq: the row is never deleted');
END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER config_version_seq_single BEFORE INSERT ON config_version_seq
WHEN EXISTS (SELECT 1 FROM config_version_seq)
BEGIN
    SELECT RAISE(ABORT, 'config_version_seq: there is one row');
END;
-- +goose StatementEnd

CREATE TABLE plan (
    name     TEXT PRIMARY KEY CHECK (name <> ''),
    ceilings TEXT NOT NULL
) STRICT;

INSERT INTO plan (name, ceilings) VALUES ('standard', '{}');

CREATE TABLE workspace (
    id         TEXT PRIMARY KEY CHECK (id <> ''),
    name       TEXT    NOT NULL UNIQUE CHECK (name <> ''),
    plan       TEXT    NOT NULL REFERENCES plan (name),
    created_at INTEGER NOT NULL
) STRICT;

CREATE INDEX workspace_plan ON workspace (plan);

CREATE TABLE app_user (
    id         TEXT PRIMARY KEY CHECK (id <> ''),
    email      TEXT    NOT NULL UNIQUE CHECK (email <> ''),
    operator   INTEGER NOT NULL CHECK (operator IN (0, 1)),
    created_at INTEGER NOT NULL
) STRICT;

CREATE TABLE membership (
    user_id      TEXT NOT NULL REFERENCES app_user (id) ON DELETE CASCADE,
    workspace_id TEXT NOT NULL REFERENCES workspace (id) ON DELETE CASCADE,
    role         TEXT NOT NULL CHECK (role IN ('viewer', 'editor', 'admin')),
    PRIMARY KEY (user_id, workspace_id)
) STRICT, WITHOUT ROWID;

CREATE INDEX membership_workspace ON membership (workspace_id);

CREATE TABLE node (
    id         TEXT PRIMARY KEY CHECK (id <> ''),
    name       TEXT    NOT NULL UNIQUE CHECK (name <> ''),
    address    TEXT    NOT NULL,
    created_at INTEGER NOT NULL,
    last_seen  INTEGER,
    acked      TEXT,
    acked_at   INTEGER,
    last_error TEXT,
    keys       TEXT, -- ids of the keys that it trusts, with commas between
    keys_at    INTEGER,
    fresh_at   INTEGER,
    CHECK ((keys IS NULL) = (keys_at IS NULL)),
    CHECK ((acked IS NULL) = (acked_at IS NULL))
) STRICT;

CREATE TABLE token (
    id           TEXT PRIMARY KEY CHECK (id <> ''),
    name         TEXT    NOT NULL,
    hash         BLOB    NOT NULL UNIQUE CHECK (length(hash) = 32),
    user_id      TEXT REFERENCES app_user (id) ON DELETE CASCADE,
    node_id      TEXT REFERENCES node (id) ON DELETE CASCADE,
    workspace_id TEXT REFERENCES workspace (id) ON DELETE CASCADE,
    created_at   INTEGER NOT NULL,
    expires_at   INTEGER,
    revoked_at   INTEGER,
    CHECK ((user_id IS NULL) <> (node_id IS NULL)),
    CHECK (node_id IS NULL OR workspace_id IS NULL)
) STRICT;

CREATE INDEX token_user ON token (user_id);
CREATE INDEX token_node ON token (node_id);
CREATE INDEX token_newest ON token (workspace_id, created_at, id);

CREATE TABLE zone (
    id           TEXT PRIMARY KEY CHECK (length(id) = 36 AND id NOT GLOB '*[^0-9a-f-]*'),
    workspace_id TEXT    NOT NULL REFERENCES workspace (id),
    name         TEXT    NOT NULL CHECK (name <> ''),
    revision     INTEGER NOT NULL CHECK (revision >= 1),
    records      INTEGER NOT NULL CHECK (records >= 0),
    created_at   INTEGER NOT NULL,
    CONSTRAINT zone_name UNIQUE (workspace_id, name)
) STRICT;

-- Clustered by zone: reading a whole configuration is one sequential walk.
CREATE TABLE record (
    zone_id     TEXT    NOT NULL REFERENCES zone (id) ON DELETE CASCADE,
    id          TEXT    NOT NULL CHECK (id <> ''),
    name        TEXT    NOT NULL CHECK (name <> ''),
    type        INTEGER NOT NULL CHECK (type BETWEEN 1 AND 65535),
    content     TEXT    NOT NULL,
    content_key TEXT    NOT NULL CHECK (length(content_key) = 32),
    ttl         INTEGER CHECK (ttl BETWEEN 1 AND 2147483647),
    proxied     INTEGER NOT NULL CHECK (proxied IN (0, 1)),
    PRIMARY KEY (zone_id, name, type, content_key),
    CONSTRAINT record_id UNIQUE (zone_id, id)
) STRICT, WITHOUT ROWID;

CREATE TABLE object (
    zone_id  TEXT    NOT NULL REFERENCES zone (id) ON DELETE CASCADE,
    kind     TEXT    NOT NULL CHECK (kind IN ('ruleset', 'list', 'pool', 'load_balancer', 'cache_policy',
                                              'tls_host', 'function', 'settings')),
    name     TEXT    NOT NULL CHECK (name <> ''),
    body     TEXT    NOT NULL,
    revision INTEGER NOT NULL CHECK (revision >= 1),
    PRIMARY KEY (zone_id, kind, name)
) STRICT;

CREATE TABLE snapshot (
    version        INTEGER PRIMARY KEY CHECK (version >= 1),
    parent_version INTEGER NOT NULL CHECK (parent_version >= 0),
    content_hash   TEXT    NOT NULL CHECK (length(content_hash) = 64 AND content_hash NOT GLOB '*[^0-9a-f]*'),
    created_by     TEXT    NOT NULL,
    message        TEXT    NOT NULL,
    created_at     INTEGER NOT NULL,
    zones          INTEGER NOT NULL CHECK (zones >= 0),
    bytes          INTEGER NOT NULL CHECK (bytes >= 0),
    key_id         TEXT    NOT NULL,
    payload_blake3 TEXT    NOT NULL,
    signature      TEXT    NOT NULL,
    activated_at   INTEGER,
    payload        BLOB    NOT NULL
) STRICT;

CREATE UNIQUE INDEX snapshot_one_active ON snapshot ((activated_at IS NOT NULL)) WHERE activated_at IS NOT NULL;

-- +goose StatementBegin
CREATE TRIGGER snapshot_immutable
BEFORE UPDATE OF version, parent_version, content_hash, created_by, message, created_at, zones ON snapshot
BEGIN
    SELECT RAISE(ABORT, 'snapshot: what a version is never changes');
END;
-- +goose StatementEnd

-- Every move of the live pointer, append-only.
CREATE TABLE activation (
    epoch      INTEGER NOT NULL CHECK (epoch >= 1),
    generation INTEGER NOT NULL CHECK (generation >= 1),
    version    INTEGER NOT NULL REFERENCES snapshot (version),
    kind       TEXT    NOT NULL CHECK (kind IN ('apply', 'rollback', 'provisional', 'confirmed', 'reverted')),
    signed     TEXT    NOT NULL,
    by         TEXT    NOT NULL,
    at         INTEGER NOT NULL,
    PRIMARY KEY (epoch, generation)
) STRICT;

CREATE INDEX activation_version ON activation (version, epoch, generation);

-- +goose StatementBegin
CREATE TRIGGER activation_no_update BEFORE UPDATE ON activation
BEGIN
    SELECT RAISE(ABORT, 'activation: append-only');
END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER activation_no_delete BEFORE DELETE ON activation
BEGIN
    SELECT RAISE(ABORT, 'activation: append-only');
END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER activation_no_replace BEFORE INSERT ON activation
WHEN EXISTS (SELECT 1 FROM activation WHERE epoch = NEW.epoch AND generation = NEW.generation)
BEGIN
    SELECT RAISE(ABORT, 'activation: append-only');
END;
-- +goose StatementEnd

-- First answers of requests that may be repeated.
CREATE TABLE replay (
    user_id TEXT    NOT NULL,
    key     TEXT    NOT NULL CHECK (key <> ''),
    request BLOB    NOT NULL CHECK (length(request) = 32),
    answer  TEXT    NOT NULL,
    at      INTEGER NOT NULL,
    PRIMARY KEY (user_id, key)
) STRICT;

CREATE INDEX replay_oldest ON replay (at);

CREATE TABLE audit (
    id        TEXT PRIMARY KEY CHECK (id <> ''),
    at        INTEGER NOT NULL,
    workspace TEXT    NOT NULL,
    actor     TEXT    NOT NULL,
    origin    TEXT    NOT NULL,
    action    TEXT    NOT NULL,
    target    TEXT    NOT NULL,
    outcome   TEXT    NOT NULL,
    detail    TEXT    NOT NULL
) STRICT;

CREATE INDEX audit_newest ON audit (at, id);
CREATE INDEX audit_workspace ON audit (workspace, at, id);

-- +goose StatementBegin
CREATE TRIGGER audit_no_update BEFORE UPDATE ON audit
BEGIN
    SELECT RAISE(ABORT, 'audit: append-only');
END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER audit_no_delete BEFORE DELETE ON audit
BEGIN
    SELECT RAISE(ABORT, 'audit: append-only');
END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER audit_no_replace BEFORE INSERT ON audit WHEN EXISTS (SELECT 1 FROM audit WHERE id = NEW.id)
BEGIN
    SELECT RAISE(ABORT, 'audit: append-only');
END;
-- +goose StatementEnd
