-- +goose Up

-- What was written first comes first, whatever the clock of the process that wrote it says.
ALTER TABLE edge.audit ADD COLUMN position bigint GENERATED ALWAYS AS IDENTITY;

DROP INDEX edge.audit_newest;
DROP INDEX edge.audit_workspace;
CREATE UNIQUE INDEX audit_newest ON edge.audit (position);
CREATE INDEX audit_workspace ON edge.audit (workspace, position);

-- Of one process of a node, the acknowledgement with the greater number is the newer one; 0: it has none.
ALTER TABLE edge.node
    ADD COLUMN acked_boot     text   NOT NULL DEFAULT '',
    ADD COLUMN acked_sequence bigint NOT NULL DEFAULT 0 CHECK (acked_sequence >= 0);
