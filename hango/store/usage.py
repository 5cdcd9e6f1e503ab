"""Usage records, and the quota that they use up."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from enum import StrEnum
from uuid import UUID

from hango.domain import Purpose, RunID, SessionID, TryID, UsageGroup, UsageRecord
from hango.errors import QuotaExceeded
from hango.messages import Usage
from hango.store import tenants
from hango.store.connection import Scope
from hango.store.db import usage as rows
from hango.store.ids import new_id
from hango.store.pages import DEFAULT_LIMIT, Page, id_of, page


class GroupBy(StrEnum):
    PURPOSE = "purpose"
    MODEL = "model"
    USER = "user"
    SESSION = "session"
    DAY = "day"  # in UTC


async def record(
    scope: Scope,
    *,
    purpose: Purpose,
    run_id: UUID | None,
    session_id: UUID,
    model: str,
    usage: Usage,
    cost_usd: float | None,
    estimated: bool = False,
) -> UUID:
    """One model call of the caller, counted against the tenant's quota of this month; a try has no run."""
    record_id = new_id()
    await rows.record_usage(
        scope.conn,
        tenant_id=scope.tenant_id,
        id=record_id,
        purpose=purpose,
        run_id=run_id,
        session_id=session_id,
        user_id=scope.user_id,
        model=model,
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        cache_read_tokens=usage.cache_read_tokens,
        cache_write_tokens=usage.cache_write_tokens,
        cost_usd=None if cost_usd is None else Decimal(repr(cost_usd)),
        estimated=estimated,
    )
    await rows.use_quota(scope.conn, tenant_id=scope.tenant_id, tokens=total(usage))
    return record_id


def total(usage: Usage) -> int:
    """What counts against a quota: every token that a provider bills, cached or not."""
    return usage.input_tokens + usage.output_tokens + usage.cache_read_tokens + usage.cache_write_tokens


async def ensure_quota(scope: Scope) -> None:
    """Raise QuotaExceeded when the tenant's quota of this month is used up or reserved."""
    tenant = await tenants.get(scope)
    if tenant.quota_tokens is not None and tenant.quota_used + tenant.quota_reserved >= tenant.quota_tokens:
        raise QuotaExceeded


async def summary(scope: Scope, since: datetime | None, before: datetime | None, group_by: str) -> list[UsageGroup]:
    """Sums from `since` to right before `before`. A group's cost is None when no record of it has one."""
    found = await rows.sum_usage(
        scope.conn, tenant_id=scope.tenant_id, since=since, before=before, group_by=GroupBy(group_by)
    )
    return [
        UsageGroup(
            group=row.group_name,
            records=row.records,
            input_tokens=row.input_tokens,
            output_tokens=row.output_tokens,
            cache_read_tokens=row.cache_read_tokens,
            cache_write_tokens=row.cache_write_tokens,
            cost_usd=row.cost_usd if row.priced else None,
        )
        for row in found
    ]


async def records(
    scope: Scope,
    *,
    purpose: Purpose | None = None,
    session_id: UUID | None = None,
    limit: int = DEFAULT_LIMIT,
    cursor: str | None = None,
) -> Page[UsageRecord]:
    """The newest first."""
    found = await rows.list_usage(
        scope.conn,
        tenant_id=scope.tenant_id,
        purpose=purpose,
        session_id=session_id,
        before=id_of(cursor),
        most=limit + 1,
    )
    return page(found, limit, _record, lambda record: record.id)


def _record(row: rows.ListUsageRow) -> UsageRecord:
    return UsageRecord(
        id=row.id,
        purpose=Purpose(row.purpose),
        run_id=None if row.run_id is None else RunID(row.run_id),
        try_id=None if row.try_id is None else TryID(row.try_id),
        session_id=SessionID(row.session_id),
        model=row.model,
        input_tokens=row.input_tokens,
        output_tokens=row.output_tokens,
        cache_read_tokens=row.cache_read_tokens,
        cache_write_tokens=row.cache_write_tokens,
        cost_usd=None if row.cost_usd is None else float(row.cost_usd),
        estimated=row.estimated,
        created_at=row.created_at,
    )
