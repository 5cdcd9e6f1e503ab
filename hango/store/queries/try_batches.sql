-- name: add_try_batch :exec
-- A batch of so many tries, none of which has ended.
insert into try_batches (tenant_id, id, session_id, user_id, base_id, label, tries, remaining)
values (@tenant_id, @id, @session_id, @user_id, @base_id, sqlc.narg(label), @tries, @tries);

-- name: get_try_batch :one
-- A batch of a session that is not deleted.
select
  b.id, b.session_id, s.created_by as session_owner, b.label, b.tries, b.remaining, b.created_at, b.finished_at
from try_batches b
join sessions s on s.tenant_id = b.tenant_id and s.id = b.session_id and s.deleted_at is null
where b.tenant_id = @tenant_id and b.id = @id;

-- name: list_try_batches :many
-- The batches of a session, the newest first.
select
  b.id, b.session_id, s.created_by as session_owner, b.label, b.tries, b.remaining, b.created_at, b.finished_at
from try_batches b
join sessions s on s.tenant_id = b.tenant_id and s.id = b.session_id and s.deleted_at is null
where b.tenant_id = @tenant_id
  and b.session_id = @session_id
  and (sqlc.narg(before)::uuid is null or b.id < sqlc.narg(before)::uuid)
order by b.id desc
limit @most;

-- name: list_batch_tries :many
-- Tries of a batch of a session, the newest first, without texts and answers: as list_tries does, by another index.
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
  and t.batch_id = @batch_id::uuid
  and (sqlc.narg(before)::uuid is null or t.id < sqlc.narg(before)::uuid)
order by t.id desc
limit @most;

-- name: sum_variants :many
-- The variants of batches with what their tries came to, by status.
select
  r.batch_id::uuid as batch_id,
  r.variant::integer as variant,
  r.label,
  t.status,
  count(*) as tries,
  array_agg(t.id order by t.id)::uuid[] as ids,
  coalesce(sum(u.input_tokens), 0)::bigint as input_tokens,
  coalesce(sum(u.output_tokens), 0)::bigint as output_tokens,
  coalesce(sum(u.cache_read_tokens), 0)::bigint as cache_read_tokens,
  coalesce(sum(u.cache_write_tokens), 0)::bigint as cache_write_tokens,
  count(u.id) as billed,
  count(u.cost_usd) as priced,
  coalesce(sum(u.cost_usd), 0)::float8 as cost_usd,
  coalesce(bool_or(u.estimated), false)::boolean as estimated
from try_requests r
join tries t on t.tenant_id = r.tenant_id and t.request_id = r.id
left join usage_records u on u.tenant_id = t.tenant_id and u.try_id = t.id
where r.tenant_id = @tenant_id and r.batch_id = any (@batch_ids::uuid[])
group by r.batch_id, r.variant, r.label, t.status
order by r.batch_id, r.variant, t.status;
