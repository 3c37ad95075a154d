-- +goose Up

-- Purges go by the name of their zone. The log begins anew: a node that has not done all of it drops everything that it cached.
UPDATE edge.purge_log SET floor = head, floor_id = head_id;

DROP TABLE edge.purge; -- its indexes and triggers too

-- The purges from floor to head, without a gap. A zone's outlive it.
CREATE TABLE edge.purge (
    sequence     bigint        PRIMARY KEY CHECK (sequence >= 1),
    id           edge.bytewise NOT NULL UNIQUE CHECK (length(id) = 36),
    workspace_id edge.bytewise NOT NULL,
    zone         edge.bytewise NOT NULL CHECK (zone <> ''), -- its name
    kind         text          NOT NULL CHECK (kind IN ('url', 'prefix', 'tag', 'all')),
    value_list   text          NOT NULL, -- JSON
    at           timestamptz   NOT NULL,
    by           text          NOT NULL
);

CREATE INDEX purge_zone ON edge.purge (workspace_id, zone, sequence);
CREATE INDEX purge_workspace ON edge.purge (workspace_id, at);

CREATE TRIGGER purge_no_update BEFORE UPDATE OR TRUNCATE ON edge.purge FOR EACH STATEMENT
EXECUTE FUNCTION edge.refuse('what was purged never changes');

CREATE TRIGGER purge_in_order BEFORE INSERT OR DELETE ON edge.purge FOR EACH ROW EXECUTE FUNCTION edge.purge_in_order();

-- The octets of a zone's name in reverse order, so that the zones below a name are one range of an index.
ALTER TABLE edge.zone ADD COLUMN backwards edge.bytewise NOT NULL DEFAULT '';

UPDATE edge.zone SET backwards = reverse(name);

CREATE INDEX zone_backwards ON edge.zone (backwards);

-- Whether a zone may have its name follows from all other zones of the platform: this row is locked by who makes one.
CREATE TABLE edge.zone_names (
    one  integer PRIMARY KEY CHECK (one = 1),
    made bigint  NOT NULL CHECK (made >= 0)
);

INSERT INTO edge.zone_names (one, made) VALUES (1, 0);

CREATE TRIGGER zone_names_kept BEFORE DELETE OR TRUNCATE ON edge.zone_names FOR EACH STATEMENT
EXECUTE FUNCTION edge.refuse('the row is never deleted');
