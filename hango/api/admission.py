"""Tries accepted: planned on a snapshot, then reserved and written in one short transaction, then the doorbell rung.

What is refused leaves nothing behind, the idempotency key included: the same key may be sent again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from hango import telemetry
from hango.api import idempotency, waiting
from hango.api.endpoint import Call
from hango.chain import summary_previews
from hango.chain import tries as planning
from hango.chain.tries import Plan, Variant
from hango.config import Settings
from hango.domain import BatchID, Session, TryID
from hango.errors import TooManyTries, Unavailable
from hango.store import context_bases, idempotency_keys, quotas, tries, try_batches
from hango.store.connection import Scope
from hango.store.ids import new_id
from hango.tries import Admission

# The longest batch takes a few seconds; a client does not wait for much longer than this, and others want their turn.
PLANNING_SECONDS = 30.0
# One ring lets a worker take all that it has room for; a few let other workers have a look too.
RINGS_MOST = 8
# When a try ends is not known: soon, but not at once.
RETRY_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class Wanted:
    """The tries that one request asks for. `is_batch`: as a batch, with its label; `is_summary`: the preview of one."""

    variants: Sequence[Variant] = ()
    repeats: int = 1
    label: str | None = None
    is_batch: bool = False
    is_summary: bool = False

    @property
    def count(self) -> int:
        return 1 if self.is_summary else len(self.variants) * self.repeats


async def admit(call: Call[Session, Any, Any], wanted: Wanted) -> UUID:
    """The id of the new try or batch, or of the first one when the request is a repeated one.

    Raises Invalid (what could not be sent, a key used for another request), QuotaExceeded, TooManyTries, NotFound, and
    as `planned` does.
    """
    repeatable = idempotency.read(call)
    if repeatable is not None:
        async with call.deps.store.read(call.principal) as scope:
            known = await idempotency_keys.find(scope, repeatable.key, repeatable.request_hash)
        if known is not None:
            return known
    plan = await planned(call, wanted)
    resource_id = new_id()
    async with call.deps.store.begin(call.principal) as scope:
        await tries.hold_session(scope, call.target.id)
        if repeatable is not None:
            first = await idempotency_keys.take(scope, repeatable.key, repeatable.request_hash, resource_id)
            if first != resource_id:
                return first
        await _write(scope, call.deps.settings, wanted, plan, resource_id)
    await call.runtime.doorbell.ring(min(wanted.count, RINGS_MOST))
    return resource_id


async def planned(call: Call[Session, Any, Any], wanted: Wanted) -> Plan:
    """What the tries would send. Raises Invalid, NotFound, Unavailable after too long, ClientDisconnect."""
    try:
        return await waiting.while_there(call.request, _plan(call, wanted), PLANNING_SECONDS)
    except TimeoutError:
        raise Unavailable(
            f"To work out what the {len(wanted.variants):,} variants send took longer than {PLANNING_SECONDS:g} s;"
            " nothing was started. Send fewer at once, or try again."
        ) from None


async def _plan(call: Call[Session, Any, Any], wanted: Wanted) -> Plan:
    async with call.deps.store.read(call.principal) as scope:
        if wanted.is_summary:
            return await summary_previews.plan(scope, call.deps, call.target.id)
        gathered = await planning.gather(scope, call.deps, call.target.id, wanted.variants, is_batch=wanted.is_batch)
    return await planning.plan(call.deps, gathered)


async def _write(scope: Scope, settings: Settings, wanted: Wanted, plan: Plan, resource_id: UUID) -> None:
    session_id = plan.base.session_id
    reserved = wanted.repeats * sum(request.reserved for request in plan.requests)
    period = await quotas.reserve(scope, reserved)
    # Who reserves holds the tenant's quota: nobody else of it counts at the same time.
    outstanding = await tries.count_outstanding(scope)
    if outstanding + wanted.count > settings.context_try_tenant_outstanding:
        raise _too_many(outstanding, wanted.count, settings.context_try_tenant_outstanding)
    base_id = await context_bases.find_or_create(scope, plan.base)
    if wanted.is_batch:
        await try_batches.create(
            scope, BatchID(resource_id), session_id, base_id, label=wanted.label, tries=wanted.count
        )
    admission = Admission(
        ttl_seconds=settings.context_try_batch_queue_ttl if wanted.is_batch else settings.context_try_queue_ttl,
        timeout_seconds=settings.context_try_timeout,
        retention_seconds=settings.context_try_retention,
        quota_period=period,
        traceparent=telemetry.traceparent(),
    )
    await tries.create(
        scope,
        session_id,
        base_id,
        plan.requests,
        admission,
        repeats=wanted.repeats,
        batch_id=BatchID(resource_id) if wanted.is_batch else None,
        first_id=None if wanted.is_batch else TryID(resource_id),
    )


def _too_many(outstanding: int, more: int, most: int) -> TooManyTries:
    if more > most:
        return TooManyTries(f"{more:,} tries are more than the {most:,} that may wait and run at once. Send fewer.")
    return TooManyTries(
        f"{outstanding:,} tries wait or run, and with {more:,} more there would be more than {most:,}. Wait for some"
        " to end, or cancel them.",
        retry_after=RETRY_SECONDS,
    )
