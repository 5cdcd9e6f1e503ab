"""The queue across tenants: workers claim from it and renew their leases, the reconciler looks after what is left.

Unscoped, as hango_system: what is done with a single try is done as its principal (try_claims.py).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from hango.domain import BatchID, KeyID, Principal, Role, SessionID, TenantID, TryID, UserID
from hango.store.connection import SystemScope, one
from hango.store.db import system as rows
from hango.tries import Claimed, Overdue


@dataclass(frozen=True, slots=True)
class Pick:
    """`claimed` are all of one tenant; `more`: another one waits too."""

    claimed: Sequence[Claimed] = ()
    more: bool = False


async def claim(scope: SystemScope, owner: UUID, *, lease_seconds: float, cap: int, most: int) -> Pick:
    """The fair pick: up to `most` tries of the tenant with the fewest running, which then has at most `cap`."""
    row = one(await rows.claim_tries(scope.conn, owner=owner, lease_seconds=lease_seconds, cap=cap, most=most))
    if not row.ids:
        return Pick()
    found = await rows.list_claimed(scope.conn, ids=row.ids, owner=owner)
    return Pick([_claimed(row) for row in found], row.more)


async def renew(
    scope: SystemScope, owner: UUID, claims: Sequence[tuple[TryID, int]], lease_seconds: float
) -> Mapping[TryID, bool]:
    """A sign of life. The tries that this worker still has, and whether each shall be cancelled."""
    found = await rows.renew_leases(
        scope.conn,
        owner=owner,
        lease_seconds=lease_seconds,
        ids=[id for id, _ in claims],
        attempts=[attempt for _, attempt in claims],
    )
    return {TryID(row.id): row.cancelled for row in found}


async def hold_reconciler(scope: SystemScope) -> bool:
    """Whether this transaction may look after the tries of all; one does at a time."""
    return one(await rows.hold_reconciler(scope.conn))


async def hold_overdue(scope: SystemScope, most: int) -> list[Overdue]:
    """Tries whose worker has been silent past its lease, held until the transaction ends."""
    return [
        Overdue(
            principal=principal_of(row.tenant_id, row.user_id, row.api_key_id),
            id=TryID(row.id),
            request_id=row.request_id,
            attempt=row.attempt,
            reserved=row.reserved,
            called=row.called,
            cancelled=row.cancelled,
            traceparent=row.traceparent,
        )
        for row in await rows.hold_overdue(scope.conn, most=most)
    ]


async def tenants_with_expired(scope: SystemScope, most: int) -> list[Principal]:
    """Tenants with tries that waited for too long, each as nobody in particular."""
    found = await rows.list_tenants_with_expired(scope.conn, most=most)
    return [principal_of(tenant_id, tenant_id, tenant_id) for tenant_id in found]


async def count_claimable(scope: SystemScope, most: int) -> tuple[int, float]:
    """How many tries a worker could take now, counted up to `most`, and the age of the oldest in seconds."""
    row = one(await rows.count_claimable(scope.conn, most=most))
    return row.tries, row.oldest_seconds


async def count_drift(scope: SystemScope, bound_seconds: float) -> tuple[int, int]:
    """Months whose reservation is wrong, and tries under way that are `bound_seconds` past their time in the queue."""
    row = one(await rows.count_drift(scope.conn, bound_seconds=bound_seconds))
    return row.ledgers, row.overdue


async def tenants(scope: SystemScope) -> list[Principal]:
    """Every tenant, each as nobody in particular."""
    return [principal_of(tenant_id, tenant_id, tenant_id) for tenant_id in await rows.list_tenants(scope.conn)]


def _claimed(row: rows.ListClaimedRow) -> Claimed:
    return Claimed(
        principal=principal_of(row.tenant_id, row.user_id, row.api_key_id, trace_llm_content=row.trace_llm_content),
        id=TryID(row.id),
        session_id=SessionID(row.session_id),
        request_id=row.request_id,
        batch_id=None if row.batch_id is None else BatchID(row.batch_id),
        attempt=row.attempt,
        timeout_seconds=row.timeout_ms / 1000,
        reserved=row.reserved,
        traceparent=row.traceparent,
        created_at=row.created_at,
    )


def principal_of(tenant_id: UUID, user_id: UUID, key_id: UUID, *, trace_llm_content: bool = False) -> Principal:
    """On behalf of whom: no more rights than a member has."""
    return Principal(
        TenantID(tenant_id), UserID(user_id), KeyID(key_id), Role.MEMBER, trace_llm_content=trace_llm_content
    )
