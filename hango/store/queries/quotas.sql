-- name: ensure_quota_row :exec
-- The row of this month (UTC).
insert into quotas (tenant_id, period)
values (@tenant_id, date_trunc('month', clock_timestamp() at time zone 'utc')::date)
on conflict (tenant_id, period) do nothing;

-- name: reserve_quota :one
-- Hold tokens of this month's quota when there are so many left. Whoever reserves next waits for this transaction.
update quotas q
set reserved = q.reserved + @tokens::bigint
from tenants t
where q.tenant_id = @tenant_id
  and q.period = date_trunc('month', clock_timestamp() at time zone 'utc')::date
  and t.id = q.tenant_id
  and (t.quota_tokens is null or q.used + q.reserved + @tokens::bigint <= t.quota_tokens)
returning q.period;
