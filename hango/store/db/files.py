"""Made by sqlc from files.sql. Do not edit: change the queries, then run tools/generate_sql."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

from psycopg import AsyncConnection
from psycopg.rows import args_row, scalar_row

__all__ = ['create_file_version', 'delete_file', 'get_file', 'hold_files', 'list_files', 'list_holding', 'list_texts', 'put_file']


GET_FILE = """\
select v.id as version_id, v.path, v.content, v.number, v.chars, v.created_at as updated_at
from files f
join file_versions v on v.tenant_id = f.tenant_id and v.id = f.current_version_id
where f.tenant_id = %(tenant_id)s and f.agent_id = %(agent_id)s and f.path = %(path)s and f.deleted_at is null
"""


@dataclass(frozen=True, slots=True)
class GetFileRow:
    version_id: UUID
    path: str
    content: str
    number: int
    chars: int
    updated_at: datetime


async def get_file(
    conn: AsyncConnection[Any],
    *,
    tenant_id: UUID,
    agent_id: UUID,
    path: str,
) -> GetFileRow | None:
    """The current version of a file that is not deleted."""
    cursor = conn.cursor(row_factory=args_row(GetFileRow))
    await cursor.execute(GET_FILE, {"tenant_id": tenant_id, "agent_id": agent_id, "path": path})
    return await cursor.fetchone()


LIST_TEXTS = """\
select id, left(content, %(most_chars)s)::text as content
from file_versions
where tenant_id = %(tenant_id)s and id = any (%(ids)s::uuid[])
"""


@dataclass(frozen=True, slots=True)
class ListTextsRow:
    id: UUID
    content: str


async def list_texts(
    conn: AsyncConnection[Any],
    *,
    most_chars: int,
    tenant_id: UUID,
    ids: Sequence[UUID | None],
) -> list[ListTextsRow]:
    """The beginnings of the texts of file versions."""
    cursor = conn.cursor(row_factory=args_row(ListTextsRow))
    await cursor.execute(LIST_TEXTS, {"most_chars": most_chars, "tenant_id": tenant_id, "ids": list(ids)})
    return await cursor.fetchall()


LIST_FILES = """\
select v.path, v.number as version, v.chars, v.created_at as updated_at
from files f
join file_versions v on v.tenant_id = f.tenant_id and v.id = f.current_version_id
where f.tenant_id = %(tenant_id)s
  and f.agent_id = %(agent_id)s
  and f.deleted_at is null
  and starts_with(f.path, %(prefix)s)
  and (%(after)s::text is null or f.path > %(after)s::text)
order by f.path
limit %(most)s
"""


@dataclass(frozen=True, slots=True)
class ListFilesRow:
    path: str
    version: int
    chars: int
    updated_at: datetime


async def list_files(
    conn: AsyncConnection[Any],
    *,
    tenant_id: UUID,
    agent_id: UUID,
    prefix: str,
    after: str | None,
    most: int,
) -> list[ListFilesRow]:
    """Files under a prefix, by path, without their text."""
    cursor = conn.cursor(row_factory=args_row(ListFilesRow))
    await cursor.execute(LIST_FILES, {"tenant_id": tenant_id, "agent_id": agent_id, "prefix": prefix, "after": after, "most": most})
    return await cursor.fetchall()


LIST_HOLDING = """\
select v.path, v.content
from files f
join file_versions v on v.tenant_id = f.tenant_id and v.id = f.current_version_id
where f.tenant_id = %(tenant_id)s
  and f.agent_id = %(agent_id)s
  and f.deleted_at is null
  and f.path = any (%(paths)s::text[])
  and position(%(text)s::text in v.content) > 0
order by f.path
"""


@dataclass(frozen=True, slots=True)
class ListHoldingRow:
    path: str
    content: str


async def list_holding(
    conn: AsyncConnection[Any],
    *,
    tenant_id: UUID,
    agent_id: UUID,
    paths: Sequence[str | None],
    text: str,
) -> list[ListHoldingRow]:
    """Of the files of these paths those whose text holds a text, by path."""
    cursor = conn.cursor(row_factory=args_row(ListHoldingRow))
    await cursor.execute(LIST_HOLDING, {"tenant_id": tenant_id, "agent_id": agent_id, "paths": list(paths), "text": text})
    return await cursor.fetchall()


HOLD_FILES = """\
select pg_advisory_xact_lock(7004, hashtext(concat(%(tenant_id)s::uuid, %(agent_id)s::uuid)))::text as held
"""


async def hold_files(
    conn: AsyncConnection[Any],
    *,
    tenant_id: UUID,
    agent_id: UUID,
) -> None:
    """Hold an agent's files until the transaction ends: who writes several of them and who reads one to change it does so in turn with others. No row stands for all files of an agent, and its own row is held by who changes the agent."""
    cursor = conn.cursor(row_factory=scalar_row)
    await cursor.execute(HOLD_FILES, {"tenant_id": tenant_id, "agent_id": agent_id})


PUT_FILE = """\
insert into files (tenant_id, agent_id, path, current_version_id, version)
select a.tenant_id, a.id, %(path)s, %(version_id)s, 1
from agents a
where a.tenant_id = %(tenant_id)s and a.id = %(agent_id)s and a.deleted_at is null
on conflict (tenant_id, agent_id, path) do update
set
  current_version_id = excluded.current_version_id,
  version = files.version + 1,
  updated_at = now(),
  deleted_at = null
returning version
"""


async def put_file(
    conn: AsyncConnection[Any],
    *,
    path: str,
    version_id: UUID,
    tenant_id: UUID,
    agent_id: UUID,
) -> int | None:
    """Point the path at a new version, which follows in the same transaction; no row when there is no such agent. The row is held, so that versions are numbered in turn."""
    cursor = conn.cursor(row_factory=scalar_row)
    await cursor.execute(PUT_FILE, {"path": path, "version_id": version_id, "tenant_id": tenant_id, "agent_id": agent_id})
    return await cursor.fetchone()


CREATE_FILE_VERSION = """\
insert into file_versions (tenant_id, id, agent_id, path, number, content, chars, created_by)
values (%(tenant_id)s, %(id)s, %(agent_id)s, %(path)s, %(number)s, %(content)s, %(chars)s, %(user_id)s)
returning created_at
"""


async def create_file_version(
    conn: AsyncConnection[Any],
    *,
    tenant_id: UUID,
    id: UUID,
    agent_id: UUID,
    path: str,
    number: int,
    content: str,
    chars: int,
    user_id: UUID,
) -> datetime | None:
    """A version, for good."""
    cursor = conn.cursor(row_factory=scalar_row)
    await cursor.execute(CREATE_FILE_VERSION, {"tenant_id": tenant_id, "id": id, "agent_id": agent_id, "path": path, "number": number, "content": content, "chars": chars, "user_id": user_id})
    return await cursor.fetchone()


DELETE_FILE = """\
update files
set deleted_at = now()
where tenant_id = %(tenant_id)s and agent_id = %(agent_id)s and path = %(path)s and deleted_at is null
"""


async def delete_file(
    conn: AsyncConnection[Any],
    *,
    tenant_id: UUID,
    agent_id: UUID,
    path: str,
) -> int:
    """Mark the file as deleted; its versions stay."""
    cursor = conn.cursor()
    await cursor.execute(DELETE_FILE, {"tenant_id": tenant_id, "agent_id": agent_id, "path": path})
    return cursor.rowcount

