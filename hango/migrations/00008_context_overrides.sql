-- +goose Up
-- What people left out or replaced for later model calls. A set is replaced as a whole: rows are added and deleted, never
-- changed. `against` is the hash of the part's text that the override was made against ('' when there was no such part);
-- `position` keeps the order in which the set was given.
create table context_overrides (
  tenant_id uuid not null,
  id uuid not null,
  agent_id uuid,
  session_id uuid,
  position integer not null,
  part text not null,
  action text not null,
  replacement text,
  against text not null,
  created_by uuid not null,
  created_at timestamptz not null default now(),
  constraint context_overrides_pk primary key (tenant_id, id),
  constraint context_overrides_agent_fk
    foreign key (tenant_id, agent_id) references agents (tenant_id, id) on delete cascade,
  constraint context_overrides_session_fk
    foreign key (tenant_id, session_id) references sessions (tenant_id, id) on delete cascade,
  constraint context_overrides_created_by_fk foreign key (tenant_id, created_by) references users (tenant_id, id),
  constraint context_overrides_position_check check (position >= 0),
  constraint context_overrides_action_check check (action in ('exclude', 'replace')),
  constraint context_overrides_target_check check (num_nonnulls(agent_id, session_id) = 1),
  constraint context_overrides_replacement_check check ((action = 'replace') = (replacement is not null)),
  constraint context_overrides_agent_part_check
    check (agent_id is null or part like 'system:%' or part like 'tool:%'),
  constraint context_overrides_session_part_check
    check (session_id is null or part like 'message:%' or part = 'summary')
);
create unique index context_overrides_agent_part_idx on context_overrides (tenant_id, agent_id, part)
  where agent_id is not null;
create unique index context_overrides_session_part_idx on context_overrides (tenant_id, session_id, part)
  where session_id is not null;

alter table context_overrides enable row level security;
alter table context_overrides force row level security;
create policy tenant_only on context_overrides
  using (tenant_id = (select nullif(current_setting('app.t', true), '')::uuid));

grant select, insert, delete on context_overrides to hango_app;

-- A try is a model call outside of any run.
-- squawk-ignore ban-drop-not-null
alter table usage_records alter column run_id drop not null;
alter table usage_records drop constraint usage_records_purpose_check;
-- squawk-ignore constraint-missing-not-valid
alter table usage_records add constraint usage_records_purpose_check
  check (purpose in ('run', 'subagent', 'summary', 'context_try'));

-- +goose Down
-- What calls outside of a run cost is billing data: it is moved aside before the constraints that it breaks come back.
-- Row level security is not forced meanwhile, or the owner of the tables, who has no tenant, would move nothing. Without
-- such rows there is nothing to keep, and no table for it.
do $$
begin
  alter table usage_records no force row level security;
  if exists (select from usage_records where purpose = 'context_try' or run_id is null) then
    create table if not exists usage_records_removed (
      tenant_id uuid not null,
      id uuid not null,
      purpose text not null,
      run_id uuid,
      session_id uuid not null,
      user_id uuid not null,
      model text not null,
      input_tokens bigint not null,
      output_tokens bigint not null,
      cache_read_tokens bigint not null,
      cache_write_tokens bigint not null,
      cost_usd numeric(18, 9),
      estimated boolean not null,
      created_at timestamptz not null,
      constraint usage_records_removed_pk primary key (tenant_id, id)
    );
    alter table usage_records_removed no force row level security;
    with removed as (
      delete from usage_records
      where purpose = 'context_try' or run_id is null
      returning
        tenant_id, id, purpose, run_id, session_id, user_id, model, input_tokens, output_tokens, cache_read_tokens,
        cache_write_tokens, cost_usd, estimated, created_at
    )
    insert into usage_records_removed (
      tenant_id, id, purpose, run_id, session_id, user_id, model, input_tokens, output_tokens, cache_read_tokens,
      cache_write_tokens, cost_usd, estimated, created_at
    )
    select
      tenant_id, id, purpose, run_id, session_id, user_id, model, input_tokens, output_tokens, cache_read_tokens,
      cache_write_tokens, cost_usd, estimated, created_at
    from removed;
    -- Without a policy nobody but the owner, with the force lifted, reads a row.
    alter table usage_records_removed enable row level security;
    alter table usage_records_removed force row level security;
  end if;
  alter table usage_records force row level security;
end
$$;
alter table usage_records drop constraint usage_records_purpose_check;
-- squawk-ignore constraint-missing-not-valid
alter table usage_records add constraint usage_records_purpose_check
  check (purpose in ('run', 'subagent', 'summary'));
-- squawk-ignore adding-not-nullable-field
alter table usage_records alter column run_id set not null;
drop table context_overrides;
