"""Idempotency keys: a POST that starts work and is repeated gives the first resource again, for 24 hours."""

from __future__ import annotations

from hashlib import sha256
from uuid import UUID

from hango.errors import Invalid, Reason
from hango.store.connection import Scope, one
from hango.store.db import idempotency_keys as rows

REUSED = "This Idempotency-Key was used for another request within 24 hours. Send a new key."


async def find(scope: Scope, key: str, request_hash: bytes) -> UUID | None:
    """The resource that the caller's key stands for. Raises Invalid (`idempotency_key_reused`) for another request."""
    row = await rows.find_idempotency_key(
        scope.conn, tenant_id=scope.tenant_id, user_id=scope.user_id, key_hash=_hash(key)
    )
    return None if row is None else _same(row, request_hash)


async def take(scope: Scope, key: str, request_hash: bytes, resource_id: UUID) -> UUID:
    """Take the key for a resource of this transaction; returns the first one when somebody was faster.

    Raises as `find` does.
    """
    made = await rows.take_idempotency_key(
        scope.conn,
        tenant_id=scope.tenant_id,
        user_id=scope.user_id,
        key_hash=_hash(key),
        request_hash=request_hash,
        resource_id=resource_id,
    )
    if made is not None:
        return made
    # The other's row is committed: the insert above waited for it.
    return one(await find(scope, key, request_hash))


def _same(row: rows.FindIdempotencyKeyRow, request_hash: bytes) -> UUID:
    if row.request_hash != request_hash:
        raise Invalid.because(Reason.IDEMPOTENCY_KEY_REUSED, REUSED)
    return row.resource_id


def _hash(key: str) -> bytes:
    return sha256(key.encode()).digest()
