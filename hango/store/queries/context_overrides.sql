-- name: hold_agent :one
-- Hold an agent until the transaction ends, so that its sets come one after another. What is read afterwards, by a
-- statement of its own, is what the one before wrote. Keys to the agent may still be made.
select id
from agents
where tenant_id = @tenant_id and id = @id and deleted_at is null
for no key update;

-- name: hold_session :one
-- The same of a session; an append waits too, so that a set is checked against the history that it is saved with.
select id
from sessions
where tenant_id = @tenant_id and id = @id and deleted_at is null
for no key update;

-- name: list_overrides :many
-- The set of an agent or of a session, in the order it was given.
select part, action, replacement, against, created_by, created_at
from context_overrides
where tenant_id = @tenant_id
  and (agent_id = sqlc.narg(agent_id)::uuid or session_id = sqlc.narg(session_id)::uuid)
order by position;

-- name: delete_overrides :exec
-- Take the set of an agent or of a session away.
delete from context_overrides
where tenant_id = @tenant_id
  and (agent_id = sqlc.narg(agent_id)::uuid or session_id = sqlc.narg(session_id)::uuid);

-- name: add_overrides :exec
-- A whole set in one statement, one array a column; the set before was taken away in the same transaction.
insert into context_overrides (
  tenant_id, id, agent_id, session_id, position, part, action, replacement, against, created_by
)
select
  @tenant_id, n.id, sqlc.narg(agent_id)::uuid, sqlc.narg(session_id)::uuid, n.position, n.part, n.action,
  n.replacement, n.against, @user_id
from (
  select
    unnest(@ids::uuid[]) as id,
    unnest(@positions::integer[]) as position,
    unnest(@parts::text[]) as part,
    unnest(@actions::text[]) as action,
    unnest(@replacements::text[]) as replacement,
    unnest(@againsts::text[]) as against
) n;

-- name: count_overrides :one
-- Overrides of agents and sessions that are not deleted.
select count(*)
from context_overrides o
left join agents a on a.tenant_id = o.tenant_id and a.id = o.agent_id
left join sessions s on s.tenant_id = o.tenant_id and s.id = o.session_id
where o.tenant_id = @tenant_id and a.deleted_at is null and s.deleted_at is null;
