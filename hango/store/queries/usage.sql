-- name: record_usage :exec
-- One model call; without a run when it was a try.
insert into usage_records (
  tenant_id, id, purpose, run_id, session_id, user_id, model, input_tokens, output_tokens, cache_read_tokens,
  cache_write_tokens, cost_usd, estimated
)
values (
  @tenant_id, @id, @purpose, sqlc.narg(run_id), @session_id, @user_id, @model, @input_tokens, @output_tokens,
  @cache_read_tokens, @cache_write_tokens, sqlc.narg(cost_usd), @estimated
);

-- name: use_quota :exec
-- Count tokens as used in this month.
insert into quotas (tenant_id, period, used)
values (@tenant_id, date_trunc('month', now() at time zone 'utc')::date, @tokens::bigint)
on conflict (tenant_id, period) do update
set used = quotas.used + excluded.used;

-- name: sum_usage :many
-- Usage in a stretch of time, in groups. `priced` counts the records whose cost is known.
select
  (
    case @group_by::text
      when 'purpose' then u.purpose
      when 'model' then u.model
      when 'user' then u.user_id::text
      when 'session' then u.session_id::text
      else to_char(u.created_at at time zone 'utc', 'YYYY-MM-DD')
    end
  )::text as group_name,
  count(*) as records,
  sum(u.input_tokens)::bigint as input_tokens,
  sum(u.output_tokens)::bigint as output_tokens,
  sum(u.cache_read_tokens)::bigint as cache_read_tokens,
  sum(u.cache_write_tokens)::bigint as cache_write_tokens,
  count(u.cost_usd) as priced,
  coalesce(sum(u.cost_usd), 0)::float8 as cost_usd
from usage_records u
where u.tenant_id = @tenant_id
  and (sqlc.narg(since)::timestamptz is null or u.created_at >= sqlc.narg(since)::timestamptz)
  and (sqlc.narg(before)::timestamptz is null or u.created_at < sqlc.narg(before)::timestamptz)
group by 1
order by 1;

-- name: list_usage :many
-- Records, the newest first.
select
  id, purpose, run_id, try_id, session_id, model, input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, cost_usd,
  estimated, created_at
from usage_records
where tenant_id = @tenant_id
  and (sqlc.narg(purpose)::text is null or purpose = sqlc.narg(purpose)::text)
  and (sqlc.narg(session_id)::uuid is null or session_id = sqlc.narg(session_id)::uuid)
  and (sqlc.narg(before)::uuid is null or id < sqlc.narg(before)::uuid)
order by id desc
limit @most;
