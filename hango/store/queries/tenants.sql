-- name: get_tenant :one
-- The caller's tenant, with this month's use of its quota.
select
  t.id,
  t.name,
  t.quota_tokens,
  coalesce(q.used, 0)::bigint as quota_used,
  coalesce(q.reserved, 0)::bigint as quota_reserved,
  date_trunc('month', now() at time zone 'utc')::date as period_start,
  t.rate_per_minute,
  t.trace_llm_content
from tenants t
left join quotas q
  on q.tenant_id = t.id and q.period = date_trunc('month', now() at time zone 'utc')::date
where t.id = @tenant_id;

-- name: update_tenant :execrows
-- Change what is given; the nullable settings say by a flag of their own whether they are.
update tenants
set
  name = coalesce(sqlc.narg(name), name),
  quota_tokens = case when @set_quota_tokens::boolean then sqlc.narg(quota_tokens) else quota_tokens end,
  rate_per_minute = case when @set_rate_per_minute::boolean then sqlc.narg(rate_per_minute) else rate_per_minute end,
  trace_llm_content = coalesce(sqlc.narg(trace_llm_content), trace_llm_content)
where id = @tenant_id;
