-- name: get_session :one
-- A session that is not deleted and no subagent's, with its summary and its last run.
select
  s.id, s.agent_id, s.title, s.tokens, s.last_seq, s.created_by, s.created_at,
  m.id as summary_id, m.text as summary_text, m.through_seq as summary_through_seq,
  r.id as run_id, r.status as run_status, r.created_at as run_created_at
from sessions s
left join summaries m on m.tenant_id = s.tenant_id and m.id = s.summary_id
left join runs r on r.tenant_id = s.tenant_id and r.id = s.last_run_id
where s.tenant_id = @tenant_id and s.id = @id and s.deleted_at is null and s.parent_run_id is null;

-- name: list_sessions :many
-- Sessions that the caller may read, by agent and by a part of the title, the newest first.
select
  s.id, s.agent_id, s.title, s.tokens, s.last_seq, s.created_by, s.created_at,
  m.id as summary_id, m.text as summary_text, m.through_seq as summary_through_seq,
  r.id as run_id, r.status as run_status, r.created_at as run_created_at
from sessions s
left join summaries m on m.tenant_id = s.tenant_id and m.id = s.summary_id
left join runs r on r.tenant_id = s.tenant_id and r.id = s.last_run_id
where s.tenant_id = @tenant_id
  and s.deleted_at is null
  and s.parent_run_id is null
  and (@see_all::boolean or s.created_by = @user_id)
  and (sqlc.narg(agent_id)::uuid is null or s.agent_id = sqlc.narg(agent_id)::uuid)
  and (sqlc.narg(q)::text is null or position(lower(sqlc.narg(q)::text) in lower(s.title)) > 0)
  and (sqlc.narg(before)::uuid is null or s.id < sqlc.narg(before)::uuid)
order by s.id desc
limit @most;

-- name: create_session :execrows
-- An empty session of an agent that is not deleted; no row when there is no such agent.
insert into sessions (tenant_id, id, agent_id, title, created_by)
select a.tenant_id, @id, a.id, @title, @user_id
from agents a
where a.tenant_id = @tenant_id and a.id = @agent_id and a.deleted_at is null;

-- name: delete_session :execrows
-- Hide the session; messages and usage stay.
update sessions
set deleted_at = now()
where tenant_id = @tenant_id and id = @id and deleted_at is null;

-- name: create_summary :execrows
-- A summary of the history up to a message; no row when the session has no such message.
insert into summaries (tenant_id, id, session_id, text, through_seq, tokens, previous_id)
select s.tenant_id, @id, s.id, @text, @through_seq, @tokens, s.summary_id
from sessions s
where s.tenant_id = @tenant_id
  and s.id = @session_id
  and s.deleted_at is null
  and @through_seq between 1 and s.last_seq;

-- name: use_summary :exec
-- Put a summary in force.
update sessions
set summary_id = @summary_id
where tenant_id = @tenant_id and id = @session_id;

-- name: get_session_end :one
-- The last seq of a session that is not deleted, of a subagent's too.
select last_seq
from sessions
where tenant_id = @tenant_id and id = @id and deleted_at is null;

-- name: undo_summary :one
-- Put the summary in force again that was before the present one, or none; no row when there is none to take back.
update sessions s
set summary_id = m.previous_id
from summaries m
where s.tenant_id = @tenant_id
  and s.id = @session_id
  and s.deleted_at is null
  and m.tenant_id = s.tenant_id
  and m.id = s.summary_id
returning s.id;
