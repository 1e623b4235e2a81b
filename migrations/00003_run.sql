-- +goose Up

-- Every run is a row before it starts.
create table workflow_execution (
    workspace_id       text not null default 'default',
    workflow_id        uuid not null, -- version 7: ordered by time
    parent_workflow_id uuid,
    pattern_id         uuid,
    intent             text not null default '',
    implementation     jsonb,
    args               jsonb,
    options            jsonb,
    status             text not null check (status in
        ('running', 'awaiting_approval', 'suspended', 'succeeded', 'failed', 'cancelled', 'interrupted', 'rejected')),
    error              jsonb,
    result             bytea, -- JSON, zstd-compressed when that pays
    result_bytes       bigint not null default 0,
    result_expires_at  timestamptz,
    logs               text[] not null default '{}',
    owner              text not null default '',
    lease_until        timestamptz,
    started_at         timestamptz not null,
    finished_at        timestamptz,
    duration_ms        double precision not null default 0,
    gateway_version    text not null default '',
    client             jsonb,
    created_at         timestamptz not null default now(),
    updated_at         timestamptz not null default now(),
    primary key (workspace_id, workflow_id)
);
create index workflow_execution_started on workflow_execution (workspace_id, started_at desc, workflow_id desc);
create index workflow_execution_open on workflow_execution (workspace_id, owner, lease_until)
    where status in ('running', 'awaiting_approval', 'suspended');
create index workflow_execution_parent on workflow_execution (workspace_id, parent_workflow_id)
    where parent_workflow_id is not null;
create index workflow_execution_expiry on workflow_execution (result_expires_at) where result is not null;

-- Parents and children may be written in any order within one transaction.
create table capability_trace (
    workspace_id       text not null default 'default',
    id                 uuid not null, -- the workflow's id
    capability_id      uuid,
    capability_version integer,
    executed_path      text[] not null default '{}',
    path_hash          text not null default '',
    decisions          jsonb not null default '[]',
    loops              jsonb,
    task_results       jsonb not null default '[]',
    tools_used         text[] not null default '{}',
    arguments          jsonb,
    intent             text not null default '',
    success            boolean not null,
    duration_ms        double precision not null default 0,
    error              jsonb,
    priority           real not null default 0 check (priority between 0 and 1),
    parent_trace_id    uuid,
    exact              boolean not null default false,
    cache_hit          text not null default '',
    sandbox_level      text not null default '',
    created_at         timestamptz not null default now(),
    updated_at         timestamptz not null default now(),
    primary key (workspace_id, id),
    foreign key (workspace_id, parent_trace_id) references capability_trace deferrable initially deferred
);
create index capability_trace_capability on capability_trace (workspace_id, capability_id);
create index capability_trace_success on capability_trace (workspace_id, capability_id, success);
create index capability_trace_priority on capability_trace (workspace_id, capability_id, priority desc);
create index capability_trace_path on capability_trace using gin (executed_path);
create index capability_trace_created on capability_trace (workspace_id, created_at);
create index capability_trace_parent on capability_trace (workspace_id, parent_trace_id)
    where parent_trace_id is not null;

-- The journal of a run's calls and the store of their results in one. The time to
-- live is the result's: what became of a call is kept.
create table task_result (
    workspace_id text not null default 'default',
    workflow_id  uuid not null,
    task_id      text not null, -- the node
    occurrence   integer not null check (occurrence >= 1),
    seq          integer not null default 0,
    iteration    integer,
    parent_task  text not null default '',
    tool         text not null,
    args_hash    text not null default '',
    args         jsonb,
    status       text not null check (status in ('started', 'ok', 'error')),
    result       bytea, -- JSON, zstd-compressed when that pays
    bytes        bigint not null default 0,
    content_type text not null default '',
    error        jsonb,
    started_at   timestamptz not null,
    duration_ms  double precision not null default 0,
    expires_at   timestamptz,
    created_at   timestamptz not null default now(),
    updated_at   timestamptz not null default now(),
    primary key (workspace_id, workflow_id, task_id, occurrence),
    foreign key (workspace_id, workflow_id) references workflow_execution on delete cascade
);
create index task_result_expiry on task_result (expires_at) where result is not null;

create table approval (
    workspace_id text not null default 'default',
    id           uuid not null,
    workflow_id  uuid not null,
    status       text not null default 'pending' check (status in ('pending', 'approved', 'rejected', 'expired')),
    requested    jsonb not null,
    decided_by   text not null default '',
    decision     jsonb,
    reason       text not null default '',
    expires_at   timestamptz,
    decided_at   timestamptz,
    created_at   timestamptz not null default now(),
    updated_at   timestamptz not null default now(),
    primary key (workspace_id, id),
    foreign key (workspace_id, workflow_id) references workflow_execution on delete cascade
);
create index approval_workflow on approval (workspace_id, workflow_id);
create index approval_pending on approval (workspace_id, expires_at) where status = 'pending';

create table policy_rule (
    workspace_id text not null default 'default',
    id           bigint generated always as identity,
    pattern      text not null,
    effect       text not null check (effect in ('allow', 'ask', 'deny')),
    origin       text not null check (origin in ('config', 'person')),
    created_by   text not null default '',
    revoked_at   timestamptz,
    created_at   timestamptz not null default now(),
    updated_at   timestamptz not null default now(),
    primary key (workspace_id, id)
);
create index policy_rule_active on policy_rule (workspace_id, pattern) where revoked_at is null;

-- +goose Down
drop table policy_rule, approval, task_result, capability_trace, workflow_execution;
