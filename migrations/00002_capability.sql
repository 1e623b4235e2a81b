-- +goose Up
create table workflow_pattern (
    workspace_id         text not null default 'default',
    pattern_id           uuid not null,
    name                 text not null,
    aliases              text[] not null default '{}',
    description          text not null default '',
    intent               text not null default '',
    hash_exact           text not null,
    hash_shape           text not null,
    version              integer not null default 1 check (version >= 1),
    state                text not null default 'candidate'
        check (state in ('candidate', 'active', 'promoted', 'degraded', 'retired')),
    state_reason         text not null default '',
    source               jsonb not null,
    parameters           jsonb,
    dag_structure        jsonb not null default '{}',
    cache_config         jsonb not null default '{}',
    usage_count          bigint not null default 0 check (usage_count >= 0),
    success_count        bigint not null default 0 check (success_count >= 0),
    failure_count        bigint not null default 0 check (failure_count >= 0),
    consecutive_failures integer not null default 0 check (consecutive_failures >= 0),
    success_rate         double precision not null default 0 check (success_rate between 0 and 1),
    avg_duration_ms      double precision not null default 0,
    promoted_at          timestamptz,
    origin               text not null default 'emergent' check (origin in ('emergent', 'manual', 'imported')),
    created_at           timestamptz not null default now(),
    updated_at           timestamptz not null default now(),
    primary key (workspace_id, pattern_id),
    unique (workspace_id, name),
    unique (workspace_id, hash_shape)
);
create index workflow_pattern_exact on workflow_pattern (workspace_id, hash_exact);
create index workflow_pattern_state on workflow_pattern (workspace_id, state);
create index workflow_pattern_aliases on workflow_pattern using gin (aliases);

create table capability_version (
    workspace_id     text not null default 'default',
    pattern_id       uuid not null,
    version          integer not null check (version >= 1),
    source           jsonb not null,
    parameters       jsonb,
    static_structure jsonb not null default '{}',
    hash_exact       text not null,
    reason           text not null default '',
    created_at       timestamptz not null default now(),
    updated_at       timestamptz not null default now(),
    primary key (workspace_id, pattern_id, version),
    foreign key (workspace_id, pattern_id) references workflow_pattern on delete cascade
);
create index capability_version_exact on capability_version (workspace_id, hash_exact);

-- That 'contains' has no cycle is the writer's to check.
create table capability_dependency (
    workspace_id text not null default 'default',
    from_pattern uuid not null,
    to_pattern   uuid not null,
    edge_type    text not null check (edge_type in ('contains', 'dependency', 'provides', 'sequence')),
    count        bigint not null default 1 check (count >= 0),
    created_at   timestamptz not null default now(),
    updated_at   timestamptz not null default now(),
    primary key (workspace_id, from_pattern, to_pattern, edge_type),
    foreign key (workspace_id, from_pattern) references workflow_pattern on delete cascade,
    foreign key (workspace_id, to_pattern) references workflow_pattern on delete cascade,
    check (from_pattern <> to_pattern)
);
create index capability_dependency_to on capability_dependency (workspace_id, to_pattern);

-- +goose Down
drop table capability_dependency, capability_version, workflow_pattern;
