"""The quota of a month: reserved before a call, settled after it."""

from __future__ import annotations

from datetime import date

from hango.errors import QuotaExceeded
from hango.store import tenants
from hango.store.connection import Scope
from hango.store.db import quotas as rows


async def reserve(scope: Scope, tokens: int) -> date:
    """Hold tokens until their calls are settled; returns the month that holds them.

    Whoever reserves for the same tenant waits until this transaction ends. Raises QuotaExceeded, and holds nothing.
    """
    period = await rows.reserve_quota(scope.conn, tenant_id=scope.tenant_id, tokens=tokens)
    if period is None:
        # The first of a month, or none left: two statements, once a month.
        await rows.ensure_quota_row(scope.conn, tenant_id=scope.tenant_id)
        period = await rows.reserve_quota(scope.conn, tenant_id=scope.tenant_id, tokens=tokens)
    if period is None:
        raise await _exceeded(scope, tokens)
    return period


async def _exceeded(scope: Scope, tokens: int) -> QuotaExceeded:
    tenant = await tenants.get(scope)
    left = max(0, (tenant.quota_tokens or 0) - tenant.quota_used - tenant.quota_reserved)
    return QuotaExceeded(
        f"{tokens:,} tokens are needed for this at most, and {left:,} are left of this month's quota. Ask for fewer"
        " variants or repeats, give the agent a smaller max_output_tokens, or have an admin raise the quota."
    )
