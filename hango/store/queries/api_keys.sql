-- name: get_api_key :one
-- A key that is not revoked, without its hash.
select id, name, user_id, created_at
from api_keys
where tenant_id = @tenant_id and id = @id and revoked_at is null;

-- name: list_api_keys :many
-- Keys that are not revoked, of one user or of all, the newest first.
select id, name, user_id, created_at
from api_keys
where tenant_id = @tenant_id
  and revoked_at is null
  and (sqlc.narg(user_id)::uuid is null or user_id = sqlc.narg(user_id)::uuid)
  and (sqlc.narg(before)::uuid is null or id < sqlc.narg(before)::uuid)
order by id desc
limit @most;

-- name: create_api_key :one
-- A key of a user of the tenant; no row when there is no such user.
insert into api_keys (tenant_id, id, user_id, name, prefix, secret_hash)
select u.tenant_id, @id, u.id, @name, @prefix, @secret_hash
from users u
where u.tenant_id = @tenant_id and u.id = @user_id
returning id, name, user_id, created_at;

-- name: revoke_api_key :execrows
-- Revoke once.
update api_keys
set revoked_at = now()
where tenant_id = @tenant_id and id = @id and revoked_at is null;
