-- name: get_user :one
-- One user of the tenant.
select id, name, role, disabled, created_at
from users
where tenant_id = @tenant_id and id = @id;

-- name: list_users :many
-- The tenant's users, the newest first.
select id, name, role, disabled, created_at
from users
where tenant_id = @tenant_id
  and (sqlc.narg(before)::uuid is null or id < sqlc.narg(before)::uuid)
order by id desc
limit @most;

-- name: create_user :one
-- A new user, enabled.
insert into users (tenant_id, id, name, role)
values (@tenant_id, @id, @name, @role)
returning id, name, role, disabled, created_at;

-- name: lock_admins :many
-- The tenant's working admins, held until the transaction ends, so that two changes cannot each leave the other's.
select id
from users
where tenant_id = @tenant_id and role = 'admin' and not disabled
order by id
for update;

-- name: update_user :one
-- Change what is given.
update users
set
  name = coalesce(sqlc.narg(name), name),
  role = coalesce(sqlc.narg(role), role),
  disabled = coalesce(sqlc.narg(disabled), disabled)
where tenant_id = @tenant_id and id = @id
returning id, name, role, disabled, created_at;
