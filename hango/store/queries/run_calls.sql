-- name: add_run_call :one
-- A call that is about to be made, the next of its run, and what is held for it; no row while another one is under way.
with added as (
  insert into run_calls (
    tenant_id, id, run_id, n, purpose, session_id, base_id, model, request_sha256, version, overrides, excluded_tokens,
    max_output_tokens, quota_period, reserved
  )
  select
    @tenant_id, @id, @run_id, coalesce(max(c.n), 0) + 1, @purpose, @session_id, @base_id, @model, @request_sha256,
    @version, @overrides, @excluded_tokens, @max_output_tokens, @quota_period, @reserved
  from run_calls c
  where c.tenant_id = @tenant_id and c.run_id = @run_id
  on conflict (tenant_id, run_id) where ended_at is null do nothing
  returning tenant_id, run_id, n, quota_period, reserved
),
held as (
  update runs r
  set reserved = a.reserved, quota_period = a.quota_period
  from added a
  where r.tenant_id = a.tenant_id and r.id = a.run_id
)
select n
from added;

-- name: settle_run_call :one
-- The end of a call: what came of it, its bill and its quota in one statement; once.
with ended as (
  update run_calls c
  set
    stop_reason = sqlc.narg(stop_reason),
    error_code = sqlc.narg(error_code),
    provider_status = sqlc.narg(provider_status),
    provider_request_id = sqlc.narg(provider_request_id),
    ended_at = clock_timestamp()
  where c.tenant_id = @tenant_id and c.id = @id and c.ended_at is null
  returning c.tenant_id, c.id, c.run_id, c.purpose, c.session_id, c.model, c.quota_period, c.reserved
),
billed as (
  insert into usage_records (
    tenant_id, id, purpose, run_id, call_id, session_id, user_id, model, input_tokens, output_tokens, cache_read_tokens,
    cache_write_tokens, cost_usd, estimated
  )
  select
    e.tenant_id, @usage_id, e.purpose, e.run_id, e.id, r.session_id, r.user_id, e.model, @input_tokens, @output_tokens,
    @cache_read_tokens, @cache_write_tokens, sqlc.narg(cost_usd)::numeric, @estimated
  from ended e
  join runs r on r.tenant_id = e.tenant_id and r.id = e.run_id
),
freed as (
  update runs r
  set reserved = 0
  from ended e
  where r.tenant_id = e.tenant_id and r.id = e.run_id
),
paid as (
  update quotas q
  set reserved = q.reserved - e.reserved, used = q.used + @tokens::bigint
  from ended e
  where q.tenant_id = e.tenant_id and q.period = e.quota_period
)
select reserved
from ended;

-- name: find_open_call :one
-- The call of a run that is under way, or was when its worker fell silent.
select id, model, reserved, max_output_tokens
from run_calls
where tenant_id = @tenant_id and run_id = @run_id and ended_at is null;

-- name: list_run_calls :many
-- The calls of a run with their bills, in order.
select
  c.id, c.n, c.purpose, c.session_id, c.base_id, c.model, c.request_sha256, c.version, c.overrides, c.excluded_tokens,
  c.stop_reason, c.error_code, c.created_at, c.ended_at, u.input_tokens, u.output_tokens, u.cache_read_tokens,
  u.cache_write_tokens, u.cost_usd, u.estimated
from run_calls c
left join usage_records u on u.tenant_id = c.tenant_id and u.call_id = c.id
where c.tenant_id = @tenant_id
  and c.run_id = @run_id
  and c.n > @after::integer
order by c.n
limit @most;

-- name: sum_run_tokens :one
-- What the calls of a run were billed at.
select coalesce(sum(input_tokens + output_tokens + cache_read_tokens + cache_write_tokens), 0)::bigint as tokens
from usage_records
where tenant_id = @tenant_id and run_id = @run_id::uuid;

-- name: count_conversation_calls :one
-- The calls of one conversation of a run so far, those that failed too.
select count(*)::integer as calls
from run_calls
where tenant_id = @tenant_id and run_id = @run_id and session_id = @session_id;

-- name: last_stop_reason :one
-- How the last call of a conversation ended.
select stop_reason
from run_calls
where tenant_id = @tenant_id
  and run_id = @run_id
  and session_id = @session_id
  and purpose <> 'summary'
  and stop_reason is not null
order by n desc
limit 1;
