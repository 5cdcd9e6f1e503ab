-- +goose Up
-- An agent's text files: memory, skills, workspace. A deleted file keeps its row and its versions, so that what was
-- sent then can be rebuilt. Paths sort by code point, the same on every machine.
create table files (
  tenant_id uuid not null,
  agent_id uuid not null,
  path text collate "C" not null,
  current_version_id uuid not null,
  version integer not null,
  updated_at timestamptz not null default now(),
  deleted_at timestamptz,
  constraint files_pk primary key (tenant_id, agent_id, path),
  constraint files_agent_fk foreign key (tenant_id, agent_id) references agents (tenant_id, id),
  constraint files_path_check check (path like '/_%'),
  constraint files_version_check check (version > 0)
);

create table file_versions (
  tenant_id uuid not null,
  id uuid not null,
  agent_id uuid not null,
  path text collate "C" not null,
  number integer not null,
  content text not null,
  chars integer not null,
  created_by uuid not null,
  created_at timestamptz not null default now(),
  constraint file_versions_pk primary key (tenant_id, id),
  constraint file_versions_file_key unique (tenant_id, agent_id, path, id),
  constraint file_versions_number_key unique (tenant_id, agent_id, path, number),
  constraint file_versions_file_fk
    foreign key (tenant_id, agent_id, path) references files (tenant_id, agent_id, path),
  constraint file_versions_created_by_fk foreign key (tenant_id, created_by) references users (tenant_id, id),
  constraint file_versions_number_check check (number > 0),
  constraint file_versions_chars_check check (chars >= 0)
);

-- Deferred, because a file and its first version point at each other.
-- squawk-ignore adding-foreign-key-constraint, constraint-missing-not-valid
alter table files add constraint files_current_version_fk
  foreign key (tenant_id, agent_id, path, current_version_id)
  references file_versions (tenant_id, agent_id, path, id)
  deferrable initially deferred;

alter table files enable row level security;
alter table files force row level security;
create policy tenant_only on files
  using (tenant_id = (select nullif(current_setting('app.t', true), '')::uuid));

alter table file_versions enable row level security;
alter table file_versions force row level security;
create policy tenant_only on file_versions
  using (tenant_id = (select nullif(current_setting('app.t', true), '')::uuid));

grant select, insert, update (current_version_id, version, updated_at, deleted_at) on files to hango_app;
grant select, insert on file_versions to hango_app;

-- +goose Down
alter table files drop constraint files_current_version_fk;
drop table file_versions;
drop table files;
