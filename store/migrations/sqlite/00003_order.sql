-- +goose Up

-- What was written first comes first, whatever the clock of the process that wrote it says.
CREATE TABLE audit_in_order (
    position  INTEGER PRIMARY KEY,
    id        TEXT    NOT NULL UNIQUE CHECK (id <> ''),
    at        INTEGER NOT NULL,
    workspace TEXT    NOT NULL,
    actor     TEXT    NOT NULL,
    origin    TEXT    NOT NULL,
    action    TEXT    NOT NULL,
    target    TEXT    NOT NULL,
    outcome   TEXT    NOT NULL,
    detail    TEXT    NOT NULL
) STRICT;

INSERT INTO audit_in_order (id, at, workspace, actor, origin, action, target, outcome, detail)
SELECT id, at, workspace, actor, origin, action, target, outcome, detail FROM audit ORDER BY rowid;

DROP TABLE audit; -- its indexes and triggers too
ALTER TABLE audit_in_order RENAME TO audit;

CREATE INDEX audit_workspace ON audit (workspace, position);

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

-- REPLACE deletes without firing the trigger on deletion; this one it does fire.
-- +goose StatementBegin
CREATE TRIGGER audit_no_replace BEFORE INSERT ON audit
WHEN EXISTS (SELECT 1 FROM audit WHERE id = NEW.id OR position = NEW.position)
BEGIN
    SELECT RAISE(ABORT, 'audit: append-only');
END;
-- +goose StatementEnd

-- Of one process of a node, the acknowledgement with the greater number is the newer one; 0: it has none.
ALTER TABLE node ADD COLUMN acked_boot TEXT NOT NULL DEFAULT '';
ALTER TABLE node ADD COLUMN acked_sequence INTEGER NOT NULL DEFAULT 0 CHECK (acked_sequence >= 0);
