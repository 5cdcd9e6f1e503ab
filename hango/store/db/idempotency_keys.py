"""Made by sqlc from idempotency_keys.sql. Do not edit: change the queries, then run tools/generate_sql."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

from psycopg import AsyncConnection
from psycopg.rows import args_row, scalar_row

__all__ = ['find_idempotency_key', 'purge_idempotency_keys', 'take_idempotency_key']


FIND_IDEMPOTENCY_KEY = """\
select request_hash, resource_id
from idempotency_keys
where tenant_id = %(tenant_id)s
  and user_id = %(user_id)s
  and key_hash = %(key_hash)s
  and created_at > now() - interval '24 hours'
"""


@dataclass(frozen=True, slots=True)
class FindIdempotencyKeyRow:
    request_hash: bytes
    resource_id: UUID


async def find_idempotency_key(
    conn: AsyncConnection[Any],
    *,
    tenant_id: UUID,
    user_id: UUID,
    key_hash: bytes,
) -> FindIdempotencyKeyRow | None:
    """What a key stands for, within its day. The time is the transaction's, so that taking and finding agree."""
    cursor = conn.cursor(row_factory=args_row(FindIdempotencyKeyRow), binary=True)
    await cursor.execute(FIND_IDEMPOTENCY_KEY, {"tenant_id": tenant_id, "user_id": user_id, "key_hash": key_hash})
    return await cursor.fetchone()


TAKE_IDEMPOTENCY_KEY = """\
insert into idempotency_keys (tenant_id, user_id, key_hash, request_hash, resource_id)
values (%(tenant_id)s, %(user_id)s, %(key_hash)s, %(request_hash)s, %(resource_id)s)
on conflict (tenant_id, user_id, key_hash) do update
set request_hash = excluded.request_hash, resource_id = excluded.resource_id, created_at = clock_timestamp()
where idempotency_keys.created_at <= now() - interval '24 hours'
returning resource_id
"""


async def take_idempotency_key(
    conn: AsyncConnection[Any],
    *,
    tenant_id: UUID,
    user_id: UUID,
    key_hash: bytes,
    request_hash: bytes,
    resource_id: UUID,
) -> UUID | None:
    """Take a key that nobody has, or whose day is over. Whoever takes the same at once waits for this transaction."""
    cursor = conn.cursor(row_factory=scalar_row)
    await cursor.execute(TAKE_IDEMPOTENCY_KEY, {"tenant_id": tenant_id, "user_id": user_id, "key_hash": key_hash, "request_hash": request_hash, "resource_id": resource_id})
    return await cursor.fetchone()


PURGE_IDEMPOTENCY_KEYS = """\
delete from idempotency_keys
where tenant_id = %(tenant_id)s and created_at <= clock_timestamp() - interval '25 hours'
"""


async def purge_idempotency_keys(
    conn: AsyncConnection[Any],
    *,
    tenant_id: UUID,
) -> None:
    """Keys whose day is over, with time for a transaction that is about to read one."""
    cursor = conn.cursor()
    await cursor.execute(PURGE_IDEMPOTENCY_KEYS, {"tenant_id": tenant_id})

