-- name: find_key :one
-- Who a key belongs to, by its shown part; nothing for a revoked key or a disabled user.
-- unscoped: the key is what tells the tenant.
select
  k.tenant_id, k.id as key_id, k.secret_hash, u.id as user_id, u.role, t.rate_per_minute, t.trace_llm_content
from api_keys k
join users u on u.tenant_id = k.tenant_id and u.id = k.user_id
join tenants t on t.id = k.tenant_id
where k.prefix = @prefix and k.revoked_at is null and not u.disabled;

-- name: add_tenant :exec
-- A new tenant.
-- unscoped: a tenant is made before anyone can act in it.
insert into tenants (id, name, quota_tokens)
values (@id, @name, sqlc.narg(quota_tokens));

-- name: claim_tries :one
-- The fair pick. Ids of the tries that this worker has from now on, all of one tenant; whether another tenant waits too.
-- unscoped: a worker looks for work across tenants.
select c.ids::uuid[] as ids, c.more::boolean as more
from claim_tries(@owner::uuid, make_interval(secs => @lease_seconds::float8), @cap::integer, @most::integer) c;

-- name: list_claimed :many
-- What a worker needs to know of the tries that it has claimed.
-- unscoped: the claim told the tenant.
select
  t.tenant_id, t.id, t.session_id, t.user_id, t.api_key_id, t.request_id, t.batch_id, t.attempt, t.timeout_ms,
  t.reserved, t.traceparent, t.created_at, n.trace_llm_content
from tries t
join tenants n on n.id = t.tenant_id
where t.id = any (@ids::uuid[]) and t.lease_owner = @owner and t.status = 'running'
order by t.created_at, t.id;

-- name: renew_leases :many
-- A sign of life for the tries of a worker; those that it has no more are missing in the answer. Their rows are locked in
-- the order of whoever locks several.
-- unscoped: one statement for the tries of all tenants that a worker runs.
with held as (
  select t.tenant_id, t.id
  from tries t
  join (select unnest(@ids::uuid[]) as id, unnest(@attempts::integer[]) as attempt) n
    on n.id = t.id and n.attempt = t.attempt
  where t.lease_owner = @owner and t.status = 'running'
  order by t.tenant_id, t.id
  for update of t
)
update tries t
set lease_until = clock_timestamp() + make_interval(secs => @lease_seconds::float8)
from held h
where t.tenant_id = h.tenant_id and t.id = h.id and t.status = 'running'
returning t.id, (t.cancel_requested_at is not null)::boolean as cancelled;

-- name: hold_reconciler :one
-- Whether this process may look after the tries of all for the time of its transaction: one does at a time.
-- unscoped: it is about no tenant.
select pg_try_advisory_xact_lock(7002)::boolean as held;

-- name: hold_overdue :many
-- Tries whose worker has been silent past its lease, held until the transaction ends.
-- unscoped: whoever looks after them does so for all tenants.
select
  t.tenant_id, t.id, t.user_id, t.api_key_id, t.request_id, t.attempt, t.reserved,
  (t.called_at is not null)::boolean as called, (t.cancel_requested_at is not null)::boolean as cancelled, t.traceparent
from tries t
where t.status = 'running' and t.lease_until < statement_timestamp()
order by t.tenant_id, t.id
limit @most
for update skip locked;

-- name: list_tenants_with_expired :many
-- Tenants with tries that waited for too long.
-- unscoped: whoever looks after them does so for all tenants.
select distinct tenant_id
from tries
where status = 'queued' and queue_expires_at < statement_timestamp()
order by tenant_id
limit @most;

-- name: count_claimable :one
-- How many tries a worker could take now, counted up to a bound, and the age of the oldest in seconds.
-- unscoped: whoever rings does so for all tenants.
select
  count(*) as tries,
  coalesce(extract(epoch from clock_timestamp() - min(c.created_at)), 0)::float8 as oldest_seconds
from (
  select t.created_at
  from tries t
  where t.status = 'queued'
    and t.queue_expires_at > clock_timestamp()
    and (t.not_before is null or t.not_before <= clock_timestamp())
  order by t.queue_expires_at
  limit @most
) c;

-- name: count_drift :one
-- Months whose reservation is not the sum of what is under way, and tries that are older than any may be: both are 0.
-- unscoped: a check over all tenants.
with live as (
  select w.tenant_id, w.quota_period, w.reserved, w.queue_expires_at from tries w where w.status = 'queued'
  union all
  select r.tenant_id, r.quota_period, r.reserved, r.queue_expires_at from tries r where r.status = 'running'
  union all
  select x.tenant_id, x.quota_period, x.reserved, null::timestamptz from runs x where x.reserved > 0
),
sums as (
  select l.tenant_id, l.quota_period, sum(l.reserved) as reserved
  from live l
  group by l.tenant_id, l.quota_period
)
select
  (
    select count(*)
    from quotas q
    left join sums s on s.tenant_id = q.tenant_id and s.quota_period = q.period
    where q.reserved <> coalesce(s.reserved, 0)
  )::bigint as ledgers,
  (
    select count(*)
    from live l
    where l.queue_expires_at < clock_timestamp() - make_interval(secs => @bound_seconds::float8)
  )::bigint as overdue;

-- name: list_tenants :many
-- Every tenant.
-- unscoped: the purge goes through all.
select id
from tenants
order by id;

-- name: claim_runs :one
-- The fair pick of runs. Ids of the runs that this worker has from now on, all of one tenant.
-- unscoped: a worker looks for work across tenants.
select claim_runs(@owner::uuid, make_interval(secs => @lease_seconds::float8), @cap::integer, @most::integer)::uuid[]
  as ids;

-- name: list_claimed_runs :many
-- What a worker needs to know of the runs that it has claimed.
-- unscoped: the claim told the tenant.
select
  r.tenant_id, r.id, r.user_id, r.api_key_id, r.attempt, r.timeout_ms, r.traceparent, r.started_at,
  n.trace_llm_content
from runs r
join tenants n on n.id = r.tenant_id
where r.id = any (@ids::uuid[]) and r.lease_owner = @owner and r.status = 'running'
order by r.created_at, r.id;

-- name: renew_run_leases :many
-- A sign of life for the runs of a worker; those that it has no more are missing in the answer. A run that is held right
-- now, as during a tool, is not waited for, or the leases of all others would run out with its own.
-- unscoped: one statement for the runs of all tenants that a worker has.
with mine as (
  select r.tenant_id, r.id, (r.cancel_requested_at is not null)::boolean as cancelled
  from runs r
  join (select unnest(@ids::uuid[]) as id, unnest(@attempts::integer[]) as attempt) n
    on n.id = r.id and n.attempt = r.attempt
  where r.lease_owner = @owner and r.status = 'running'
),
free as (
  select r.tenant_id, r.id
  from runs r
  join mine on mine.tenant_id = r.tenant_id and mine.id = r.id
  where r.lease_owner = @owner and r.status = 'running'
  order by r.tenant_id, r.id
  for update of r skip locked
),
renewed as (
  update runs r
  set lease_until = clock_timestamp() + make_interval(secs => @lease_seconds::float8)
  from free
  where r.tenant_id = free.tenant_id and r.id = free.id
)
select id, cancelled
from mine;

-- name: hold_overdue_runs :many
-- Runs whose worker has been silent past its lease, held until the transaction ends.
-- unscoped: whoever looks after them does so for all tenants.
select
  r.tenant_id, r.id, r.user_id, r.api_key_id, r.attempt, r.rescues, r.traceparent,
  (r.cancel_requested_at is not null)::boolean as cancelled
from runs r
where r.status = 'running' and r.lease_until < clock_timestamp()
order by r.tenant_id, r.id
limit @most
for update skip locked;

-- name: hold_expired_runs :many
-- Runs that waited for too long, held until the transaction ends.
-- unscoped: whoever looks after them does so for all tenants.
select r.tenant_id, r.id, r.user_id, r.api_key_id
from runs r
where r.status = 'queued' and r.queue_expires_at < clock_timestamp()
order by r.tenant_id, r.id
limit @most
for update skip locked;

-- name: count_claimable_runs :one
-- How many runs a worker could take now, counted up to a bound.
-- unscoped: whoever rings does so for all tenants.
select count(*)
from (
  select r.id
  from runs r
  where r.status = 'queued'
    and r.queue_expires_at > clock_timestamp()
  limit @most
) c;
