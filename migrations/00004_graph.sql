-- +goose Up

-- Edges between tools and capabilities, by their ids.
create table tool_dependency (
    workspace_id     text not null default 'default',
    from_id          text not null,
    to_id            text not null,
    edge_type        text not null check (edge_type in ('dependency', 'contains', 'provides', 'sequence')),
    observed_count   bigint not null default 0 check (observed_count >= 0),
    weight           double precision not null default 0,
    source           text not null check (source in ('observed', 'inferred', 'template')),
    coverage         text not null default '' check (coverage in ('', 'strict', 'partial', 'optional')),
    field_mapping    jsonb not null default '[]',
    last_observed_at timestamptz,
    created_at       timestamptz not null default now(),
    updated_at       timestamptz not null default now(),
    primary key (workspace_id, from_id, to_id, edge_type),
    check (from_id <> to_id)
);
create index tool_dependency_to on tool_dependency (workspace_id, to_id);

-- One table for one number of dimensions; a model with another has its own.
create table embedding (
    workspace_id text not null default 'default',
    kind         text not null check (kind in ('tool', 'capability', 'intent')),
    ref_id       text not null,
    model        text not null,
    text_hash    text not null,
    vec          vector(384) not null,
    uses         bigint not null default 0 check (uses >= 0),
    created_at   timestamptz not null default now(),
    updated_at   timestamptz not null default now(),
    primary key (workspace_id, kind, ref_id, model)
);
create index embedding_text on embedding (workspace_id, model, text_hash);
-- Made empty: building it over many rows would stop the embedded database for long.
create index embedding_vec on embedding using hnsw (vec vector_cosine_ops);

create table graph_snapshot (
    workspace_id text not null default 'default',
    version      bigint not null,
    results      jsonb not null default '{}',
    data         bytea,
    created_at   timestamptz not null default now(),
    updated_at   timestamptz not null default now(),
    primary key (workspace_id, version)
);

-- +goose Down
drop table graph_snapshot, embedding, tool_dependency;
