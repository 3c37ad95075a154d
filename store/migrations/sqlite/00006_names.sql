-- +goose Up

-- Purges go by the name of their zone. The log begins anew: a node that has not done all of it drops everything that it cached.
UPDATE purge_log SET floor = head, floor_id = head_id;

DROP TABLE purge; -- its indexes and triggers too

-- The purges from floor to head, without a gap. A zone's outlive it.
CREATE TABLE purge (
    sequence     INTEGER PRIMARY KEY CHECK (sequence >= 1),
    id           TEXT    NOT NULL UNIQUE CHECK (length(id) = 36),
    workspace_id TEXT    NOT NULL,
    zone         TEXT    NOT NULL CHECK (zone <> ''), -- its name
    kind         TEXT    NOT NULL CHECK (kind IN ('url', 'prefix', 'tag', 'all')),
    value_list   TEXT    NOT NULL, -- JSON
    at           INTEGER NOT NULL,
    by           TEXT    NOT NULL
) STRICT;

CREATE INDEX purge_zone ON purge (workspace_id, zone, sequence);
CREATE INDEX purge_workspace ON purge (workspace_id, at);

-- +goose StatementBegin
CREATE TRIGGER purge_no_update BEFORE UPDATE ON purge
BEGIN
    SELECT RAISE(ABORT, 'purge: what was purged never changes');
END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER purge_below_floor BEFORE DELETE ON purge WHEN OLD.sequence > (SELECT floor FROM purge_log)
BEGIN
    SELECT RAISE(ABORT, 'purge: nodes may not have it yet');
END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER purge_next BEFORE INSERT ON purge
WHEN NOT EXISTS (SELECT 1 FROM purge_log WHERE head = NEW.sequence AND head_id = NEW.id)
  OR EXISTS (SELECT 1 FROM purge WHERE sequence = NEW.sequence)
BEGIN
    SELECT RAISE(ABORT, 'purge: its number is not the one that was taken');
END;
-- +goose StatementEnd

-- The octets of a zone's name in reverse order, so that the zones below a name are one range of an index.
ALTER TABLE zone ADD COLUMN backwards TEXT NOT NULL DEFAULT '';

UPDATE zone SET backwards = (
    WITH RECURSIVE r(i, s) AS (SELECT length(zone.name), '' UNION ALL SELECT i - 1, s || substr(zone.name, i, 1) FROM r WHERE i > 0)
    SELECT s FROM r WHERE i = 0);

CREATE INDEX zone_backwards ON zone (backwards);

-- Whether a zone may have its name follows from all other zones of the platform: this row is locked by who makes one.
CREATE TABLE zone_names (
    one  INTEGER PRIMARY KEY CHECK (one = 1),
    made INTEGER NOT NULL CHECK (made >= 0)
) STRICT;

INSERT INTO zone_names (one, made) VALUES (1, 0);

-- +goose StatementBegin
CREATE TRIGGER zone_names_kept BEFORE DELETE ON zone_names
BEGIN
    SELECT RAISE(ABORT, 'zone_names: the row is never deleted');
END;
-- +goose StatementEnd
