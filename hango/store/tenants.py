"""The caller's tenant and its settings."""

from __future__ import annotations

from msgspec import UNSET, UnsetType

from hango.domain import Tenant, TenantID
from hango.store.connection import Scope, one
from hango.store.db import tenants as rows


async def get(scope: Scope) -> Tenant:
    row = one(await rows.get_tenant(scope.conn, tenant_id=scope.tenant_id))
    return Tenant(
        id=TenantID(row.id),
        name=row.name,
        quota_tokens=row.quota_tokens,
        quota_used=row.quota_used,
        quota_reserved=row.quota_reserved,
        period_start=row.period_start,
        rate_per_minute=row.rate_per_minute,
        trace_llm_content=row.trace_llm_content,
    )


async def update(
    scope: Scope,
    *,
    name: str | UnsetType = UNSET,
    quota_tokens: int | UnsetType | None = UNSET,
    rate_per_minute: int | UnsetType | None = UNSET,
    trace_llm_content: bool | UnsetType = UNSET,
) -> Tenant:
    """Change what is given; None takes a limit away."""
    await rows.update_tenant(
        scope.conn,
        tenant_id=scope.tenant_id,
        name=None if name is UNSET else name,
        set_quota_tokens=quota_tokens is not UNSET,
        quota_tokens=None if quota_tokens is UNSET else quota_tokens,
        set_rate_per_minute=rate_per_minute is not UNSET,
        rate_per_minute=None if rate_per_minute is UNSET else rate_per_minute,
        trace_llm_content=None if trace_llm_content is UNSET else trace_llm_content,
    )
    return await get(scope)
