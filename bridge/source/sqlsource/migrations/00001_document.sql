-- +goose Up
CREATE TABLE bridge.document (
    name       text        PRIMARY KEY CHECK (name ~ '^[A-Za-z0-9._-]{1,64}$'),
    version    bigint      NOT NULL CHECK (version BETWEEN 0 AND 9007199254740991),
    body       text        NOT NULL CHECK (octet_length(body) <= 358400),
    -- Another one for each row: a document that was deleted and inserted again is told apart from one that was changed.
    lineage    uuid        NOT NULL DEFAULT gen_random_uuid(),
    changed_at timestamptz NOT NULL DEFAULT clock_timestamp()
);

-- +goose Down
DROP TABLE bridge.document;
