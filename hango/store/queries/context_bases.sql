-- name: current_base :one
-- All that the next request of a session is made of but its messages, in one statement; or of an agent without a session.
-- Files come as one JSON list without their texts, which never change and are read apart: the memory that the agent's
-- version names, and its skills (one more than are taken, so that a reader sees that there are more). So do saved
-- overrides.
select
  s.agent_id,
  s.last_seq,
  v.id as agent_version_id,
  m.id as summary_id,
  m.text as summary_text,
  m.through_seq as summary_through_seq,
  (
    select
      coalesce(
        json_agg(json_build_array(w.id, w.path, w.number, w.chars, w.created_at) order by w.path),
        '[]'
      )
    from (
      select f.current_version_id as id
      from files f
      where f.tenant_id = s.tenant_id
        and f.agent_id = s.agent_id
        and f.deleted_at is null
        and 'memory' = any (v.builtin)
        and f.path = any (v.memory)
      union all
      (
        select f.current_version_id as id
        from files f
        where f.tenant_id = s.tenant_id
          and f.agent_id = s.agent_id
          and f.deleted_at is null
          and 'skills' = any (v.builtin)
          and f.path >= '/skills/' and f.path < '/skills0'
          and f.path like '/skills/_%/SKILL.md'
          and f.path not like '/skills/%/%/SKILL.md'
          and not ('memory' = any (v.builtin) and f.path = any (v.memory))
        order by f.path
        limit @most_skills::integer
      )
    ) n
    join file_versions w on w.tenant_id = s.tenant_id and w.id = n.id
  )::text as files,
  (
    select
      coalesce(
        json_agg(
          json_build_array(o.part, o.action, o.replacement, o.against, o.scope, o.created_by, o.created_at)
          order by o.scope, o.position
        ),
        '[]'
      )
    from (
      select 'agent' as scope, c.position, c.part, c.action, c.replacement, c.against, c.created_by, c.created_at
      from context_overrides c
      where c.tenant_id = s.tenant_id and c.agent_id = s.agent_id
      union all
      select 'session' as scope, c.position, c.part, c.action, c.replacement, c.against, c.created_by, c.created_at
      from context_overrides c
      where c.tenant_id = s.tenant_id and c.session_id = s.session_id
    ) o
  )::text as overrides,
  (
    select coalesce(json_object_agg(f.model, json_build_array(f.factor, f.calls)), '{}')
    from token_factors f
    where f.tenant_id = s.tenant_id
  )::text as factors
from (
  select t.tenant_id, t.agent_id, t.id as session_id, t.last_seq, t.summary_id
  from sessions t
  where t.tenant_id = @tenant_id and t.id = sqlc.narg(session_id)::uuid and t.deleted_at is null
  union all
  select t.tenant_id, t.id as agent_id, null as session_id, 0 as last_seq, null as summary_id
  from agents t
  where t.tenant_id = @tenant_id and t.id = sqlc.narg(agent_id)::uuid and t.deleted_at is null
) s
join agents a on a.tenant_id = s.tenant_id and a.id = s.agent_id
join agent_versions v on v.tenant_id = a.tenant_id and v.id = a.current_version_id
left join summaries m on m.tenant_id = s.tenant_id and m.id = s.summary_id;

-- name: load_base :one
-- The same of a base that was kept: everything by its id.
select
  s.agent_id,
  m.text as summary_text,
  m.through_seq as summary_through_seq,
  (
    select
      coalesce(
        json_agg(json_build_array(w.id, w.path, w.number, w.chars, w.created_at) order by w.path),
        '[]'
      )
    from file_versions w
    where w.tenant_id = b.tenant_id and w.id = any (b.file_version_ids)
  )::text as files,
  coalesce(o.overrides, '[]')::text as overrides,
  (
    select coalesce(json_object_agg(f.model, json_build_array(f.factor, f.calls)), '{}')
    from token_factors f
    where f.tenant_id = b.tenant_id
  )::text as factors
from context_bases b
left join override_sets o on o.tenant_id = b.tenant_id and o.id = b.override_set_id
join sessions s on s.tenant_id = b.tenant_id and s.id = b.session_id
left join summaries m on m.tenant_id = b.tenant_id and m.id = b.summary_id
where b.tenant_id = @tenant_id and b.id = @id and s.deleted_at is null;

-- name: keep_base :one
-- The base that is equal, or this one; no row when an equal one is being kept by somebody else.
with known as (
  select b.id
  from context_bases b
  where b.tenant_id = @tenant_id and b.hash = @hash
),
added as (
  insert into context_bases (
    tenant_id, id, session_id, agent_version_id, through_seq, summary_id, override_set_id, file_version_ids,
    skill_version_id, hash
  )
  select
    @tenant_id, @id, @session_id, @agent_version_id, @through_seq, sqlc.narg(summary_id)::uuid,
    sqlc.narg(override_set_id)::uuid, @file_version_ids::uuid[], sqlc.narg(skill_version_id)::uuid, @hash
  where not exists (select from known)
  on conflict (tenant_id, hash) do nothing
  returning id
)
select id
from known
union all
select id
from added;

-- name: find_base :one
-- The base that is equal.
select id
from context_bases
where tenant_id = @tenant_id and hash = @hash;

-- name: get_base :one
-- What a base names.
select id, session_id, agent_version_id, through_seq, summary_id, override_set_id, file_version_ids, skill_version_id,
  created_at
from context_bases
where tenant_id = @tenant_id and id = @id;

-- name: add_override_set :one
-- Keep a set; no row when an equal one is kept already.
insert into override_sets (tenant_id, id, hash, overrides)
values (@tenant_id, @id, @hash, @overrides)
on conflict (tenant_id, hash) do nothing
returning id;

-- name: find_override_set :one
-- The set that is equal.
select id
from override_sets
where tenant_id = @tenant_id and hash = @hash;
