-- +goose Up

-- Text that is compared or ordered collates by byte, as Go does.
CREATE DOMAIN edge.bytewise AS text COLLATE "C";

-- +goose StatementBegin
CREATE FUNCTION edge.refuse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '%: %', TG_TABLE_NAME, TG_ARGV[0] USING ERRCODE = 'integrity_constraint_violation';
END
$$;
-- +goose StatementEnd

-- What this control plane is: one row, for ever.
CREATE TABLE edge.platform (
    one        integer PRIMARY KEY CHECK (one = 1),
    id         edge.bytewise NOT NULL CHECK (length(id) = 36),
    epoch      bigint  NOT NULL CHECK (epoch >= 1),
    generation bigint  NOT NULL CHECK (generation >= 0),
    directory  bigint  NOT NULL CHECK (directory >= 0)
);

INSERT INTO edge.platform (one, id, epoch, generation, directory) VALUES (1, gen_random_uuid()::text, 1, 0, 0);

CREATE TRIGGER platform_monotonic BEFORE UPDATE ON edge.platform FOR EACH ROW
WHEN (NEW.generation < OLD.generation OR NEW.epoch < OLD.epoch OR NEW.directory < OLD.directory
      OR NEW.id <> OLD.id OR NEW.one <> OLD.one)
EXECUTE FUNCTION edge.refuse('epoch, generation and directory never go down, the id never changes');

CREATE TRIGGER platform_kept BEFORE DELETE OR TRUNCATE ON edge.platform FOR EACH STATEMENT
EXECUTE FUNCTION edge.refuse('the row is never deleted');

-- A hint to whoever listens that something which processes hold in memory changed.
-- +goose StatementBegin
CREATE FUNCTION edge.tell() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_notify('guardyn_edge', '');
    RETURN NULL;
END
$$;
-- +goose StatementEnd

CREATE TRIGGER platform_tell AFTER UPDATE ON edge.platform FOR EACH STATEMENT EXECUTE FUNCTION edge.tell();

-- What a node proved to have and this database does not know: it stops all signing until the epoch is raised.
CREATE TABLE edge.ahead (
    one        integer PRIMARY KEY CHECK (one = 1),
    epoch      bigint      NOT NULL CHECK (epoch >= 1),
    generation bigint      NOT NULL CHECK (generation >= 1),
    version    bigint      NOT NULL CHECK (version >= 1),
    node       text        NOT NULL,
    signed     text        NOT NULL,
    seen_at    timestamptz NOT NULL
);

-- Snapshot versions. A version is given out once, used or not.
CREATE SEQUENCE edge.config_version_seq AS bigint MINVALUE 1 NO CYCLE;

CREATE TABLE edge.plan (
    name     edge.bytewise PRIMARY KEY CHECK (name <> ''),
    ceilings text NOT NULL
);

INSERT INTO edge.plan (name, ceilings) VALUES ('standard', '{}');

CREATE TABLE edge.workspace (
    id         edge.bytewise PRIMARY KEY CHECK (id <> ''),
    name       edge.bytewise NOT NULL UNIQUE CHECK (name <> ''),
    plan       edge.bytewise NOT NULL REFERENCES edge.plan (name),
    created_at timestamptz   NOT NULL
);

CREATE INDEX workspace_plan ON edge.workspace (plan);

CREATE TABLE edge.app_user (
    id         edge.bytewise PRIMARY KEY CHECK (id <> ''),
    email      edge.bytewise NOT NULL UNIQUE CHECK (email <> ''),
    operator   boolean       NOT NULL,
    created_at timestamptz   NOT NULL
);

CREATE TABLE edge.membership (
    user_id      edge.bytewise NOT NULL REFERENCES edge.app_user (id) ON DELETE CASCADE,
    workspace_id edge.bytewise NOT NULL REFERENCES edge.workspace (id) ON DELETE CASCADE,
    role         text          NOT NULL CHECK (role IN ('viewer', 'editor', 'admin')),
    PRIMARY KEY (user_id, workspace_id)
);

CREATE INDEX membership_workspace ON edge.membership (workspace_id);

CREATE TABLE edge.node (
    id         edge.bytewise PRIMARY KEY CHECK (id <> ''),
    name       edge.bytewise NOT NULL UNIQUE CHECK (name <> ''),
    address    text          NOT NULL,
    created_at timestamptz   NOT NULL,
    last_seen  timestamptz,
    acked      text,
    acked_at   timestamptz,
    last_error text,
    keys       text, -- ids of the keys that it trusts, with commas between
    keys_at    timestamptz,
    fresh_at   timestamptz,
    CHECK ((keys IS NULL) = (keys_at IS NULL)),
    CHECK ((acked IS NULL) = (acked_at IS NULL))
);

CREATE TABLE edge.token (
    id           edge.bytewise PRIMARY KEY CHECK (id <> ''),
    name         text          NOT NULL,
    hash         bytea         NOT NULL UNIQUE CHECK (length(hash) = 32),
    user_id      edge.bytewise REFERENCES edge.app_user (id) ON DELETE CASCADE,
    node_id      edge.bytewise REFERENCES edge.node (id) ON DELETE CASCADE,
    workspace_id edge.bytewise REFERENCES edge.workspace (id) ON DELETE CASCADE,
    created_at   timestamptz   NOT NULL,
    expires_at   timestamptz,
    revoked_at   timestamptz,
    CHECK ((user_id IS NULL) <> (node_id IS NULL)),
    CHECK (node_id IS NULL OR workspace_id IS NULL)
);

CREATE INDEX token_user ON edge.token (user_id);
CREATE INDEX token_node ON edge.token (node_id);
CREATE INDEX token_newest ON edge.token (workspace_id, created_at, id);

CREATE TABLE edge.zone (
    id           edge.bytewise PRIMARY KEY CHECK (id ~ '^[0-9a-f-]{36}$'),
    workspace_id edge.bytewise NOT NULL REFERENCES edge.workspace (id),
    name         edge.bytewise NOT NULL CHECK (name <> ''),
    revision     bigint        NOT NULL CHECK (revision >= 1),
    records      bigint        NOT NULL CHECK (records >= 0),
    created_at   timestamptz   NOT NULL,
    CONSTRAINT zone_name UNIQUE (workspace_id, name)
);

-- content_key stands for content in the index: a TXT record may be larger than a btree entry.
CREATE TABLE edge.record (
    zone_id     edge.bytewise NOT NULL REFERENCES edge.zone (id) ON DELETE CASCADE,
    id          edge.bytewise NOT NULL CHECK (id <> ''),
    name        edge.bytewise NOT NULL CHECK (name <> ''),
    type        integer       NOT NULL CHECK (type BETWEEN 1 AND 65535),
    content     edge.bytewise NOT NULL,
    content_key edge.bytewise NOT NULL CHECK (length(content_key) = 32),
    ttl         integer CHECK (ttl >= 1),
    proxied     boolean       NOT NULL,
    PRIMARY KEY (zone_id, name, type, content_key),
    CONSTRAINT record_id UNIQUE (zone_id, id)
);

CREATE TABLE edge.object (
    zone_id  edge.bytewise NOT NULL REFERENCES edge.zone (id) ON DELETE CASCADE,
    kind     edge.bytewise NOT NULL CHECK (kind IN ('ruleset', 'list', 'pool', 'load_balancer', 'cache_policy',
                                                    'tls_host', 'function', 'settings')),
    name     edge.bytewise NOT NULL CHECK (name <> ''),
    body     text          NOT NULL,
    revision bigint        NOT NULL CHECK (revision >= 1),
    PRIMARY KEY (zone_id, kind, name)
);

CREATE TABLE edge.snapshot (
    version        bigint      PRIMARY KEY CHECK (version >= 1),
    parent_version bigint      NOT NULL CHECK (parent_version >= 0),
    content_hash   text        NOT NULL CHECK (content_hash ~ '^[0-9a-f]{64}$'),
    created_by     text        NOT NULL,
    message        text        NOT NULL,
    created_at     timestamptz NOT NULL,
    zones          bigint      NOT NULL CHECK (zones >= 0),
    bytes          bigint      NOT NULL CHECK (bytes >= 0),
    key_id         text        NOT NULL,
    payload_blake3 text        NOT NULL,
    signature      text        NOT NULL,
    activated_at   timestamptz,
    payload        bytea       NOT NULL
);

-- The payload is compressed already.
ALTER TABLE edge.snapshot ALTER COLUMN payload SET STORAGE EXTERNAL;

CREATE UNIQUE INDEX snapshot_one_active ON edge.snapshot ((activated_at IS NOT NULL)) WHERE activated_at IS NOT NULL;

CREATE TRIGGER snapshot_immutable BEFORE UPDATE ON edge.snapshot FOR EACH ROW
WHEN ((NEW.version, NEW.parent_version, NEW.content_hash, NEW.created_by, NEW.message, NEW.created_at, NEW.zones)
      IS DISTINCT FROM
      (OLD.version, OLD.parent_version, OLD.content_hash, OLD.created_by, OLD.message, OLD.created_at, OLD.zones))
EXECUTE FUNCTION edge.refuse('what a version is never changes');

-- Every move of the live pointer, append-only.
CREATE TABLE edge.activation (
    epoch      bigint      NOT NULL CHECK (epoch >= 1),
    generation bigint      NOT NULL CHECK (generation >= 1),
    version    bigint      NOT NULL REFERENCES edge.snapshot (version),
    kind       text        NOT NULL CHECK (kind IN ('apply', 'rollback', 'provisional', 'confirmed', 'reverted')),
    signed     text        NOT NULL,
    by         text        NOT NULL,
    at         timestamptz NOT NULL,
    PRIMARY KEY (epoch, generation)
);

CREATE INDEX activation_version ON edge.activation (version, epoch, generation);

CREATE TRIGGER activation_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON edge.activation FOR EACH STATEMENT
EXECUTE FUNCTION edge.refuse('append-only');

-- First answers of requests that may be repeated.
CREATE TABLE edge.replay (
    user_id edge.bytewise NOT NULL,
    key     edge.bytewise NOT NULL CHECK (key <> ''),
    request bytea         NOT NULL CHECK (length(request) = 32),
    answer  text          NOT NULL,
    at      timestamptz   NOT NULL,
    PRIMARY KEY (user_id, key)
);

CREATE INDEX replay_oldest ON edge.replay (at);

CREATE TABLE edge.audit (
    id        edge.bytewise PRIMARY KEY CHECK (id <> ''),
    at        timestamptz   NOT NULL,
    workspace edge.bytewise NOT NULL,
    actor     text          NOT NULL,
    origin    text          NOT NULL,
    action    text          NOT NULL,
    target    text          NOT NULL,
    outcome   text          NOT NULL,
    detail    text          NOT NULL
);

CREATE INDEX audit_newest ON edge.audit (at, id);
CREATE INDEX audit_workspace ON edge.audit (workspace, at, id);

CREATE TRIGGER audit_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON edge.audit FOR EACH STATEMENT
EXECUTE FUNCTION edge.refuse('append-only');
