-- name: add_run :one
-- A run that waits for a worker; no row while another one of the session has not ended.
insert into runs (
  tenant_id, id, session_id, user_id, api_key_id, base_id, model, first_seq, overrides, status, queue_expires_at,
  timeout_ms, traceparent
)
values (
  @tenant_id, @id, @session_id, @user_id, @api_key_id, @base_id, @model, @first_seq, @overrides, 'queued',
  clock_timestamp() + make_interval(secs => @ttl_seconds::float8), @timeout_ms, sqlc.narg(traceparent)
)
on conflict (tenant_id, session_id) where status in ('queued', 'running') do nothing
returning id;

-- name: set_last_run :exec
-- The session's last run.
update sessions
set last_run_id = @run_id
where tenant_id = @tenant_id and id = @session_id;

-- name: get_run :one
-- A run of a session that is not deleted, with what its calls came to.
select
  r.id, r.session_id, s.created_by as session_owner, r.status, r.turns, r.model, r.overrides, r.stop_reason,
  r.error_code, r.attempt, r.created_at, r.started_at, r.finished_at,
  u.calls, u.input_tokens, u.output_tokens, u.cache_read_tokens, u.cache_write_tokens, u.priced, u.cost_usd, u.estimated
from runs r
join sessions s on s.tenant_id = r.tenant_id and s.id = r.session_id and s.deleted_at is null
cross join lateral (
  select
    count(*) as calls,
    coalesce(sum(c.input_tokens), 0)::bigint as input_tokens,
    coalesce(sum(c.output_tokens), 0)::bigint as output_tokens,
    coalesce(sum(c.cache_read_tokens), 0)::bigint as cache_read_tokens,
    coalesce(sum(c.cache_write_tokens), 0)::bigint as cache_write_tokens,
    count(c.cost_usd) as priced,
    coalesce(sum(c.cost_usd), 0)::float8 as cost_usd,
    coalesce(bool_or(c.estimated), false)::boolean as estimated
  from usage_records c
  where c.tenant_id = r.tenant_id and c.run_id = r.id
) u
where r.tenant_id = @tenant_id and r.id = @id;

-- name: list_runs :many
-- The runs of a session, the newest first.
select
  r.id, r.session_id, s.created_by as session_owner, r.status, r.turns, r.model, r.overrides, r.stop_reason,
  r.error_code, r.attempt, r.created_at, r.started_at, r.finished_at,
  u.calls, u.input_tokens, u.output_tokens, u.cache_read_tokens, u.cache_write_tokens, u.priced, u.cost_usd, u.estimated
from runs r
join sessions s on s.tenant_id = r.tenant_id and s.id = r.session_id and s.deleted_at is null
cross join lateral (
  select
    count(*) as calls,
    coalesce(sum(c.input_tokens), 0)::bigint as input_tokens,
    coalesce(sum(c.output_tokens), 0)::bigint as output_tokens,
    coalesce(sum(c.cache_read_tokens), 0)::bigint as cache_read_tokens,
    coalesce(sum(c.cache_write_tokens), 0)::bigint as cache_write_tokens,
    count(c.cost_usd) as priced,
    coalesce(sum(c.cost_usd), 0)::float8 as cost_usd,
    coalesce(bool_or(c.estimated), false)::boolean as estimated
  from usage_records c
  where c.tenant_id = r.tenant_id and c.run_id = r.id
) u
where r.tenant_id = @tenant_id
  and r.session_id = @session_id
  and (sqlc.narg(before)::uuid is null or r.id < sqlc.narg(before)::uuid)
order by r.id desc
limit @most;

-- name: find_active_run :one
-- The run of a session that has not ended.
select id
from runs
where tenant_id = @tenant_id and session_id = @session_id and status in ('queued', 'running');

-- name: hold_open_runs :many
-- The runs of one id, session or agent that have not ended, held until the transaction ends.
select r.id, r.status
from runs r
where r.tenant_id = @tenant_id
  and r.status in ('queued', 'running')
  and (sqlc.narg(id)::uuid is null or r.id = sqlc.narg(id)::uuid)
  and (sqlc.narg(session_id)::uuid is null or r.session_id = sqlc.narg(session_id)::uuid)
  and (
    sqlc.narg(agent_id)::uuid is null
    or r.session_id in (
      select s.id from sessions s where s.tenant_id = @tenant_id and s.agent_id = sqlc.narg(agent_id)::uuid
    )
  )
order by r.id
for update;

-- name: request_run_cancel :exec
-- Ask the worker of a running run to end it.
update runs
set cancel_requested_at = clock_timestamp()
where tenant_id = @tenant_id
  and id = any (@ids::uuid[])
  and status = 'running'
  and cancel_requested_at is null;

-- name: hold_run :one
-- A claimed run, held until the transaction ends: nothing when the claim is no longer in force.
select r.id, (r.cancel_requested_at is not null)::boolean as cancelled, r.turns, r.skill_version_id
from runs r
where r.tenant_id = @tenant_id
  and r.id = @id
  and r.attempt = @attempt
  and r.status = 'running'
  and r.lease_until > clock_timestamp()
for update;

-- name: get_claimed_run :one
-- What a worker needs to go on with a run.
select
  r.session_id, r.base_id, r.model, r.first_seq, r.skill_version_id, r.turns, r.overrides,
  exists (
    select from run_calls c where c.tenant_id = r.tenant_id and c.run_id = r.id and c.purpose = 'summary'
  )::boolean as has_compacted
from runs r
where r.tenant_id = @tenant_id and r.id = @id;

-- name: count_turn :exec
-- A call of the run's own conversation has been answered.
update runs
set turns = turns + 1
where tenant_id = @tenant_id and id = @id;

-- name: use_skill :exec
-- The run has loaded a skill.
update runs
set skill_version_id = @skill_version_id
where tenant_id = @tenant_id and id = @id;

-- name: end_run :one
-- The end of a run; nothing when the claim is no longer in force. Without an attempt: of one that waits.
update runs
set
  status = @status,
  stop_reason = sqlc.narg(stop_reason),
  error_code = sqlc.narg(error_code),
  finished_at = clock_timestamp(),
  lease_owner = null,
  lease_until = null
where tenant_id = @tenant_id
  and id = @id
  and status = @from_status
  and (sqlc.narg(attempt)::integer is null or attempt = sqlc.narg(attempt)::integer)
returning id;

-- name: requeue_run :one
-- It waits again, for as long as it may take: its worker fell silent between two calls, or ends.
update runs
set
  status = 'queued',
  rescues = rescues + @rescues::integer,
  queue_expires_at = clock_timestamp() + make_interval(secs => timeout_ms / 1000.0),
  lease_owner = null,
  lease_until = null
where tenant_id = @tenant_id
  and id = @id
  and attempt = @attempt
  and status = 'running'
  and cancel_requested_at is null
returning id;

-- name: find_child_session :one
-- The conversation of a subagent, by the call that started it.
select id
from sessions
where tenant_id = @tenant_id and parent_run_id = @run_id and parent_call = @parent_call;

-- name: add_child_session :exec
-- A conversation that nobody lists.
insert into sessions (tenant_id, id, agent_id, title, created_by, parent_run_id, parent_call)
values (@tenant_id, @id, @agent_id, 'subagent', @user_id, @run_id, @parent_call);
