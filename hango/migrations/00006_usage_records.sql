-- +goose Up
-- What each model call cost. `estimated` when the provider's own count never came.
create table usage_records (
  tenant_id uuid not null,
  id uuid not null,
  purpose text not null,
  run_id uuid not null,
  session_id uuid not null,
  user_id uuid not null,
  model text not null,
  input_tokens bigint not null,
  output_tokens bigint not null,
  cache_read_tokens bigint not null,
  cache_write_tokens bigint not null,
  cost_usd numeric(18, 9),
  estimated boolean not null default false,
  created_at timestamptz not null default now(),
  constraint usage_records_pk primary key (tenant_id, id),
  constraint usage_records_run_fk foreign key (tenant_id, run_id) references runs (tenant_id, id),
  constraint usage_records_session_fk foreign key (tenant_id, session_id) references sessions (tenant_id, id),
  constraint usage_records_user_fk foreign key (tenant_id, user_id) references users (tenant_id, id),
  constraint usage_records_purpose_check check (purpose in ('run', 'subagent', 'summary')),
  constraint usage_records_tokens_check check (
    input_tokens >= 0 and output_tokens >= 0 and cache_read_tokens >= 0 and cache_write_tokens >= 0
  ),
  constraint usage_records_cost_usd_check check (cost_usd >= 0)
);
create index usage_records_created_at_idx on usage_records (tenant_id, created_at);
create index usage_records_session_idx on usage_records (tenant_id, session_id);
create index usage_records_run_idx on usage_records (tenant_id, run_id);

-- Tokens of a tenant in a calendar month (UTC): `reserved` is held by calls that are not settled yet.
create table quotas (
  tenant_id uuid not null,
  period date not null,
  used bigint not null default 0,
  reserved bigint not null default 0,
  constraint quotas_pk primary key (tenant_id, period),
  constraint quotas_tenant_fk foreign key (tenant_id) references tenants (id),
  constraint quotas_period_check check (extract(day from period) = 1),
  constraint quotas_used_check check (used >= 0),
  constraint quotas_reserved_check check (reserved >= 0)
);

alter table usage_records enable row level security;
alter table usage_records force row level security;
create policy tenant_only on usage_records
  using (tenant_id = (select nullif(current_setting('app.t', true), '')::uuid));
create policy system_all on usage_records to hango_system using (true);

alter table quotas enable row level security;
alter table quotas force row level security;
create policy tenant_only on quotas
  using (tenant_id = (select nullif(current_setting('app.t', true), '')::uuid));
create policy system_all on quotas to hango_system using (true);

grant select, insert on usage_records to hango_app;
grant select, insert, update (used, reserved) on quotas to hango_app;

-- +goose Down
drop table quotas;
drop table usage_records;
