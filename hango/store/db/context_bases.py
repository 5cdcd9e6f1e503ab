"""Made by sqlc from context_bases.sql. Do not edit: change the queries, then run tools/generate_sql."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

from psycopg import AsyncConnection
from psycopg.rows import args_row, scalar_row

__all__ = ['add_override_set', 'current_base', 'find_base', 'find_override_set', 'get_base', 'keep_base', 'load_base']


CURRENT_BASE = """\
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
          and f.path like '/skills/_%%/SKILL.md'
          and f.path not like '/skills/%%/%%/SKILL.md'
          and not ('memory' = any (v.builtin) and f.path = any (v.memory))
        order by f.path
        limit %(most_skills)s::integer
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
  where t.tenant_id = %(tenant_id)s and t.id = %(session_id)s::uuid and t.deleted_at is null
  union all
  select t.tenant_id, t.id as agent_id, null as session_id, 0 as last_seq, null as summary_id
  from agents t
  where t.tenant_id = %(tenant_id)s and t.id = %(agent_id)s::uuid and t.deleted_at is null
) s
join agents a on a.tenant_id = s.tenant_id and a.id = s.agent_id
join agent_versions v on v.tenant_id = a.tenant_id and v.id = a.current_version_id
left join summaries m on m.tenant_id = s.tenant_id and m.id = s.summary_id
"""


@dataclass(frozen=True, slots=True)
class CurrentBaseRow:
    agent_id: UUID
    last_seq: int
    agent_version_id: UUID
    summary_id: UUID | None
    summary_text: str | None
    summary_through_seq: int | None
    files: str
    overrides: str
    factors: str


async def current_base(
    conn: AsyncConnection[Any],
    *,
    most_skills: int,
    tenant_id: UUID,
    session_id: UUID | None,
    agent_id: UUID | None,
) -> CurrentBaseRow | None:
    """All that the next request of a session is made of but its messages, in one statement; or of an agent without a session. Files come as one JSON list without their texts, which never change and are read apart: the memory that the agent's version names, and its skills (one more than are taken, so that a reader sees that there are more). So do saved overrides."""
    cursor = conn.cursor(row_factory=args_row(CurrentBaseRow))
    await cursor.execute(CURRENT_BASE, {"most_skills": most_skills, "tenant_id": tenant_id, "session_id": session_id, "agent_id": agent_id})
    return await cursor.fetchone()


LOAD_BASE = """\
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
where b.tenant_id = %(tenant_id)s and b.id = %(id)s and s.deleted_at is null
"""


@dataclass(frozen=True, slots=True)
class LoadBaseRow:
    agent_id: UUID
    summary_text: str | None
    summary_through_seq: int | None
    files: str
    overrides: str
    factors: str


async def load_base(
    conn: AsyncConnection[Any],
    *,
    tenant_id: UUID,
    id: UUID,
) -> LoadBaseRow | None:
    """The same of a base that was kept: everything by its id."""
    cursor = conn.cursor(row_factory=args_row(LoadBaseRow))
    await cursor.execute(LOAD_BASE, {"tenant_id": tenant_id, "id": id})
    return await cursor.fetchone()


KEEP_BASE = """\
with known as (
  select b.id
  from context_bases b
  where b.tenant_id = %(tenant_id)s and b.hash = %(hash)s
),
added as (
  insert into context_bases (
    tenant_id, id, session_id, agent_version_id, through_seq, summary_id, override_set_id, file_version_ids,
    skill_version_id, hash
  )
  select
    %(tenant_id)s, %(id)s, %(session_id)s, %(agent_version_id)s, %(through_seq)s, %(summary_id)s::uuid,
    %(override_set_id)s::uuid, %(file_version_ids)s::uuid[], %(skill_version_id)s::uuid, %(hash)s
  where not exists (select from known)
  on conflict (tenant_id, hash) do nothing
  returning id
)
select id
from known
union all
select id
from added
"""


async def keep_base(
    conn: AsyncConnection[Any],
    *,
    tenant_id: UUID,
    hash: bytes,
    id: UUID,
    session_id: UUID,
    agent_version_id: UUID,
    through_seq: int,
    summary_id: UUID | None,
    override_set_id: UUID | None,
    file_version_ids: Sequence[UUID | None],
    skill_version_id: UUID | None,
) -> UUID | None:
    """The base that is equal, or this one; no row when an equal one is being kept by somebody else."""
    cursor = conn.cursor(row_factory=scalar_row)
    await cursor.execute(KEEP_BASE, {"tenant_id": tenant_id, "hash": hash, "id": id, "session_id": session_id, "agent_version_id": agent_version_id, "through_seq": through_seq, "summary_id": summary_id, "override_set_id": override_set_id, "file_version_ids": list(file_version_ids), "skill_version_id": skill_version_id})
    return await cursor.fetchone()


FIND_BASE = """\
select id
from context_bases
where tenant_id = %(tenant_id)s and hash = %(hash)s
"""


async def find_base(
    conn: AsyncConnection[Any],
    *,
    tenant_id: UUID,
    hash: bytes,
) -> UUID | None:
    """The base that is equal."""
    cursor = conn.cursor(row_factory=scalar_row)
    await cursor.execute(FIND_BASE, {"tenant_id": tenant_id, "hash": hash})
    return await cursor.fetchone()


GET_BASE = """\
select id, session_id, agent_version_id, through_seq, summary_id, override_set_id, file_version_ids, skill_version_id,
  created_at
from context_bases
where tenant_id = %(tenant_id)s and id = %(id)s
"""


@dataclass(frozen=True, slots=True)
class GetBaseRow:
    id: UUID
    session_id: UUID
    agent_version_id: UUID
    through_seq: int
    summary_id: UUID | None
    override_set_id: UUID | None
    file_version_ids: list[UUID]
    skill_version_id: UUID | None
    created_at: datetime


async def get_base(
    conn: AsyncConnection[Any],
    *,
    tenant_id: UUID,
    id: UUID,
) -> GetBaseRow | None:
    """What a base names."""
    cursor = conn.cursor(row_factory=args_row(GetBaseRow))
    await cursor.execute(GET_BASE, {"tenant_id": tenant_id, "id": id})
    return await cursor.fetchone()


ADD_OVERRIDE_SET = """\
insert into override_sets (tenant_id, id, hash, overrides)
values (%(tenant_id)s, %(id)s, %(hash)s, %(overrides)s)
on conflict (tenant_id, hash) do nothing
returning id
"""


async def add_override_set(
    conn: AsyncConnection[Any],
    *,
    tenant_id: UUID,
    id: UUID,
    hash: bytes,
    overrides: str,
) -> UUID | None:
    """Keep a set; no row when an equal one is kept already."""
    cursor = conn.cursor(row_factory=scalar_row)
    await cursor.execute(ADD_OVERRIDE_SET, {"tenant_id": tenant_id, "id": id, "hash": hash, "overrides": overrides})
    return await cursor.fetchone()


FIND_OVERRIDE_SET = """\
select id
from override_sets
where tenant_id = %(tenant_id)s and hash = %(hash)s
"""


async def find_override_set(
    conn: AsyncConnection[Any],
    *,
    tenant_id: UUID,
    hash: bytes,
) -> UUID | None:
    """The set that is equal."""
    cursor = conn.cursor(row_factory=scalar_row)
    await cursor.execute(FIND_OVERRIDE_SET, {"tenant_id": tenant_id, "hash": hash})
    return await cursor.fetchone()

