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
