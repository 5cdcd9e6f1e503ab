-- +goose Up
-- An agent is a name and a pointer; all that a request takes from it is in a version, which never changes.
create table agents (
  tenant_id uuid not null,
  id uuid not null,
  name text not null,
  shared boolean not null,
  model text not null,
  current_version_id uuid not null,
  created_by uuid not null,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  deleted_at timestamptz,
  constraint agents_pk primary key (tenant_id, id),
  constraint agents_created_by_fk foreign key (tenant_id, created_by) references users (tenant_id, id),
  constraint agents_name_check check (name <> '')
);
create index agents_created_by_idx on agents (tenant_id, created_by);

-- `definition` is JSON text: digits and key order of tool schemas survive. `memory` and `builtin` repeat what SQL must
-- see of it: which files a request of this version needs.
create table agent_versions (
  tenant_id uuid not null,
  id uuid not null,
  agent_id uuid not null,
  number integer not null,
  definition text not null,
  memory text[] not null,
  builtin text[] not null,
  created_by uuid not null,
  created_at timestamptz not null default now(),
  constraint agent_versions_pk primary key (tenant_id, id),
  constraint agent_versions_agent_key unique (tenant_id, agent_id, id),
  constraint agent_versions_number_key unique (tenant_id, agent_id, number),
  constraint agent_versions_agent_fk foreign key (tenant_id, agent_id) references agents (tenant_id, id),
  constraint agent_versions_created_by_fk foreign key (tenant_id, created_by) references users (tenant_id, id),
  constraint agent_versions_number_check check (number > 0)
);

-- Deferred, because an agent and its first version point at each other.
-- squawk-ignore adding-foreign-key-constraint, constraint-missing-not-valid
alter table agents add constraint agents_current_version_fk
  foreign key (tenant_id, id, current_version_id) references agent_versions (tenant_id, agent_id, id)
  deferrable initially deferred;

alter table agents enable row level security;
alter table agents force row level security;
create policy tenant_only on agents
  using (tenant_id = (select nullif(current_setting('app.t', true), '')::uuid));

alter table agent_versions enable row level security;
alter table agent_versions force row level security;
create policy tenant_only on agent_versions
  using (tenant_id = (select nullif(current_setting('app.t', true), '')::uuid));

grant select, insert, update (name, shared, model, current_version_id, updated_at, deleted_at) on agents to hango_app;
grant select, insert on agent_versions to hango_app;

-- +goose Down
alter table agents drop constraint agents_current_version_fk;
drop table agent_versions;
drop table agents;
