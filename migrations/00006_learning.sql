-- +goose Up
-- Saved although some of its tools had failed.
alter table workflow_pattern add column partial boolean not null default false;

-- Every run rewrites these rows. With room on their pages the new version stays
-- beside the old one, and no index grows.
alter table workflow_pattern set (fillfactor = 40);
alter table tool_dependency set (fillfactor = 60);
alter table tool_schema set (fillfactor = 60);

-- A program is found by its shape in whichever version it is. What its runs have
-- taught is kept with each version that is not the head; the head's is in
-- workflow_pattern. activated_at is null until the version was the head.
alter table capability_version
    add column hash_shape   text not null default '',
    add column learning     jsonb,
    add column activated_at timestamptz;
create index capability_version_shape on capability_version (workspace_id, hash_shape);

-- +goose Down
alter table workflow_pattern reset (fillfactor);
alter table tool_dependency reset (fillfactor);
alter table tool_schema reset (fillfactor);
drop index capability_version_shape;
alter table capability_version drop column hash_shape, drop column learning, drop column activated_at;
alter table workflow_pattern drop column partial;
