-- name: add_try_requests :exec
-- What the tries of one POST change, one array a column; without a batch there is one.
insert into try_requests (
  tenant_id, id, session_id, base_id, batch_id, variant, label, model, changes, texts, sent, excluded, request_sha256,
  tokens_before, tokens_after, max_output_tokens, through_seq, expires_at
)
select
  @tenant_id, n.id, @session_id, @base_id, sqlc.narg(batch_id)::uuid,
  case when sqlc.narg(batch_id)::uuid is null then null else n.variant end,
  n.label, n.model, n.changes, n.texts, n.sent, n.excluded, n.request_sha256, n.tokens_before, n.tokens_after,
  n.max_output_tokens, n.through_seq, clock_timestamp() + make_interval(secs => @retention_seconds::float8)
from (
  select
    unnest(@ids::uuid[]) as id,
    unnest(@variants::integer[]) as variant,
    unnest(@labels::text[]) as label,
    unnest(@models::text[]) as model,
    unnest(@changes::text[]) as changes,
    unnest(@texts::text[]) as texts,
    unnest(@sents::text[]) as sent,
    unnest(@excludeds::text[]) as excluded,
    unnest(@request_sha256s::text[]) as request_sha256,
    unnest(@tokens_befores::bigint[]) as tokens_before,
    unnest(@tokens_afters::bigint[]) as tokens_after,
    unnest(@max_output_tokens::integer[]) as max_output_tokens,
    unnest(@through_seqs::integer[]) as through_seq
) n;

-- name: add_tries :exec
-- The tries themselves, waiting for a worker. The month is the one whose quota holds the reservation.
insert into tries (
  tenant_id, id, session_id, user_id, api_key_id, request_id, batch_id, queue_expires_at, timeout_ms, quota_period,
  reserved, traceparent
)
select
  @tenant_id, n.id, @session_id, @user_id, @api_key_id, n.request_id, sqlc.narg(batch_id)::uuid,
  clock_timestamp() + make_interval(secs => @ttl_seconds::float8), @timeout_ms, @quota_period, n.reserved,
  sqlc.narg(traceparent)
from (
  select
    unnest(@ids::uuid[]) as id,
    unnest(@request_ids::uuid[]) as request_id,
    unnest(@reserveds::bigint[]) as reserved
) n;

-- name: add_try_audits :exec
-- One event a try, one array a column.
insert into audit_events (tenant_id, id, action, target_kind, target_id, user_id, detail)
select @tenant_id, n.id, n.action, n.target_kind, n.target_id, @user_id, n.detail::jsonb
from (
  select
    unnest(@ids::uuid[]) as id,
    unnest(@actions::text[]) as action,
    unnest(@target_kinds::text[]) as target_kind,
    unnest(@target_ids::uuid[]) as target_id,
    unnest(@details::text[]) as detail
) n;

-- name: keep_session :one
-- A session that is not deleted, and is not while the transaction goes on.
select id
from sessions
where tenant_id = @tenant_id and id = @id and deleted_at is null
for share;

-- name: count_outstanding :one
-- Tries of the tenant that wait or run: two counts, each by its index.
select (
  (select count(*) from tries w where w.tenant_id = @tenant_id and w.status = 'queued')
  + (select count(*) from tries r where r.tenant_id = @tenant_id and r.status = 'running')
)::bigint as tries;

-- name: get_try :one
-- A try, or the preview of a summary, with its texts and answer, of a session that is not deleted.
select
  t.id, t.session_id, s.created_by as session_owner, t.batch_id, r.variant, r.label, t.status, r.base_id, r.model,
  r.changes, r.texts, r.sent, r.excluded, r.request_sha256, r.tokens_before, r.tokens_after, r.purged_at, r.through_seq,
  p.answer, p.said, t.stop_reason, t.error_code, t.provider_status, t.attempt, t.created_at, t.started_at, t.finished_at,
  u.input_tokens, u.output_tokens, u.cache_read_tokens, u.cache_write_tokens, u.cost_usd, u.estimated
from tries t
join sessions s on s.tenant_id = t.tenant_id and s.id = t.session_id and s.deleted_at is null
join try_requests r on r.tenant_id = t.tenant_id and r.id = t.request_id
left join try_payloads p on p.tenant_id = t.tenant_id and p.try_id = t.id
left join usage_records u on u.tenant_id = t.tenant_id and u.try_id = t.id
where t.tenant_id = @tenant_id and t.id = @id and (r.through_seq is not null) = @is_preview::boolean;

-- name: list_tries :many
-- Tries of a session, the newest first, without texts and answers.
select
  t.id, t.session_id, s.created_by as session_owner, t.batch_id, r.variant, r.label, t.status, r.base_id, r.model,
  r.changes, r.excluded, r.request_sha256, r.tokens_before, r.tokens_after, r.purged_at, t.stop_reason, t.error_code,
  t.provider_status, t.attempt, t.created_at, t.started_at, t.finished_at, u.input_tokens, u.output_tokens,
  u.cache_read_tokens, u.cache_write_tokens, u.cost_usd, u.estimated
from tries t
join sessions s on s.tenant_id = t.tenant_id and s.id = t.session_id and s.deleted_at is null
join try_requests r on r.tenant_id = t.tenant_id and r.id = t.request_id
left join usage_records u on u.tenant_id = t.tenant_id and u.try_id = t.id
where t.tenant_id = @tenant_id
  and t.session_id = @session_id
  and r.through_seq is null
  and (sqlc.narg(before)::uuid is null or t.id < sqlc.narg(before)::uuid)
order by t.id desc
limit @most;

-- name: list_try_requests :many
-- What a worker needs to make calls again: the base of each and what is changed on it.
select id, session_id, base_id, model, changes, texts, request_sha256, max_output_tokens, through_seq
from try_requests
where tenant_id = @tenant_id and id = any (@ids::uuid[]);

-- name: mark_called :many
-- Before the first byte goes out: no row, no call. Once for a claim, and not after a cancel or past the lease. One array a
-- column; rows are locked in the order of whoever locks several.
with held as (
  select t.id
  from tries t
  join (select unnest(@ids::uuid[]) as id, unnest(@attempts::integer[]) as attempt) n
    on n.id = t.id and n.attempt = t.attempt
  where t.tenant_id = @tenant_id
    and t.id = any (@ids::uuid[])
    and t.status = 'running'
    and t.lease_until > clock_timestamp()
    and t.called_at is null
    and t.cancel_requested_at is null
  order by t.id
  for update of t
)
update tries t
set called_at = clock_timestamp()
from held h
where t.tenant_id = @tenant_id and t.id = any (@ids::uuid[]) and t.id = h.id
returning t.id, t.attempt;

-- name: settle_tries :many
-- The ends of calls, one array a column: status, bill, quota, answer and audit of each in one statement. Those whose claim
-- is no longer in force are missing in the answer and unchanged, so a second settle does nothing. `lease_over` lets only
-- claims go whose worker has been silent for too long. Rows and months are locked in their order.
with asked as (
  select
    unnest(@ids::uuid[]) as id,
    unnest(@attempts::integer[]) as attempt,
    unnest(@statuses::text[]) as status,
    unnest(@error_codes::text[]) as error_code,
    unnest(@stop_reasons::text[]) as stop_reason,
    unnest(@provider_statuses::integer[]) as provider_status,
    unnest(@provider_request_ids::text[]) as provider_request_id,
    unnest(@usage_ids::uuid[]) as usage_id,
    unnest(@input_tokens::bigint[]) as input_tokens,
    unnest(@output_tokens::bigint[]) as output_tokens,
    unnest(@cache_read_tokens::bigint[]) as cache_read_tokens,
    unnest(@cache_write_tokens::bigint[]) as cache_write_tokens,
    unnest(@costs_usd::numeric[]) as cost_usd,
    unnest(@estimateds::boolean[]) as estimated,
    unnest(@tokens::bigint[]) as tokens,
    unnest(@answers::text[]) as answer,
    unnest(@saids::text[]) as said,
    unnest(@audit_ids::uuid[]) as audit_id
),
held as (
  select a.id, a.attempt
  from tries t
  join asked a on a.id = t.id and a.attempt = t.attempt
  where t.tenant_id = @tenant_id
    and t.id = any (@ids::uuid[])
    and t.status = 'running'
    and t.called_at is not null
    and (not @lease_over::boolean or t.lease_until < clock_timestamp())
  order by t.id
  for update of t
),
ended as (
  update tries t
  set
    status = a.status,
    error_code = a.error_code,
    stop_reason = a.stop_reason,
    provider_status = a.provider_status,
    provider_request_id = a.provider_request_id,
    finished_at = clock_timestamp(),
    lease_owner = null,
    lease_until = null
  from held h
  join asked a on a.id = h.id and a.attempt = h.attempt
  where t.tenant_id = @tenant_id and t.id = any (@ids::uuid[]) and t.id = h.id
  returning t.tenant_id, t.id, t.session_id, t.user_id, t.request_id, t.quota_period, t.reserved, a.attempt
),
billed as (
  insert into usage_records (
    tenant_id, id, purpose, run_id, try_id, session_id, user_id, model, input_tokens, output_tokens, cache_read_tokens,
    cache_write_tokens, cost_usd, estimated
  )
  select
    e.tenant_id, a.usage_id, case when r.through_seq is null then 'context_try' else 'summary' end, null, e.id,
    e.session_id, e.user_id, r.model, a.input_tokens, a.output_tokens, a.cache_read_tokens, a.cache_write_tokens,
    a.cost_usd, a.estimated
  from ended e
  join asked a on a.id = e.id and a.attempt = e.attempt
  join try_requests r on r.tenant_id = e.tenant_id and r.id = e.request_id
),
sums as (
  select e.quota_period, sum(e.reserved)::bigint as reserved, sum(a.tokens)::bigint as tokens
  from ended e
  join asked a on a.id = e.id and a.attempt = e.attempt
  group by e.quota_period
),
months as (
  select q.period
  from quotas q
  where q.tenant_id = @tenant_id and q.period in (select s.quota_period from sums s)
  order by q.period
  for update
),
paid as (
  update quotas q
  set reserved = q.reserved - s.reserved, used = q.used + s.tokens
  from sums s, months m
  where q.tenant_id = @tenant_id and q.period = s.quota_period and m.period = s.quota_period
),
kept as (
  insert into try_payloads (tenant_id, try_id, answer, said, expires_at)
  select
    e.tenant_id, e.id, a.answer, a.said, clock_timestamp() + make_interval(secs => @retention_seconds::float8)
  from ended e
  join asked a on a.id = e.id and a.attempt = e.attempt
),
told as (
  insert into audit_events (tenant_id, id, action, target_kind, target_id, user_id, detail)
  select
    e.tenant_id, a.audit_id,
    case when r.through_seq is null then 'context.try_finished' else 'summary.preview_finished' end,
    case when r.through_seq is null then 'try' else 'summary_preview' end, e.id, e.user_id,
    jsonb_build_object('session_id', e.session_id, 'model', r.model, 'outcome', a.status, 'error', a.error_code)
  from ended e
  join asked a on a.id = e.id and a.attempt = e.attempt
  join try_requests r on r.tenant_id = e.tenant_id and r.id = e.request_id
)
select id, attempt::integer as attempt
from ended;

-- name: correct_lost :one
-- The figures of a call that was given up as lost came after all: the estimated bill gets them, once.
with corrected as (
  update usage_records u
  set
    input_tokens = @input_tokens,
    output_tokens = @output_tokens,
    cache_read_tokens = @cache_read_tokens,
    cache_write_tokens = @cache_write_tokens,
    cost_usd = sqlc.narg(cost_usd)::numeric,
    estimated = false
  from tries t
  where t.tenant_id = @tenant_id
    and t.id = @id
    and t.attempt = @attempt
    and t.status = 'lost'
    and u.tenant_id = t.tenant_id
    and u.try_id = t.id
    and u.estimated
  returning t.tenant_id, t.quota_period, t.reserved
),
paid as (
  update quotas q
  set used = q.used - c.reserved + @tokens::bigint
  from corrected c
  where q.tenant_id = c.tenant_id and q.period = c.quota_period
)
select reserved
from corrected;

-- name: end_uncalled :many
-- The end of tries whose call never began: nothing is billed, the reservation is given back. One array a column. Of those
-- that a worker has, only one whose owner asked for it is cancelled. Months are locked in their order.
with ended as (
  update tries t
  set
    status = @status,
    error_code = @error_code,
    cancel_requested_at = case
      when @status = 'cancelled' then coalesce(t.cancel_requested_at, clock_timestamp())
      else t.cancel_requested_at
    end,
    finished_at = clock_timestamp(),
    lease_owner = null,
    lease_until = null
  from (select unnest(@ids::uuid[]) as id, unnest(@audit_ids::uuid[]) as audit_id) n
  where t.tenant_id = @tenant_id
    and t.id = any (@ids::uuid[])
    and t.id = n.id
    and t.status = @from_status
    and t.called_at is null
    and (sqlc.narg(attempt)::integer is null or t.attempt = sqlc.narg(attempt)::integer)
    and (@status <> 'cancelled' or t.status = 'queued' or t.cancel_requested_at is not null)
  returning t.tenant_id, t.id, t.session_id, t.user_id, t.request_id, t.quota_period, t.reserved, n.audit_id
),
sums as (
  select e.quota_period, sum(e.reserved)::bigint as reserved
  from ended e
  group by e.quota_period
),
held as (
  select q.period
  from quotas q
  where q.tenant_id = @tenant_id and q.period in (select s.quota_period from sums s)
  order by q.period
  for update
),
released as (
  update quotas q
  set reserved = q.reserved - s.reserved
  from sums s, held h
  where q.tenant_id = @tenant_id and q.period = s.quota_period and h.period = s.quota_period
),
told as (
  insert into audit_events (tenant_id, id, action, target_kind, target_id, user_id, detail)
  select
    e.tenant_id, e.audit_id,
    case when r.through_seq is null then 'context.try_finished' else 'summary.preview_finished' end,
    case when r.through_seq is null then 'try' else 'summary_preview' end, e.id, e.user_id,
    jsonb_build_object('session_id', e.session_id, 'model', r.model, 'outcome', @status, 'error', @error_code)
  from ended e
  join try_requests r on r.tenant_id = e.tenant_id and r.id = e.request_id
)
select e.id, (case when r.through_seq is null then 'context_try' else 'summary' end)::text as purpose
from ended e
join try_requests r on r.tenant_id = @tenant_id and r.id = e.request_id;

-- name: defer_try :one
-- The provider did not take the call: it waits again, without its mark, while there is time.
update tries
set
  status = 'queued',
  deferrals = deferrals + 1,
  not_before = clock_timestamp() + make_interval(secs => @delay_seconds::float8),
  called_at = null,
  lease_owner = null,
  lease_until = null
where tenant_id = @tenant_id
  and id = @id
  and attempt = @attempt
  and status = 'running'
  and deferrals < 5
  and cancel_requested_at is null
  and queue_expires_at > clock_timestamp() + make_interval(secs => @delay_seconds::float8)
returning id;

-- name: get_cancel :one
-- Whether somebody wants a claimed try to be cancelled.
select (cancel_requested_at is not null)::boolean as cancelled
from tries
where tenant_id = @tenant_id and id = @id and attempt = @attempt and status = 'running';

-- name: rescue_try :one
-- Its worker fell silent before the call: another may have it.
update tries
set status = 'queued', rescues = rescues + 1, lease_owner = null, lease_until = null
where tenant_id = @tenant_id
  and id = @id
  and attempt = @attempt
  and status = 'running'
  and lease_until < clock_timestamp()
  and called_at is null
  and cancel_requested_at is null
  and rescues < 3
returning id;

-- name: hold_open_tries :many
-- The tries of one id, batch, session or agent that have not ended, held until the transaction ends.
select t.id, t.status
from tries t
where t.tenant_id = @tenant_id
  and (t.status = 'queued' or t.status = 'running')
  and (sqlc.narg(id)::uuid is null or t.id = sqlc.narg(id)::uuid)
  and (sqlc.narg(batch_id)::uuid is null or t.batch_id = sqlc.narg(batch_id)::uuid)
  and (sqlc.narg(session_id)::uuid is null or t.session_id = sqlc.narg(session_id)::uuid)
  and (
    sqlc.narg(agent_id)::uuid is null
    or t.session_id in (
      select s.id from sessions s where s.tenant_id = @tenant_id and s.agent_id = sqlc.narg(agent_id)::uuid
    )
  )
order by t.id
for update;

-- name: hold_expired :many
-- Tries that waited for too long, held until the transaction ends.
select id
from tries
where tenant_id = @tenant_id and status = 'queued' and queue_expires_at < statement_timestamp()
order by id
limit @most
for update skip locked;

-- name: request_cancel :exec
-- Ask the workers of running tries to end them.
update tries
set cancel_requested_at = clock_timestamp()
where tenant_id = @tenant_id
  and id = any (@ids::uuid[])
  and status = 'running'
  and cancel_requested_at is null;

-- name: purge_contents :one
-- Take the texts of so many old requests out, and all answers to them: at once, when every try of a request has ended and
-- the time of its answer is over too. What is left says which parts were changed. Returns of how many. Without joins, which
-- would go through all tries of the tenant when they were planned on few, and by a time that an index can be asked for.
with due as (
  select r.id
  from try_requests r
  where r.tenant_id = @tenant_id
    and r.purged_at is null
    and r.expires_at < now()
    and 0 = (
      select count(*)
      from tries t
      left join try_payloads p on p.tenant_id = t.tenant_id and p.try_id = t.id
      where t.tenant_id = r.tenant_id
        and t.request_id = r.id
        and (t.finished_at is null or p.expires_at >= now())
    )
  order by r.expires_at
  limit @most
),
purged as (
  update try_requests r
  set texts = null, purged_at = clock_timestamp()
  where r.tenant_id = @tenant_id and r.id = any (array(select d.id from due d))
  returning r.id
),
emptied as (
  delete from try_payloads p
  where p.tenant_id = @tenant_id
    and p.try_id = any (
      array(
        select t.id
        from tries t
        where t.tenant_id = @tenant_id and t.request_id = any (array(select u.id from purged u))
      )
    )
)
select count(*) as requests
from purged;

-- name: forget_tries :many
-- So many tries that ended long ago. Their bills stay. Returns their requests.
delete from tries f
where f.tenant_id = @tenant_id
  and f.id = any (
    array(
      select t.id
      from tries t
      where t.tenant_id = @tenant_id and t.finished_at < now() - make_interval(secs => @age_seconds::float8)
      order by t.finished_at
      limit @most
    )
  )
returning f.request_id;

-- name: forget_try_requests :many
-- Those of these that no try is left for. Returns their batches.
delete from try_requests r
where r.tenant_id = @tenant_id
  and r.id = any (@ids::uuid[])
  and not exists (select from tries t where t.tenant_id = r.tenant_id and t.request_id = r.id)
returning r.batch_id;

-- name: forget_try_batches :exec
-- Those of these that no request is left of.
delete from try_batches b
where b.tenant_id = @tenant_id
  and b.id = any (@ids::uuid[])
  and not exists (select from try_requests r where r.tenant_id = b.tenant_id and r.batch_id = b.id);
