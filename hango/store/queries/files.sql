-- name: get_file :one
-- The current version of a file that is not deleted.
select v.id as version_id, v.path, v.content, v.number, v.chars, v.created_at as updated_at
from files f
join file_versions v on v.tenant_id = f.tenant_id and v.id = f.current_version_id
where f.tenant_id = @tenant_id and f.agent_id = @agent_id and f.path = @path and f.deleted_at is null;

-- name: list_texts :many
-- The beginnings of the texts of file versions.
select id, left(content, @most_chars)::text as content
from file_versions
where tenant_id = @tenant_id and id = any (@ids::uuid[]);

-- name: list_files :many
-- Files under a prefix, by path, without their text.
select v.path, v.number as version, v.chars, v.created_at as updated_at
from files f
join file_versions v on v.tenant_id = f.tenant_id and v.id = f.current_version_id
where f.tenant_id = @tenant_id
  and f.agent_id = @agent_id
  and f.deleted_at is null
  and starts_with(f.path, @prefix)
  and (sqlc.narg(after)::text is null or f.path > sqlc.narg(after)::text)
order by f.path
limit @most;

-- name: list_holding :many
-- Of the files of these paths those whose text holds a text, by path.
select v.path, v.content
from files f
join file_versions v on v.tenant_id = f.tenant_id and v.id = f.current_version_id
where f.tenant_id = @tenant_id
  and f.agent_id = @agent_id
  and f.deleted_at is null
  and f.path = any (@paths::text[])
  and position(@text::text in v.content) > 0
order by f.path;

-- name: hold_files :exec
-- Hold an agent's files until the transaction ends: who writes several of them and who reads one to change it does so in
-- turn with others. No row stands for all files of an agent, and its own row is held by who changes the agent.
select pg_advisory_xact_lock(7004, hashtext(concat(@tenant_id::uuid, @agent_id::uuid)))::text as held;

-- name: put_file :one
-- Point the path at a new version, which follows in the same transaction; no row when there is no such agent. The row
-- is held, so that versions are numbered in turn.
insert into files (tenant_id, agent_id, path, current_version_id, version)
select a.tenant_id, a.id, @path, @version_id, 1
from agents a
where a.tenant_id = @tenant_id and a.id = @agent_id and a.deleted_at is null
on conflict (tenant_id, agent_id, path) do update
set
  current_version_id = excluded.current_version_id,
  version = files.version + 1,
  updated_at = now(),
  deleted_at = null
returning version;

-- name: create_file_version :one
-- A version, for good.
insert into file_versions (tenant_id, id, agent_id, path, number, content, chars, created_by)
values (@tenant_id, @id, @agent_id, @path, @number, @content, @chars, @user_id)
returning created_at;

-- name: delete_file :execrows
-- Mark the file as deleted; its versions stay.
update files
set deleted_at = now()
where tenant_id = @tenant_id and agent_id = @agent_id and path = @path and deleted_at is null;
