"""Batches: many variants of a context, each tried once or more often, all on one base."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Annotated, Any
from uuid import UUID

from pydantic import Field

from hango.api import admission, waiting
from hango.api.changes import VariantIn
from hango.api.endpoint import Call, Reply
from hango.api.fields import Body, Name, PageQuery
from hango.api.tries import RETRY_AFTER, started
from hango.api.try_replies import BatchCheckOut, BatchOut, CostOut, batches_json, tries_json
from hango.api.waiting import WaitQuery, Wish
from hango.chain import prices
from hango.chain import tries as planning
from hango.domain import Session
from hango.errors import Invalid, NotFound, Reason
from hango.messages import Usage
from hango.store import tenants, tries, try_batches
from hango.tries import NewRequest, TryBatch, TryStatus, VariantSum
from hango.workers import counting

MAX_TRIES = 1000  # in one batch
MAX_REPEATS = 30
# Parts that the tries of one batch change together: each try has an audit event that names its own.
MAX_CHANGES = 100_000

_Found = tuple[TryBatch, list[VariantSum]]


class BatchIn(Body):
    """Variants of a session's context, each tried `repeats` times."""

    variants: Annotated[list[VariantIn], Field(min_length=1, max_length=MAX_TRIES)]
    repeats: Annotated[int, Field(ge=1, le=MAX_REPEATS)] = 1
    label: Name | None = None

    def wanted(self) -> admission.Wanted:
        """Raises Invalid naming the variant at fault."""
        if len(self.variants) * self.repeats > MAX_TRIES:
            message = (
                f"{len(self.variants):,} variants of {self.repeats} repeats are more than the {MAX_TRIES:,} tries that"
                " a batch may have. Send several."
            )
            raise Invalid.because(Reason.TOO_MANY_VARIANTS, message, pointer="/variants")
        changes = self.repeats * sum(variant.named for variant in self.variants)
        if changes > MAX_CHANGES:
            message = (
                f"The tries of this batch would change {changes:,} parts together; {MAX_CHANGES:,} may be named. Send"
                " several."
            )
            raise Invalid.because(Reason.TOO_MANY_VARIANTS, message, pointer="/variants")
        made = []
        for at, variant in enumerate(self.variants):
            with planning.in_variant(at):
                made.append(variant.variant())
        return admission.Wanted(made, self.repeats, self.label, is_batch=True)


class BatchQuery(WaitQuery):
    """`check`: say what it would come to, and start nothing."""

    check: bool = False


async def start_batch(call: Call[Session, BatchIn, BatchQuery]) -> Reply[BatchOut] | Reply[BatchCheckOut]:
    """Accept a batch whole or not at all, or give back the first one of a repeated request."""
    wanted = call.body.wanted()
    if call.query.check:
        return Reply(await _check(call, wanted), 200)
    wish = waiting.wish_of(call)
    batch_id = await admission.admit(call, wanted)
    found = await _wait(call, batch_id, wish)
    return started(BatchOut.of(*found), f"/v1/try-batches/{batch_id}", wish, is_ended=found[0].finished_at is not None)


async def show_batch(call: Call[TryBatch, None, WaitQuery]) -> Reply[BatchOut]:
    """The batch as it is, or as it is when its last try ends or the wait is over."""
    wish = waiting.wish_of(call)
    found = await _wait(call, call.target.id, wish)
    return Reply(BatchOut.of(*found), headers=wish.headers() if found[0].finished_at else RETRY_AFTER)


async def cancel_batch(call: Call[TryBatch, None]) -> Reply[BatchOut]:
    """What waits ends at once, what runs is told to, what has ended stays."""
    async with call.deps.store.begin(call.principal) as scope:
        cancelled = await tries.cancel(scope, batch_id=call.target.id)
    counting.ended(TryStatus.CANCELLED, cancelled)
    found = await _look(call, call.target.id)
    return Reply(BatchOut.of(*found), 200 if found[0].finished_at else 202)


async def list_batches(call: Call[Session, None, PageQuery]) -> bytes:
    query = call.query
    async with call.deps.store.read(call.principal) as scope:
        page = await try_batches.list_all(scope, call.target.id, limit=query.limit, cursor=query.cursor)
        sums = await try_batches.all_variants(scope, [batch.id for batch in page.data])
    return await asyncio.to_thread(batches_json, page, sums)


async def list_batch_tries(call: Call[TryBatch, None, PageQuery]) -> bytes:
    query, batch = call.query, call.target
    async with call.deps.store.read(call.principal) as scope:
        page = await tries.list_all(scope, batch.session_id, batch_id=batch.id, limit=query.limit, cursor=query.cursor)
    return await asyncio.to_thread(tries_json, page)


async def _check(call: Call[Session, BatchIn, BatchQuery], wanted: admission.Wanted) -> BatchCheckOut:
    plan = await admission.planned(call, wanted)
    async with call.deps.store.read(call.principal) as scope:
        tenant = await tenants.get(scope)
    left = None
    if tenant.quota_tokens is not None:
        left = max(0, tenant.quota_tokens - tenant.quota_used - tenant.quota_reserved)
    return BatchCheckOut(
        calls=wanted.count,
        input_tokens=wanted.repeats * sum(request.tokens_after for request in plan.requests),
        output_tokens_most=wanted.repeats * sum(request.max_output_tokens for request in plan.requests),
        cost_usd=_cost(call, plan.requests, wanted.repeats),
        quota_left=left,
    )


def _cost(call: Call[Session, BatchIn, BatchQuery], requests: Sequence[NewRequest], repeats: int) -> CostOut | None:
    least = most = 0.0
    for request in requests:
        priced = call.deps.providers.is_priced(request.model.partition("/")[0])
        costs = [
            prices.cost_usd(request.model, Usage(request.tokens_after, answer), priced=priced)
            for answer in (0, request.max_output_tokens)
        ]
        if costs[0] is None or costs[1] is None:
            return None
        least, most = least + costs[0], most + costs[1]
    return CostOut(round(least * repeats, 6), round(most * repeats, 6))


async def _wait(call: Call[Any, Any, Any], batch_id: UUID, wish: Wish) -> _Found:
    return await waiting.until(
        call, batch_id, lambda: _look(call, batch_id), lambda found: found[0].finished_at is not None, wish
    )


async def _look(call: Call[Any, Any, Any], batch_id: UUID) -> _Found:
    async with call.deps.store.read(call.principal) as scope:
        batch = await try_batches.get(scope, batch_id)
        if batch is None:  # its session was deleted meanwhile
            raise NotFound
        return batch, await try_batches.variants(scope, batch_id)
