"""What keeps the promise that every try and run ends: it rings for those that wait, and ends what nobody looks after.

Every API process runs one; of several at a time, one does the work.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Final

from hango import logs
from hango.chain.deps import Deps
from hango.domain import Principal, Purpose
from hango.errors import Unavailable
from hango.logs import Log
from hango.store import claims, retention, run_queue, tries, try_claims
from hango.store.connection import Scope
from hango.tries import ClaimedRequest, Overdue, TryError, TryStatus
from hango.workers import counting, run_reconciler
from hango.workers.alone import alone
from hango.workers.counting import Drift, Reconciled
from hango.workers.outcomes import Terms, lost

# A ring wakes a worker that then claims as long as it has room: a few rings reach all workers.
MOST_RINGS: Final = 8
# Tries of one transaction: it holds their rows, and those of their quotas.
BATCH: Final = 50
CHECK_SECONDS: Final = 60.0
PURGE_SECONDS: Final = 3600.0
# Over the promised time, before a try counts as overdue: for reading its context, and for writing its end down.
MARGIN_SECONDS: Final = 60.0

STATUS: Final = {
    Reconciled.RESCUED: TryStatus.QUEUED,
    Reconciled.CANCELLED: TryStatus.CANCELLED,
    Reconciled.FAILED: TryStatus.FAILED,
    Reconciled.LOST: TryStatus.LOST,
}


class Reconciler:
    """`ring` wakes workers, so many times; it never raises."""

    def __init__(self, deps: Deps, ring: Callable[[int], Awaitable[None]]) -> None:
        self._deps = deps
        self._ring = ring
        self._tasks: list[asyncio.Task[None]] = []

    def start(self) -> None:
        """To be called on the loop of the process."""
        # The check and the purge begin somewhere in their interval: processes that start together do not come together.
        self._tasks = [
            self._begin(self.look_after, self._deps.settings.context_try_reconcile, first=0.0),
            self._begin(self.check, CHECK_SECONDS, first=random.uniform(0, CHECK_SECONDS)),  # noqa: S311  no secret
            self._begin(self.purge, PURGE_SECONDS, first=random.uniform(0, PURGE_SECONDS)),  # noqa: S311
        ]

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)

    async def look_after(self) -> None:
        """Ring for what can be claimed, and end or hand on what nobody looks after. Raises HangoError."""
        await self.ring_for_waiting()
        while await self._sweep():
            pass
        while await run_reconciler.sweep(self._deps, BATCH):
            pass

    async def ring_for_waiting(self) -> None:
        """A ring may have been lost, or its worker with it."""
        async with self._deps.store.system() as scope:
            tries_waiting, _ = await claims.count_claimable(scope, MOST_RINGS)
            waiting = min(tries_waiting + await run_queue.count_claimable(scope, MOST_RINGS), MOST_RINGS)
        if waiting:
            await self._ring(waiting)
            counting.reconciled(Reconciled.RUNG, waiting)

    async def check(self) -> None:
        """Compare what is reserved with what is under way, and look for tries that are older than any may be."""
        settings = self._deps.settings
        bound = (
            settings.context_try_timeout
            + settings.context_try_lease
            + 2 * settings.context_try_reconcile
            + MARGIN_SECONDS
        )
        async with self._deps.store.system() as scope:
            ledgers, overdue = await claims.count_drift(scope, bound)
        counting.drift(Drift.LEDGERS, ledgers)
        counting.drift(Drift.OVERDUE, overdue)
        if ledgers or overdue:
            logs.error(Log.TRIES_DRIFT, ledgers=ledgers, overdue=overdue)

    async def purge(self) -> None:
        """Take out what is over its time, of each tenant in transactions that are not long."""
        async with self._deps.store.system() as scope:
            tenants = await claims.tenants(scope)
        for tenant in tenants:
            async with alone(self._deps.store.ping, tenant):
                while await self._purge(tenant):
                    pass

    async def _purge(self, tenant: Principal) -> bool:
        async with self._deps.store.begin(tenant) as own:
            return await retention.purge(own)

    async def _sweep(self) -> bool:
        """One transaction of it; whether there is more to do. Nothing, while another process does it."""
        done: Counter[Reconciled] = Counter()
        taken: list[tuple[Overdue, Purpose, Reconciled]] = []
        ended: Counter[tuple[TryStatus, Purpose]] = Counter()
        full = False
        async with self._deps.store.system() as scope:
            if not await claims.hold_reconciler(scope):
                return False
            for tenant in await claims.tenants_with_expired(scope, BATCH):
                async with alone(scope.ping, tenant):
                    async with scope.attempt_as(tenant) as own:
                        expired = await tries.expire(own, BATCH)
                    done[Reconciled.EXPIRED] += expired.total()
                    ended.update({(TryStatus.EXPIRED, purpose): number for purpose, number in expired.items()})
                    full = full or expired.total() >= BATCH
            overdue = await claims.hold_overdue(scope, BATCH)
            for one in overdue:
                async with alone(scope.ping, one.principal, try_id=one.id):
                    async with scope.attempt_as(one.principal) as own:
                        wanted = await _request(own, one)
                        kind = await self._take_over(own, one, wanted)
                    done[kind] += 1
                    taken.append((one, wanted.purpose, kind))
        for one, purpose, kind in taken:
            counting.taken_over(one, purpose, STATUS[kind])
            if kind is Reconciled.LOST:
                logs.error(Log.TRY_LOST, tenant_id=one.principal.tenant_id, try_id=one.id)
            if kind is not Reconciled.RESCUED:
                ended[STATUS[kind], purpose] += 1
        for kind, number in done.items():
            counting.reconciled(kind, number)
        for (status, purpose), number in ended.items():
            counting.ended(status, {purpose: number})
        return (full or len(overdue) >= BATCH) and done.total() > 0

    async def _take_over(self, scope: Scope, one: Overdue, wanted: ClaimedRequest) -> Reconciled:
        """Of a try whose worker fell silent: another may have it, or it ends here."""
        if one.called:
            await self._lose(scope, one, wanted)
            return Reconciled.LOST
        if one.cancelled:
            await try_claims.end_uncalled(scope, one.id, one.attempt, TryStatus.CANCELLED, TryError.CANCELLED)
            return Reconciled.CANCELLED
        if await try_claims.rescue(scope, one.id, one.attempt):
            return Reconciled.RESCUED
        await try_claims.end_uncalled(scope, one.id, one.attempt, TryStatus.FAILED, TryError.WORKER_LOST)
        return Reconciled.FAILED

    async def _lose(self, scope: Scope, one: Overdue, wanted: ClaimedRequest) -> None:
        """Nobody knows what came of the call: it is billed by its estimate, which a late answer still corrects."""
        provider = wanted.model.partition("/")[0]
        terms = Terms(
            model=wanted.model,
            reserved=one.reserved,
            max_output_tokens=wanted.max_output_tokens,
            priced=self._deps.providers.is_priced(provider),
        )
        await try_claims.settle(
            scope,
            one.id,
            one.attempt,
            lost(terms),
            retention_seconds=self._deps.settings.context_try_retention,
            lease_over=True,
        )

    def _begin(self, step: Callable[[], Awaitable[None]], seconds: float, *, first: float) -> asyncio.Task[None]:
        return asyncio.create_task(_every(step, seconds, first), name=f"reconciler: {step.__name__}")


async def _request(scope: Scope, one: Overdue) -> ClaimedRequest:
    wanted = await try_claims.request(scope, one.request_id)
    assert wanted is not None, "a request is there as long as one of its tries is"
    return wanted


async def _every(step: Callable[[], Awaitable[None]], seconds: float, first: float) -> None:
    """For ever, whatever happens; the same failure in a row is said once."""
    said: type[Exception] | None = None
    await asyncio.sleep(first)
    while True:
        try:
            await step()
            said = None
        except Exception as error:
            if type(error) is not said:
                write = logs.warning if isinstance(error, Unavailable) else logs.error
                write(Log.UNAVAILABLE if isinstance(error, Unavailable) else Log.UNEXPECTED, error)
            said = type(error)
        await asyncio.sleep(seconds)
