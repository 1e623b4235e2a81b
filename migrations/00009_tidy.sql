-- +goose Up
-- Results that are found by a like intent are kept in memory only: they are off by
-- default, live for an hour, and stand in no other gateway's way.
drop table intent_cache;

-- +goose Down
create table intent_cache (
    workspace_id text not null default 'default',
    intent_ref   text not null,
    params_hash  text not null,
    workflow_id  uuid not null,
    expires_at   timestamptz not null,
    created_at   timestamptz not null default now(),
    updated_at   timestamptz not null default now(),
    primary key (workspace_id, intent_ref, params_hash),
    foreign key (workspace_id, workflow_id) references workflow_execution on delete cascade
);
create index intent_cache_expiry on intent_cache (expires_at);
create index intent_cache_workflow on intent_cache (workspace_id, workflow_id);
