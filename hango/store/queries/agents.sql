-- name: get_agent :one
-- An agent that is not deleted, with its current definition.
select
  a.id, a.name, a.shared, a.created_by, a.created_at, a.updated_at, a.current_version_id as version_id, v.definition
from agents a
join agent_versions v on v.tenant_id = a.tenant_id and v.id = a.current_version_id
where a.tenant_id = @tenant_id and a.id = @id and a.deleted_at is null;

-- name: list_agents :many
-- Agents that the caller may read, by a part of the name, the newest first.
select
  a.id, a.name, a.shared, a.created_by, a.created_at, a.updated_at, a.current_version_id as version_id, v.definition
from agents a
join agent_versions v on v.tenant_id = a.tenant_id and v.id = a.current_version_id
where a.tenant_id = @tenant_id
  and a.deleted_at is null
  and (@see_all::boolean or a.shared or a.created_by = @user_id)
  and (sqlc.narg(q)::text is null or position(lower(sqlc.narg(q)::text) in lower(a.name)) > 0)
  and (sqlc.narg(before)::uuid is null or a.id < sqlc.narg(before)::uuid)
order by a.id desc
limit @most;

-- name: create_agent :exec
-- The agent; its version follows in the same transaction.
insert into agents (tenant_id, id, name, shared, model, current_version_id, created_by)
values (@tenant_id, @id, @name, @shared, @model, @version_id, @user_id);

-- name: create_agent_version :exec
-- A version, for good.
insert into agent_versions (tenant_id, id, agent_id, number, definition, memory, builtin, created_by)
values (@tenant_id, @id, @agent_id, @number, @definition, @memory::text[], @builtin::text[], @user_id);

-- name: lock_agent :one
-- Hold an agent, so that versions are numbered in turn. Its version is read afterwards, by a statement of its own: one
-- that joins would, after waiting, look for the newer version among the rows it saw before.
select id
from agents
where tenant_id = @tenant_id and id = @id and deleted_at is null
for update;

-- name: get_version_number :one
-- The number of the version in force.
select v.number
from agents a
join agent_versions v on v.tenant_id = a.tenant_id and v.id = a.current_version_id
where a.tenant_id = @tenant_id and a.id = @id;

-- name: update_agent :exec
-- Name, sharing and the version in force.
update agents
set name = @name, shared = @shared, model = @model, current_version_id = @version_id, updated_at = now()
where tenant_id = @tenant_id and id = @id;

-- name: delete_agent :execrows
-- Hide the agent; versions, sessions and usage stay.
update agents
set deleted_at = now()
where tenant_id = @tenant_id and id = @id and deleted_at is null;

-- name: get_definition :one
-- A version's definition, also of a deleted agent.
select definition
from agent_versions
where tenant_id = @tenant_id and id = @version_id;
