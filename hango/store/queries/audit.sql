-- name: add_event :exec
-- One event of the audit log.
insert into audit_events (tenant_id, id, action, target_kind, target_id, user_id, detail)
values (@tenant_id, @id, @action, @target_kind, sqlc.narg(target_id), @user_id, @detail::jsonb);

-- name: list_events :many
-- The audit log, the newest first.
select id, action, target_kind, target_id, user_id, detail, created_at
from audit_events
where tenant_id = @tenant_id
  and (sqlc.narg(before)::uuid is null or id < sqlc.narg(before)::uuid)
order by id desc
limit @most;
