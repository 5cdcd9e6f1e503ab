"""Made by sqlc from api_keys.sql. Do not edit: change the queries, then run tools/generate_sql."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

from psycopg import AsyncConnection
from psycopg.rows import args_row, scalar_row

__all__ = ['create_api_key', 'get_api_key', 'list_api_keys', 'revoke_api_key']


GET_API_KEY = """\
select id, name, user_id, created_at
from api_keys
where tenant_id = %(tenant_id)s and id = %(id)s and revoked_at is null
"""


@dataclass(frozen=True, slots=True)
class GetApiKeyRow:
    id: UUID
    name: str
    user_id: UUID
    created_at: datetime


async def get_api_key(
    conn: AsyncConnection[Any],
    *,
    tenant_id: UUID,
    id: UUID,
) -> GetApiKeyRow | None:
    """A key that is not revoked, without its hash."""
    cursor = conn.cursor(row_factory=args_row(GetApiKeyRow))
    await cursor.execute(GET_API_KEY, {"tenant_id": tenant_id, "id": id})
    return await cursor.fetchone()


LIST_API_KEYS = """\
select id, name, user_id, created_at
from api_keys
where tenant_id = %(tenant_id)s
  and revoked_at is null
  and (%(user_id)s::uuid is null or user_id = %(user_id)s::uuid)
  and (%(before)s::uuid is null or id < %(before)s::uuid)
order by id desc
limit %(most)s
"""


@dataclass(frozen=True, slots=True)
class ListApiKeysRow:
    id: UUID
    name: str
    user_id: UUID
    created_at: datetime


async def list_api_keys(
    conn: AsyncConnection[Any],
    *,
    tenant_id: UUID,
    user_id: UUID | None,
    before: UUID | None,
    most: int,
) -> list[ListApiKeysRow]:
    """Keys that are not revoked, of one user or of all, the newest first."""
    cursor = conn.cursor(row_factory=args_row(ListApiKeysRow))
    await cursor.execute(LIST_API_KEYS, {"tenant_id": tenant_id, "user_id": user_id, "before": before, "most": most})
    return await cursor.fetchall()


CREATE_API_KEY = """\
insert into api_keys (tenant_id, id, user_id, name, prefix, secret_hash)
select u.tenant_id, %(id)s, u.id, %(name)s, %(prefix)s, %(secret_hash)s
from users u
where u.tenant_id = %(tenant_id)s and u.id = %(user_id)s
returning id, name, user_id, created_at
"""


@dataclass(frozen=True, slots=True)
class CreateApiKeyRow:
    id: UUID
    name: str
    user_id: UUID
    created_at: datetime


async def create_api_key(
    conn: AsyncConnection[Any],
    *,
    id: UUID,
    name: str,
    prefix: str,
    secret_hash: bytes,
    tenant_id: UUID,
    user_id: UUID,
) -> CreateApiKeyRow | None:
    """A key of a user of the tenant; no row when there is no such user."""
    cursor = conn.cursor(row_factory=args_row(CreateApiKeyRow))
    await cursor.execute(CREATE_API_KEY, {"id": id, "name": name, "prefix": prefix, "secret_hash": secret_hash, "tenant_id": tenant_id, "user_id": user_id})
    return await cursor.fetchone()


REVOKE_API_KEY = """\
update api_keys
set revoked_at = now()
where tenant_id = %(tenant_id)s and id = %(id)s and revoked_at is null
"""


async def revoke_api_key(
    conn: AsyncConnection[Any],
    *,
    tenant_id: UUID,
    id: UUID,
) -> int:
    """Revoke once."""
    cursor = conn.cursor()
    await cursor.execute(REVOKE_API_KEY, {"tenant_id": tenant_id, "id": id})
    return cursor.rowcount

