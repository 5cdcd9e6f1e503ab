"""What is kept for a time only: texts and answers of tries, tries that ended long ago, idempotency keys."""

from __future__ import annotations

from hango.store.connection import Scope
from hango.store.db import idempotency_keys as key_rows
from hango.store.db import tries as try_rows

# A try without content is small; after this time it is only its bill.
TRY_SECONDS = 90 * 24 * 3600.0


async def purge(scope: Scope) -> int:
    """Take out what is over its time, of one tenant. Returns how many tries were forgotten."""
    await try_rows.purge_contents(scope.conn, tenant_id=scope.tenant_id)
    forgotten = await try_rows.forget_tries(scope.conn, tenant_id=scope.tenant_id, age_seconds=TRY_SECONDS)
    if forgotten:
        await try_rows.forget_try_requests(scope.conn, tenant_id=scope.tenant_id)
        await try_rows.forget_try_batches(scope.conn, tenant_id=scope.tenant_id)
    await key_rows.purge_idempotency_keys(scope.conn, tenant_id=scope.tenant_id)
    return forgotten
