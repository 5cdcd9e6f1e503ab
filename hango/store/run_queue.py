"""The queue of runs across tenants, as claims.py is of tries. Unscoped, as hango_system."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from uuid import UUID

from hango.domain import Principal, RunID
from hango.runs import ClaimedRun, OverdueRun
from hango.store.claims import principal_of
from hango.store.connection import SystemScope, one
from hango.store.db import system as rows


async def claim(scope: SystemScope, owner: UUID, *, lease_seconds: float, cap: int, most: int) -> list[ClaimedRun]:
    """The fair pick: up to `most` runs of the tenant with the fewest running, which then has at most `cap`."""
    ids = await rows.claim_runs(scope.conn, owner=owner, lease_seconds=lease_seconds, cap=cap, most=most)
    if not ids:
        return []
    return [
        ClaimedRun(
            principal=principal_of(row.tenant_id, row.user_id, row.api_key_id, trace_llm_content=row.trace_llm_content),
            id=RunID(row.id),
            attempt=row.attempt,
            timeout_seconds=row.timeout_ms / 1000,
            started_at=one(row.started_at),
            traceparent=row.traceparent,
        )
        for row in await rows.list_claimed_runs(scope.conn, ids=ids, owner=owner)
    ]


async def renew(
    scope: SystemScope, owner: UUID, claims: Sequence[tuple[RunID, int]], lease_seconds: float
) -> Mapping[RunID, bool]:
    """A sign of life. The runs that this worker still has, and whether each shall be cancelled."""
    found = await rows.renew_run_leases(
        scope.conn,
        owner=owner,
        lease_seconds=lease_seconds,
        ids=[id for id, _ in claims],
        attempts=[attempt for _, attempt in claims],
    )
    return {RunID(row.id): row.cancelled for row in found}


async def hold_overdue(scope: SystemScope, most: int) -> list[OverdueRun]:
    """Runs whose worker has been silent past its lease, held until the transaction ends."""
    return [
        OverdueRun(
            principal_of(row.tenant_id, row.user_id, row.api_key_id),
            RunID(row.id),
            row.attempt,
            row.rescues,
            row.cancelled,
            row.traceparent,
        )
        for row in await rows.hold_overdue_runs(scope.conn, most=most)
    ]


async def hold_expired(scope: SystemScope, most: int) -> list[tuple[Principal, RunID]]:
    """Runs that waited for too long and on whose behalf, held until the transaction ends."""
    return [
        (principal_of(row.tenant_id, row.user_id, row.api_key_id), RunID(row.id))
        for row in await rows.hold_expired_runs(scope.conn, most=most)
    ]


async def count_claimable(scope: SystemScope, most: int) -> int:
    """How many runs a worker could take now, counted up to `most`."""
    return one(await rows.count_claimable_runs(scope.conn, most=most))
