-- +goose Up

-- Where the log of purges ends and where it begins. The number is taken under the lock of this row, so that no reader
-- sees a number before all that are smaller.
CREATE TABLE purge_log (
    one      INTEGER PRIMARY KEY CHECK (one = 1),
    head     INTEGER NOT NULL CHECK (head >= 0),
    head_id  TEXT    NOT NULL CHECK ((head = 0) = (head_id = '')),
    floor    INTEGER NOT NULL CHECK (floor BETWEEN 0 AND head), -- up to here purges are kept no more
    floor_id TEXT    NOT NULL CHECK ((floor = 0) = (floor_id = ''))
) STRICT;

INSERT INTO purge_log (one, head, head_id, floor, floor_id) VALUES (1, 0, '', 0, '');

-- +goose StatementBegin
CREATE TRIGGER purge_log_rises BEFORE UPDATE ON purge_log
WHEN NEW.head < OLD.head OR NEW.floor < OLD.floor OR NEW.one <> OLD.one
BEGIN
    SELECT RAISE(ABORT, 'purge_log: head and floor never go down');
END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER purge_log_kept BEFORE DELETE ON purge_log
BEGIN
    SELECT RAISE(ABORT, 'purge_log: the row is never deleted');
END;
-- +goose StatementEnd

-- REPLACE deletes without firing the trigger above; this one it does fire.
-- +goose StatementBegin
CREATE TRIGGER purge_log_single BEFORE INSERT ON purge_log WHEN EXISTS (SELECT 1 FROM purge_log)
BEGIN
    SELECT RAISE(ABORT, 'purge_log: there is one row');
END;
-- +goose StatementEnd

-- The purges from floor to head, without a gap. A zone's outlive it.
CREATE TABLE purge (
    sequence     INTEGER PRIMARY KEY CHECK (sequence >= 1),
    id           TEXT    NOT NULL UNIQUE CHECK (length(id) = 36),
    workspace_id TEXT    NOT NULL,
    zone_id      TEXT    NOT NULL,
    kind         TEXT    NOT NULL CHECK (kind IN ('url', 'prefix', 'tag', 'all')),
    value_list   TEXT    NOT NULL, -- JSON
    at           INTEGER NOT NULL,
    by           TEXT    NOT NULL
) STRICT;

CREATE INDEX purge_zone ON purge (zone_id, sequence);
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
