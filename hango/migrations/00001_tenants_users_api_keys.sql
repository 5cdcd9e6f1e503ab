-- +goose Up
-- The roles are made by the runner: hango_app (login) is the product's, hango_system (no login) is what it becomes for
-- the few statements that cannot name a tenant. Neither owns anything, so forced row level security binds both.
grant usage on schema public to hango_app, hango_system;

create table tenants (
  id uuid not null,
  name text not null,
  quota_tokens bigint,
  rate_per_minute integer,
  trace_llm_content boolean not null default false,
  created_at timestamptz not null default now(),
  constraint tenants_pk primary key (id),
  constraint tenants_name_check check (name <> ''),
  constraint tenants_quota_tokens_check check (quota_tokens >= 0),
  constraint tenants_rate_per_minute_check check (rate_per_minute > 0)
);

create table users (
  tenant_id uuid not null,
  id uuid not null,
  name text not null,
  role text not null,
  disabled boolean not null default false,
  created_at timestamptz not null default now(),
  constraint users_pk primary key (tenant_id, id),
  constraint users_tenant_fk foreign key (tenant_id) references tenants (id),
  constraint users_name_check check (name <> ''),
  constraint users_role_check check (role in ('admin', 'member'))
);

-- `prefix` is the shown part of a key and its lookup; the secret is kept as a SHA-256 only.
create table api_keys (
  tenant_id uuid not null,
  id uuid not null,
  user_id uuid not null,
  name text not null,
  prefix text not null,
  secret_hash bytea not null,
  created_at timestamptz not null default now(),
  revoked_at timestamptz,
  constraint api_keys_pk primary key (tenant_id, id),
  constraint api_keys_prefix_key unique (prefix),
  constraint api_keys_user_fk foreign key (tenant_id, user_id) references users (tenant_id, id),
  constraint api_keys_prefix_check check (prefix ~ '^[a-z0-9]{8}$'),
  constraint api_keys_secret_hash_check check (octet_length(secret_hash) = 32)
);
create index api_keys_user_idx on api_keys (tenant_id, user_id);

-- The setting stands in a subquery so that it is read once a statement. An unset or spent setting ('') matches no row.
alter table tenants enable row level security;
alter table tenants force row level security;
create policy tenant_only on tenants
  using (id = (select nullif(current_setting('app.t', true), '')::uuid));
create policy system_all on tenants to hango_system using (true);

alter table users enable row level security;
alter table users force row level security;
create policy tenant_only on users
  using (tenant_id = (select nullif(current_setting('app.t', true), '')::uuid));
create policy system_all on users to hango_system using (true);

alter table api_keys enable row level security;
alter table api_keys force row level security;
create policy tenant_only on api_keys
  using (tenant_id = (select nullif(current_setting('app.t', true), '')::uuid));
create policy system_all on api_keys to hango_system using (true);

grant select, update (name, quota_tokens, rate_per_minute, trace_llm_content) on tenants to hango_app;
grant select, insert, update (name, role, disabled) on users to hango_app;
grant select, insert, update (revoked_at) on api_keys to hango_app;
grant select, insert on tenants to hango_system;
grant select on users, api_keys to hango_system;

-- +goose Down
drop table api_keys;
drop table users;
drop table tenants;
revoke usage on schema public from hango_app, hango_system;
