-- +goose Up
create table capability_cache (
    workspace_id  text not null default 'default',
    capability_id uuid not null,
    version       integer not null,
    params_hash   text not null,
    result        bytea not null,
    expires_at    timestamptz not null,
    hit_count     bigint not null default 0 check (hit_count >= 0),
    created_at    timestamptz not null default now(),
    updated_at    timestamptz not null default now(),
    primary key (workspace_id, capability_id, version, params_hash),
    foreign key (workspace_id, capability_id) references workflow_pattern on delete cascade
);
create index capability_cache_expiry on capability_cache (expires_at);

create table intent_cache (
    workspace_id text not null default 'default',
    intent_ref   text not null, -- ref_id of an embedding of kind 'intent'
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

create table cache_invalidation_log (
    workspace_id        text not null default 'default',
    id                  bigint generated always as identity,
    trigger_type        text not null,
    tool_id             text,
    capability_id       uuid,
    entries_invalidated bigint not null default 0 check (entries_invalidated >= 0),
    created_at          timestamptz not null default now(),
    updated_at          timestamptz not null default now(),
    primary key (workspace_id, id)
);
create index cache_invalidation_log_created on cache_invalidation_log (workspace_id, created_at);

create table setting (
    workspace_id text not null default 'default',
    key          text not null,
    value        text not null,
    created_at   timestamptz not null default now(),
    updated_at   timestamptz not null default now(),
    primary key (workspace_id, key)
);

-- +goose Down
drop table setting, cache_invalidation_log, intent_cache, capability_cache;
