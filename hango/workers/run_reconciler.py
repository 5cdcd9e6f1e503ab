"""Runs that nobody looks after: those that waited for too long, and those whose worker fell silent."""

from __future__ import annotations

from collections import Counter
from typing import Final

from hango import logs
from hango.chain.deps import Deps
from hango.domain import RunStatus
from hango.logs import Log
from hango.runs import OverdueRun, RunError
from hango.store import claims, run_claims, run_queue, runs
from hango.store.connection import Scope
from hango.workers import counting
from hango.workers.alone import alone
from hango.workers.run_ends import lose_call

# A run gets its first worker and three rescues: one that takes four workers down is not given to a fifth.
MOST_RESCUES: Final = 3


async def sweep(deps: Deps, most: int) -> bool:
    """One transaction of it; whether there is more to do. Nothing, while another process does it."""
    ended: Counter[RunStatus] = Counter()
    lost: list[OverdueRun] = []
    taken: list[tuple[OverdueRun, RunStatus]] = []
    async with deps.store.system() as scope:
        if not await claims.hold_reconciler(scope):
            return False
        expired = await run_queue.hold_expired(scope, most)
        for principal, run_id in expired:
            async with alone(scope.ping, principal, run_id=run_id):
                async with scope.attempt_as(principal) as own:
                    await runs.end(own, run_id, None, RunStatus.FAILED, error=RunError.QUEUE_EXPIRED)
                ended[RunStatus.FAILED] += 1
        overdue = await run_queue.hold_overdue(scope, most)
        for one in overdue:
            async with alone(scope.ping, one.principal, run_id=one.id):
                async with scope.attempt_as(one.principal) as own:
                    is_lost = await lose_call(own, deps, one.id, RunError.WORKER_LOST)
                    status = RunStatus.FAILED if is_lost else await _hand_on(own, one)
                    if is_lost:
                        await runs.end(own, one.id, one.attempt, status, error=RunError.WORKER_LOST)
                ended[status] += 1
                taken.append((one, status))
                lost += [one] if is_lost else []
    for one, status in taken:
        counting.run_taken_over(one, status)
    for one in lost:
        logs.error(Log.RUN_LOST, tenant_id=one.principal.tenant_id, run_id=one.id)
    for status, number in ended.items():
        if status is not RunStatus.QUEUED:
            counting.run_ended(status, number)
    return max(len(expired), len(overdue)) >= most and ended.total() > 0


async def _hand_on(scope: Scope, one: OverdueRun) -> RunStatus:
    """Of a run whose worker fell silent between two calls: another goes on with it, or it ends here."""
    if one.cancelled:
        await runs.end(scope, one.id, one.attempt, RunStatus.CANCELLED, error=RunError.CANCELLED)
        return RunStatus.CANCELLED
    if one.rescues < MOST_RESCUES and await run_claims.rescue(scope, one.id, one.attempt):
        return RunStatus.QUEUED
    await runs.end(scope, one.id, one.attempt, RunStatus.FAILED, error=RunError.WORKER_LOST)
    return RunStatus.FAILED
