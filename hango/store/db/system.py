"""Made by sqlc from system.sql. Do not edit: change the queries, then run tools/generate_sql."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

from psycopg import AsyncConnection
from psycopg.rows import args_row, scalar_row

__all__ = ['add_tenant', 'find_key']


FIND_KEY = """\
select
  k.tenant_id, k.id as key_id, k.secret_hash, u.id as user_id, u.role, t.rate_per_minute, t.trace_llm_content
from api_keys k
join users u on u.tenant_id = k.tenant_id and u.id = k.user_id
join tenants t on t.id = k.tenant_id
where k.prefix = %(prefix)s and k.revoked_at is null and not u.disabled
"""


@dataclass(frozen=True, slots=True)
class FindKeyRow:
    tenant_id: UUID
    key_id: UUID
    secret_hash: bytes
    user_id: UUID
    role: str
    rate_per_minute: int | None
    trace_llm_content: bool


async def find_key(
    conn: AsyncConnection[Any],
    *,
    prefix: str,
) -> FindKeyRow | None:
    """Who a key belongs to, by its shown part; nothing for a revoked key or a disabled user. unscoped: the key is what tells the tenant."""
    cursor = conn.cursor(row_factory=args_row(FindKeyRow), binary=True)
    await cursor.execute(FIND_KEY, {"prefix": prefix})
    return await cursor.fetchone()


ADD_TENANT = """\
insert into tenants (id, name, quota_tokens)
values (%(id)s, %(name)s, %(quota_tokens)s)
"""


async def add_tenant(
    conn: AsyncConnection[Any],
    *,
    id: UUID,
    name: str,
    quota_tokens: int | None,
) -> None:
    """A new tenant. unscoped: a tenant is made before anyone can act in it."""
    cursor = conn.cursor()
    await cursor.execute(ADD_TENANT, {"id": id, "name": name, "quota_tokens": quota_tokens})

