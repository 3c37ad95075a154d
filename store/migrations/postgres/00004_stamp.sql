-- +goose Up

-- What a zone's edits are told apart by, in this database and in one that is restored, promoted or made again from it:
-- a number may come twice then, a stamp never.
ALTER TABLE edge.zone ADD COLUMN stamp uuid NOT NULL DEFAULT gen_random_uuid();

-- +goose StatementBegin
CREATE FUNCTION edge.stamp() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.stamp := gen_random_uuid();
    RETURN NEW;
END
$$;
-- +goose StatementEnd

CREATE TRIGGER zone_stamp BEFORE UPDATE ON edge.zone FOR EACH ROW EXECUTE FUNCTION edge.stamp();
