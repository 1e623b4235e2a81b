-- +goose Up
create extension if not exists vector;

create table server (
    workspace_id     text not null default 'default',
    name             text not null,
    config_hash      text not null default '',
    state            text not null default 'unknown',
    last_error       text not null default '',
    protocol_version text not null default '',
    instructions     text not null default '',
    last_seen_at     timestamptz,
    created_at       timestamptz not null default now(),
    updated_at       timestamptz not null default now(),
    primary key (workspace_id, name)
);

create table tool_schema (
    workspace_id    text not null default 'default',
    tool_id         text not null, -- server:tool
    server          text not null,
    name            text not null,
    description     text not null default '',
    input_schema    jsonb,
    output_schema   jsonb,
    observed_schema jsonb,
    observed_count  bigint not null default 0 check (observed_count >= 0),
    annotations     jsonb not null default '{}',
    schema_hash     text not null default '',
    removed_at      timestamptz,
    calls           bigint not null default 0 check (calls >= 0),
    failures        bigint not null default 0 check (failures between 0 and calls),
    total_ms        double precision not null default 0,
    created_at      timestamptz not null default now(),
    updated_at      timestamptz not null default now(),
    primary key (workspace_id, tool_id),
    check (tool_id = server || ':' || name)
);
create index tool_schema_server on tool_schema (workspace_id, server);

-- The slot keeps the number of examples small, whoever writes them.
create table tool_example (
    workspace_id   text not null default 'default',
    tool_id        text not null,
    slot           smallint not null check (slot between 1 and 3),
    args_hash      text not null,
    args           jsonb not null,
    result_preview text not null default '',
    seen_at        timestamptz not null,
    created_at     timestamptz not null default now(),
    updated_at     timestamptz not null default now(),
    primary key (workspace_id, tool_id, slot),
    unique (workspace_id, tool_id, args_hash),
    foreign key (workspace_id, tool_id) references tool_schema on delete cascade
);

-- +goose Down
drop table tool_example, tool_schema, server;
