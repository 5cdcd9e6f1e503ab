"""What is kept for a time only: texts and answers of tries, tries that ended long ago, idempotency keys."""

from __future__ import annotations

from hango.store.connection import Scope, one
from hango.store.db import idempotency_keys as key_rows
from hango.store.db import tries as try_rows

# A try without content is small; after this time it is only its bill.
TRY_SECONDS = 90 * 24 * 3600.0


# Requests and tries of one transaction: it ends long before a statement's time limit, whatever has piled up.
MOST = 1000


async def purge(scope: Scope, *, most: int = MOST) -> bool:
    """Take out what is over its time, of one tenant, at most so much; whether there may be more."""
    purged = one(await try_rows.purge_contents(scope.conn, tenant_id=scope.tenant_id, most=most))
    forgotten = await try_rows.forget_tries(scope.conn, tenant_id=scope.tenant_id, age_seconds=TRY_SECONDS, most=most)
    if forgotten:
        batches = await try_rows.forget_try_requests(scope.conn, tenant_id=scope.tenant_id, ids=forgotten)
        await try_rows.forget_try_batches(
            scope.conn, tenant_id=scope.tenant_id, ids=[batch for batch in batches if batch is not None]
        )
    await key_rows.purge_idempotency_keys(scope.conn, tenant_id=scope.tenant_id)
    return max(purged, len(forgotten)) >= most
