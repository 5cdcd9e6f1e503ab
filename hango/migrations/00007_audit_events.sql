-- +goose Up
-- Who changed what. The app may add and read, never change. `detail` holds ids and names of fields, never content. No
-- key to the target: an event outlives what it is about.
create table audit_events (
  tenant_id uuid not null,
  id uuid not null,
  action text not null,
  target_kind text not null,
  target_id uuid,
  user_id uuid,
  detail jsonb not null,
  created_at timestamptz not null default now(),
  constraint audit_events_pk primary key (tenant_id, id),
  constraint audit_events_tenant_fk foreign key (tenant_id) references tenants (id),
  constraint audit_events_user_fk foreign key (tenant_id, user_id) references users (tenant_id, id),
  constraint audit_events_action_check check (action ~ '^[a-z_]+[.][a-z_]+$'),
  constraint audit_events_detail_check check (jsonb_typeof(detail) = 'object')
);

alter table audit_events enable row level security;
alter table audit_events force row level security;
create policy tenant_only on audit_events
  using (tenant_id = (select nullif(current_setting('app.t', true), '')::uuid));

grant select, insert on audit_events to hango_app;

-- +goose Down
drop table audit_events;
