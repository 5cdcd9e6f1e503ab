"""Override sets: saved overrides as they were at one moment, kept once however often they are named."""

from __future__ import annotations

from hashlib import sha256
from uuid import UUID

from hango.store.connection import Scope, one
from hango.store.db import context_bases as rows
from hango.store.ids import new_id


async def find_or_create(scope: Scope, overrides: str) -> UUID:
    """Keep the JSON text of a set; equal texts of a tenant are one row."""
    hash = sha256(overrides.encode()).digest()
    found = await rows.find_override_set(scope.conn, tenant_id=scope.tenant_id, hash=hash)
    if found is not None:
        return found
    made = await rows.add_override_set(
        scope.conn, tenant_id=scope.tenant_id, id=new_id(), hash=hash, overrides=overrides
    )
    # The other's row is committed: the insert above waited for it.
    return made or one(await rows.find_override_set(scope.conn, tenant_id=scope.tenant_id, hash=hash))
