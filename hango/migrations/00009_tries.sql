-- +goose Up
-- Saved overrides as they were at one moment: content-addressed and never changed, so that a base can name them.
-- `overrides` is the JSON text of the list; it holds replacement texts.
create table override_sets (
  tenant_id uuid not null,
  id uuid not null,
  hash bytea not null,
  overrides text not null,
  created_at timestamptz not null default now(),
  constraint override_sets_pk primary key (tenant_id, id),
  constraint override_sets_hash_key unique (tenant_id, hash),
  constraint override_sets_tenant_fk foreign key (tenant_id) references tenants (id),
  constraint override_sets_hash_check check (octet_length(hash) = 32)
);
-- squawk-ignore adding-foreign-key-constraint, constraint-missing-not-valid
alter table context_bases add constraint context_bases_override_set_fk
  foreign key (tenant_id, override_set_id) references override_sets (tenant_id, id);

-- Many tries on one base. `remaining` counts those that have not ended: the row tells when the last one does.
create table try_batches (
  tenant_id uuid not null,
  id uuid not null,
  session_id uuid not null,
  user_id uuid not null,
  base_id uuid not null,
  label text,
  tries integer not null,
  remaining integer not null,
  created_at timestamptz not null default clock_timestamp(),
  finished_at timestamptz,
  constraint try_batches_pk primary key (tenant_id, id),
  constraint try_batches_session_key unique (tenant_id, session_id, id),
  constraint try_batches_session_fk foreign key (tenant_id, session_id) references sessions (tenant_id, id),
  constraint try_batches_user_fk foreign key (tenant_id, user_id) references users (tenant_id, id),
  constraint try_batches_base_fk foreign key (tenant_id, base_id) references context_bases (tenant_id, id),
  constraint try_batches_tries_check check (tries > 0),
  constraint try_batches_remaining_check check (remaining between 0 and tries),
  constraint try_batches_finished_at_check check ((remaining = 0) = (finished_at is not null))
);

-- What one model call changes on its base, and what came of it when it was accepted: the repeats of a variant share it.
-- `changes`, `sent` and `excluded` are JSON text of part ids; `texts` is JSON text of the caller's own words and the only
-- column with content. It is taken out, and the answers with it, when its `expires_at` and theirs are over (`purged_at`).
create table try_requests (
  tenant_id uuid not null,
  id uuid not null,
  session_id uuid not null,
  base_id uuid not null,
  batch_id uuid,
  variant integer,
  label text,
  model text not null,
  changes text not null,
  texts text,
  sent text not null,
  excluded text not null,
  request_sha256 text not null,
  tokens_before bigint not null,
  tokens_after bigint not null,
  max_output_tokens integer not null,
  expires_at timestamptz not null,
  purged_at timestamptz,
  constraint try_requests_pk primary key (tenant_id, id),
  constraint try_requests_session_key unique (tenant_id, session_id, id),
  constraint try_requests_session_fk foreign key (tenant_id, session_id) references sessions (tenant_id, id),
  constraint try_requests_base_fk foreign key (tenant_id, base_id) references context_bases (tenant_id, id),
  constraint try_requests_batch_fk
    foreign key (tenant_id, session_id, batch_id) references try_batches (tenant_id, session_id, id),
  constraint try_requests_variant_check check ((batch_id is null) = (variant is null)),
  constraint try_requests_tokens_check check (tokens_before >= 0 and tokens_after >= 0 and max_output_tokens > 0),
  constraint try_requests_purged_at_check check (purged_at is null or texts is null)
);
create unique index try_requests_variant_idx on try_requests (tenant_id, batch_id, variant) where batch_id is not null;
create index try_requests_expires_at_idx on try_requests (tenant_id, expires_at) where purged_at is null;

-- One model call that somebody asked for. The states and who may change what: docs/tries.md. `attempt` is the fencing
-- number of a claim; `called_at` is set before the first byte goes to the provider and taken back only when the provider
-- says that it did not take the call.
create table tries (
  tenant_id uuid not null,
  id uuid not null,
  session_id uuid not null,
  user_id uuid not null,
  api_key_id uuid not null,
  request_id uuid not null,
  batch_id uuid,
  status text not null default 'queued',
  attempt integer not null default 0,
  rescues integer not null default 0,
  deferrals integer not null default 0,
  lease_owner uuid,
  lease_until timestamptz,
  not_before timestamptz,
  queue_expires_at timestamptz not null,
  cancel_requested_at timestamptz,
  timeout_ms integer not null,
  quota_period date not null,
  reserved bigint not null,
  traceparent text,
  stop_reason text,
  error_code text,
  provider_status integer,
  provider_request_id text,
  created_at timestamptz not null default clock_timestamp(),
  started_at timestamptz,
  called_at timestamptz,
  finished_at timestamptz,
  constraint tries_pk primary key (tenant_id, id),
  constraint tries_session_fk foreign key (tenant_id, session_id) references sessions (tenant_id, id),
  constraint tries_user_fk foreign key (tenant_id, user_id) references users (tenant_id, id),
  constraint tries_api_key_fk foreign key (tenant_id, api_key_id) references api_keys (tenant_id, id),
  constraint tries_request_fk
    foreign key (tenant_id, session_id, request_id) references try_requests (tenant_id, session_id, id),
  constraint tries_batch_fk
    foreign key (tenant_id, session_id, batch_id) references try_batches (tenant_id, session_id, id),
  constraint tries_status_check check (
    status in ('queued', 'running', 'succeeded', 'failed', 'timed_out', 'cancelled', 'expired', 'lost')
  ),
  constraint tries_error_code_check check (
    error_code in (
      'timeout', 'queue_expired', 'cancelled', 'worker_lost', 'provider_unreachable', 'provider_rate_limited',
      'provider_overloaded', 'provider_error', 'provider_protocol', 'response_too_large', 'provider_refused',
      'context_changed', 'internal'
    )
  ),
  constraint tries_attempt_check check (attempt between 0 and 20),
  constraint tries_rescues_check check (rescues between 0 and 3),
  constraint tries_deferrals_check check (deferrals between 0 and 5),
  constraint tries_timeout_ms_check check (timeout_ms > 0),
  constraint tries_reserved_check check (reserved >= 0),
  constraint tries_finished_at_check check ((status in ('queued', 'running')) = (finished_at is null)),
  constraint tries_lease_check check ((status = 'running') = (lease_until is not null and lease_owner is not null)),
  constraint tries_uncalled_check check (not (status in ('queued', 'expired') and called_at is not null)),
  constraint tries_called_check check (not (status in ('succeeded', 'timed_out', 'lost') and called_at is null)),
  constraint tries_answered_check check ((status = 'succeeded') = (stop_reason is not null)),
  constraint tries_error_check check (status in ('queued', 'running', 'succeeded') = (error_code is null)),
  constraint tries_provider_request_id_check check (length(provider_request_id) <= 128)
);
-- A single try goes before those of a batch: somebody is looking at it. Its first column alone finds who waits.
create index tries_queued_idx on tries (tenant_id, (batch_id is not null), created_at, id) where status = 'queued';
create index tries_queue_expires_at_idx on tries (queue_expires_at) where status = 'queued';
create index tries_running_idx on tries (tenant_id) where status = 'running';
create index tries_lease_until_idx on tries (lease_until) where status = 'running';
create index tries_session_idx on tries (tenant_id, session_id, id);
create index tries_batch_idx on tries (tenant_id, batch_id, id) where batch_id is not null;
create index tries_request_idx on tries (tenant_id, request_id);
create index tries_finished_at_idx on tries (tenant_id, finished_at) where finished_at is not null;

-- What a model answered: JSON text of its content blocks, or what its provider said instead. With the texts of
-- try_requests the only content of tries; never read by a list.
create table try_payloads (
  tenant_id uuid not null,
  try_id uuid not null,
  answer text,
  said text,
  expires_at timestamptz not null,
  constraint try_payloads_pk primary key (tenant_id, try_id),
  constraint try_payloads_try_fk foreign key (tenant_id, try_id) references tries (tenant_id, id) on delete cascade
);

-- A POST that starts work, done once: the same key and body of the same user give the first resource again.
create table idempotency_keys (
  tenant_id uuid not null,
  user_id uuid not null,
  key_hash bytea not null,
  request_hash bytea not null,
  resource_id uuid not null,
  created_at timestamptz not null default clock_timestamp(),
  constraint idempotency_keys_pk primary key (tenant_id, user_id, key_hash),
  constraint idempotency_keys_user_fk foreign key (tenant_id, user_id) references users (tenant_id, id),
  constraint idempotency_keys_key_hash_check check (octet_length(key_hash) = 32),
  constraint idempotency_keys_request_hash_check check (octet_length(request_hash) = 32)
);
create index idempotency_keys_created_at_idx on idempotency_keys (tenant_id, created_at);

-- How many tokens of a model one token of the counting encoding is, learnt from what was billed to this tenant.
create table token_factors (
  tenant_id uuid not null,
  model text not null,
  factor double precision not null,
  calls integer not null,
  updated_at timestamptz not null default clock_timestamp(),
  constraint token_factors_pk primary key (tenant_id, model),
  constraint token_factors_tenant_fk foreign key (tenant_id) references tenants (id),
  constraint token_factors_factor_check check (factor > 0),
  constraint token_factors_calls_check check (calls > 0)
);

-- The last guard against billing a try twice. A try is forgotten after a while, its bill is not.
alter table usage_records add column try_id uuid;
-- squawk-ignore constraint-missing-not-valid, disallowed-unique-constraint
alter table usage_records add constraint usage_records_try_key unique (tenant_id, try_id);
-- squawk-ignore adding-foreign-key-constraint, constraint-missing-not-valid
alter table usage_records add constraint usage_records_try_fk
  foreign key (tenant_id, try_id) references tries (tenant_id, id) on delete set null (try_id);

-- Every end of a try is told to those who wait for it, with the commit; the last one of a batch ends the batch.
-- +goose StatementBegin
create function tell_end() returns trigger language plpgsql as $$
begin
  perform pg_notify('done', new.id::text);
  return null;
end
$$;
-- +goose StatementEnd
-- +goose StatementBegin
create function count_end() returns trigger language plpgsql as $$
begin
  update try_batches
  set remaining = remaining - 1, finished_at = case when remaining = 1 then clock_timestamp() end
  where tenant_id = new.tenant_id and id = new.batch_id;
  return null;
end
$$;
-- +goose StatementEnd
create trigger tries_end after update on tries
  for each row when (old.finished_at is null and new.finished_at is not null)
  execute function tell_end();
create trigger tries_end_of_batch after update on tries
  for each row when (old.finished_at is null and new.finished_at is not null and new.batch_id is not null)
  execute function count_end();
-- A worker that has the call under way ends it at once.
-- +goose StatementBegin
create function tell_cancel() returns trigger language plpgsql as $$
begin
  perform pg_notify('cancel', new.id::text);
  return null;
end
$$;
-- +goose StatementEnd
create trigger tries_cancel after update on tries
  for each row when (
    old.cancel_requested_at is null and new.cancel_requested_at is not null and new.status = 'running'
  )
  execute function tell_cancel();
create trigger try_batches_end after update on try_batches
  for each row when (old.finished_at is null and new.finished_at is not null)
  execute function tell_end();

-- The fair pick: of the tenants with something to do and with fewer than `cap` running, the one with the fewest running;
-- of it, as many as there is room for, single tries first. One pick at a time: two at once would choose the same tenant.
-- What somebody holds is passed over, and a tenant of which all is held makes way for the next. `more` says that another
-- tenant waits too, so that nobody has to look once more to learn that nobody does.
-- A worker plans these statements once, when nobody waits yet; without the settings it would go on reading all rows.
-- +goose StatementBegin
create function claim_tries(owner uuid, lease interval, cap integer, most integer, out ids uuid[], out more boolean)
language plpgsql
set enable_seqscan = off
set enable_bitmapscan = off
as $$
declare
  candidate record;
begin
  ids := '{}';
  more := false;
  perform pg_advisory_xact_lock(7001);
  for candidate in
    with recursive waiting as (
      (select t.tenant_id from tries t where t.status = 'queued' order by t.tenant_id limit 1)
      union all
      select (
        select t.tenant_id from tries t where t.status = 'queued' and t.tenant_id > w.tenant_id order by t.tenant_id limit 1
      )
      from waiting w
      where w.tenant_id is not null
    ),
    candidates as (
      select
        w.tenant_id,
        (select count(*) from tries r where r.status = 'running' and r.tenant_id = w.tenant_id)::integer as running
      from waiting w
      where w.tenant_id is not null
    )
    select c.tenant_id, cap - c.running as room
    from candidates c
    cross join lateral (
      select q.created_at
      from tries q
      where q.status = 'queued'
        and q.tenant_id = c.tenant_id
        and q.queue_expires_at > clock_timestamp()
        and (q.not_before is null or q.not_before <= clock_timestamp())
      order by (q.batch_id is not null), q.created_at, q.id
      limit 1
    ) first
    where c.running < cap
    order by c.running, first.created_at
  loop
    if ids <> '{}' then
      more := true;
      exit;
    end if;
    with picked as (
      select q.id
      from tries q
      where q.status = 'queued'
        and q.tenant_id = candidate.tenant_id
        and q.queue_expires_at > clock_timestamp()
        and (q.not_before is null or q.not_before <= clock_timestamp())
      order by (q.batch_id is not null), q.created_at, q.id
      limit least(candidate.room, most)
      for update skip locked
    ),
    taken as (
      update tries t
      set
        status = 'running',
        attempt = t.attempt + 1,
        lease_owner = owner,
        lease_until = clock_timestamp() + lease,
        started_at = coalesce(t.started_at, clock_timestamp())
      from picked
      where t.tenant_id = candidate.tenant_id and t.id = picked.id
      returning t.id
    )
    select coalesce(array_agg(taken.id), '{}') into ids from taken;
  end loop;
end
$$;
-- +goose StatementEnd

alter table override_sets enable row level security;
alter table override_sets force row level security;
create policy tenant_only on override_sets
  using (tenant_id = (select nullif(current_setting('app.t', true), '')::uuid));

alter table try_batches enable row level security;
alter table try_batches force row level security;
create policy tenant_only on try_batches
  using (tenant_id = (select nullif(current_setting('app.t', true), '')::uuid));
create policy system_all on try_batches to hango_system using (true);

alter table try_requests enable row level security;
alter table try_requests force row level security;
create policy tenant_only on try_requests
  using (tenant_id = (select nullif(current_setting('app.t', true), '')::uuid));

alter table tries enable row level security;
alter table tries force row level security;
create policy tenant_only on tries
  using (tenant_id = (select nullif(current_setting('app.t', true), '')::uuid));
create policy system_all on tries to hango_system using (true);

alter table try_payloads enable row level security;
alter table try_payloads force row level security;
create policy tenant_only on try_payloads
  using (tenant_id = (select nullif(current_setting('app.t', true), '')::uuid));

alter table idempotency_keys enable row level security;
alter table idempotency_keys force row level security;
create policy tenant_only on idempotency_keys
  using (tenant_id = (select nullif(current_setting('app.t', true), '')::uuid));

alter table token_factors enable row level security;
alter table token_factors force row level security;
create policy tenant_only on token_factors
  using (tenant_id = (select nullif(current_setting('app.t', true), '')::uuid));

grant select, insert on override_sets to hango_app;
grant select, insert, update (remaining, finished_at), delete on try_batches to hango_app;
grant select, insert, update (texts, purged_at), delete on try_requests to hango_app;
grant select, insert, update, delete on tries to hango_app;
grant select, insert, delete on try_payloads to hango_app;
grant select, insert, update (request_hash, resource_id, created_at), delete on idempotency_keys to hango_app;
grant select, insert, update (factor, calls, updated_at) on token_factors to hango_app;
-- A call that was billed by its estimate is corrected once, when its figures come late.
grant update (input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, cost_usd, estimated)
  on usage_records to hango_app;
grant select, update on tries to hango_system;
grant select on quotas to hango_system;

-- +goose Down
-- What tries that have not ended hold of a quota is given back, and bases that name an override set go: without it they
-- would tell of other requests than they were kept for. Row level security is not forced meanwhile, or the owner of the
-- tables, who has no tenant, would change nothing.
alter table quotas no force row level security;
update quotas set reserved = 0 where reserved > 0;
alter table quotas force row level security;
alter table usage_records drop constraint usage_records_try_fk;
alter table usage_records drop constraint usage_records_try_key;
-- squawk-ignore ban-drop-column
alter table usage_records drop column try_id;
revoke update (input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, cost_usd, estimated)
  on usage_records from hango_app;
revoke select on quotas from hango_system;
drop table token_factors;
drop table idempotency_keys;
drop table try_payloads;
drop table tries;
drop table try_requests;
drop table try_batches;
-- squawk-ignore ban-drop-function
drop function claim_tries(uuid, interval, integer, integer);
-- squawk-ignore ban-drop-function
drop function tell_cancel();
-- squawk-ignore ban-drop-function
drop function count_end();
-- squawk-ignore ban-drop-function
drop function tell_end();
alter table context_bases drop constraint context_bases_override_set_fk;
alter table context_bases no force row level security;
delete from context_bases where override_set_id is not null;
alter table context_bases force row level security;
drop table override_sets;
