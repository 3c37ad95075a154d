-- +goose Up

-- What a zone's edits are told apart by, in this database and in one that is restored or made again from it: a number
-- may come twice then, a stamp never.
ALTER TABLE zone ADD COLUMN stamp BLOB NOT NULL DEFAULT x'';

UPDATE zone SET stamp = randomblob(16);

-- +goose StatementBegin
CREATE TRIGGER zone_stamp_new AFTER INSERT ON zone
BEGIN
    UPDATE zone SET stamp = randomblob(16) WHERE id = NEW.id;
END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER zone_stamp AFTER UPDATE OF id, workspace_id, name, revision, records, created_at ON zone
BEGIN
    UPDATE zone SET stamp = randomblob(16) WHERE id = NEW.id;
END;
-- +goose StatementEnd
