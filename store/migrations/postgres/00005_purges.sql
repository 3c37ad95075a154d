-- +goose Up

-- Where the log of purges ends and where it begins. The number is taken under the lock of this row, so that no reader
-- sees a number before all that are smaller.
CREATE TABLE edge.purge_log (
    one      integer       PRIMARY KEY CHECK (one = 1),
    head     bigint        NOT NULL CHECK (head >= 0),
    head_id  edge.bytewise NOT NULL CHECK ((head = 0) = (head_id = '')),
    floor    bigint        NOT NULL CHECK (floor BETWEEN 0 AND head), -- up to here purges are kept no more
    floor_id edge.bytewise NOT NULL CHECK ((floor = 0) = (floor_id = ''))
);

INSERT INTO edge.purge_log (one, head, head_id, floor, floor_id) VALUES (1, 0, '', 0, '');

CREATE TRIGGER purge_log_rises BEFORE UPDATE ON edge.purge_log FOR EACH ROW
WHEN (NEW.head < OLD.head OR NEW.floor < OLD.floor OR NEW.one <> OLD.one)
EXECUTE FUNCTION edge.refuse('head and floor never go down');

CREATE TRIGGER purge_log_kept BEFORE DELETE OR TRUNCATE ON edge.purge_log FOR EACH STATEMENT
EXECUTE FUNCTION edge.refuse('the row is never deleted');

CREATE TRIGGER purge_log_tell AFTER UPDATE ON edge.purge_log FOR EACH STATEMENT EXECUTE FUNCTION edge.tell();

-- The purges from floor to head, without a gap. A zone's outlive it.
CREATE TABLE edge.purge (
    sequence     bigint        PRIMARY KEY CHECK (sequence >= 1),
    id           edge.bytewise NOT NULL UNIQUE CHECK (length(id) = 36),
    workspace_id edge.bytewise NOT NULL,
    zone_id      edge.bytewise NOT NULL,
    kind         text          NOT NULL CHECK (kind IN ('url', 'prefix', 'tag', 'all')),
    value_list   text          NOT NULL, -- JSON
    at           timestamptz   NOT NULL,
    by           text          NOT NULL
);

CREATE INDEX purge_zone ON edge.purge (zone_id, sequence);
CREATE INDEX purge_workspace ON edge.purge (workspace_id, at);

CREATE TRIGGER purge_no_update BEFORE UPDATE OR TRUNCATE ON edge.purge FOR EACH STATEMENT
EXECUTE FUNCTION edge.refuse('what was purged never changes');

-- +goose StatementBegin
CREATE FUNCTION edge.purge_in_order() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'DELETE' THEN
        IF OLD.sequence > (SELECT floor FROM edge.purge_log) THEN
            RAISE EXCEPTION 'purge: nodes may not have it yet' USING ERRCODE = 'integrity_constraint_violation';
        END IF;
        RETURN OLD;
    END IF;
    IF NOT EXISTS (SELECT 1 FROM edge.purge_log WHERE head = NEW.sequence AND head_id = NEW.id) THEN
        RAISE EXCEPTION 'purge: its number is not the one that was taken' USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    RETURN NEW;
END
$$;
-- +goose StatementEnd

CREATE TRIGGER purge_in_order BEFORE INSERT OR DELETE ON edge.purge FOR EACH ROW EXECUTE FUNCTION edge.purge_in_order();
