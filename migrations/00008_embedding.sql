-- +goose Up
-- vec is what a thing is found by: the mean of its text's vector and of the intents
-- that it served. text_vec and used_vec are the two apart; they are null while there
-- were no uses, and vec is the text's. version grows with each change of the
-- workspace's vectors of a model, in the order of the commits, so that a gateway reads
-- what it has not seen. Tables for other numbers of dimensions are made when they are
-- needed: see store/embedding_space.go.
alter table embedding
    add column text_vec vector(384),
    add column used_vec vector(384),
    add column version  bigint not null default 0;
create index embedding_version on embedding (workspace_id, model, version);

-- What changed lately is looked for every few seconds.
create index tool_schema_updated on tool_schema (workspace_id, updated_at);
create index workflow_pattern_updated on workflow_pattern (workspace_id, updated_at);

-- +goose Down
drop index workflow_pattern_updated, tool_schema_updated, embedding_version;
alter table embedding drop column text_vec, drop column used_vec, drop column version;
