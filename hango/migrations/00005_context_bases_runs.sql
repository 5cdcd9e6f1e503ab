-- +goose Up
-- What a request is made of, by id: everything it names is append-only or versioned, so a few hundred bytes are enough
-- to assemble it again. `file_version_ids` cannot be a foreign key; its rows are never deleted. The override set gets
-- its key with the table of override sets.
create table context_bases (
  tenant_id uuid not null,
  id uuid not null,
  session_id uuid not null,
  agent_version_id uuid not null,
  through_seq integer not null,
  summary_id uuid,
  override_set_id uuid,
  file_version_ids uuid[] not null,
  hash bytea not null,
  created_at timestamptz not null default now(),
  constraint context_bases_pk primary key (tenant_id, id),
  constraint context_bases_hash_key unique (tenant_id, hash),
  constraint context_bases_session_fk foreign key (tenant_id, session_id) references sessions (tenant_id, id),
  constraint context_bases_agent_version_fk
    foreign key (tenant_id, agent_version_id) references agent_versions (tenant_id, id),
  constraint context_bases_summary_fk
    foreign key (tenant_id, session_id, summary_id) references summaries (tenant_id, session_id, id),
  constraint context_bases_through_seq_check check (through_seq >= 0),
  constraint context_bases_hash_check check (octet_length(hash) = 32)
);
create index context_bases_session_idx on context_bases (tenant_id, session_id);

create table runs (
  tenant_id uuid not null,
  id uuid not null,
  session_id uuid not null,
  user_id uuid not null,
  status text not null,
  turns integer not null default 0,
  stop_reason text,
  error_code text,
  created_at timestamptz not null default now(),
  started_at timestamptz,
  finished_at timestamptz,
  constraint runs_pk primary key (tenant_id, id),
  constraint runs_session_key unique (tenant_id, session_id, id),
  constraint runs_session_fk foreign key (tenant_id, session_id) references sessions (tenant_id, id),
  constraint runs_user_fk foreign key (tenant_id, user_id) references users (tenant_id, id),
  constraint runs_status_check check (
    status in ('queued', 'running', 'succeeded', 'failed', 'timed_out', 'cancelled', 'requires_action')
  ),
  constraint runs_finished_at_check check ((status in ('queued', 'running')) = (finished_at is null)),
  constraint runs_turns_check check (turns >= 0)
);
-- One run at a time in a session.
create unique index runs_active_idx on runs (tenant_id, session_id) where status in ('queued', 'running');

-- squawk-ignore adding-foreign-key-constraint, constraint-missing-not-valid
alter table sessions add constraint sessions_last_run_fk
  foreign key (tenant_id, id, last_run_id) references runs (tenant_id, session_id, id);
-- squawk-ignore adding-foreign-key-constraint, constraint-missing-not-valid
alter table messages add constraint messages_run_fk
  foreign key (tenant_id, session_id, run_id) references runs (tenant_id, session_id, id);

alter table context_bases enable row level security;
alter table context_bases force row level security;
create policy tenant_only on context_bases
  using (tenant_id = (select nullif(current_setting('app.t', true), '')::uuid));

alter table runs enable row level security;
alter table runs force row level security;
create policy tenant_only on runs
  using (tenant_id = (select nullif(current_setting('app.t', true), '')::uuid));
-- A worker looks for work across tenants. It gets its grants with the statements that need them.
create policy system_all on runs to hango_system using (true);

grant select, insert on context_bases to hango_app;
grant select, insert, update (status, turns, stop_reason, error_code, started_at, finished_at) on runs to hango_app;

-- +goose Down
alter table messages drop constraint messages_run_fk;
alter table sessions drop constraint sessions_last_run_fk;
drop table runs;
drop table context_bases;
