-- +goose Up
-- From what a run's randomness follows: a resumed run sees the same again.
alter table workflow_execution add column seed bigint not null default 0;

-- What is asked of a person: for a whole run, for one call of it, or after a layer.
alter table approval add column kind text not null default 'run' check (kind in ('run', 'call', 'layer'));

-- A person's rule for a pattern is there once.
create unique index policy_rule_person on policy_rule (workspace_id, pattern, effect) where revoked_at is null and origin = 'person';

-- +goose Down
drop index policy_rule_person;
alter table approval drop column kind;
alter table workflow_execution drop column seed;
