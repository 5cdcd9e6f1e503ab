"""Runs that nobody looks after: those that waited for too long, and those whose worker fell silent."""

from __future__ import annotations

from hango.chain.deps import Deps
from hango.domain import RunStatus
from hango.runs import CallEnd, OverdueRun, RunError
from hango.store import run_calls, run_claims, runs
from hango.store.connection import Scope
from hango.workers.counting import Reconciled
from hango.workers.outcomes import Terms

# A run that takes its workers down one after another is not given to a fourth.
MOST_RESCUES = 3


async def take_over(scope: Scope, deps: Deps, one: OverdueRun) -> Reconciled:
    """Of a run whose worker fell silent: another goes on with it, or it ends here.

    A call that was under way may have been paid for: it is billed by its estimate, and neither it nor the run is
    repeated.
    """
    call = await run_calls.find_open(scope, one.id)
    if call is not None:
        terms = Terms(
            model=call.model,
            reserved=call.reserved,
            max_output_tokens=call.max_output_tokens,
            priced=deps.providers.is_priced(call.model.partition("/")[0]),
        )
        await run_calls.settle(scope, call.id, CallEnd(terms.estimate, error=RunError.WORKER_LOST))
        await runs.end(scope, one.id, one.attempt, RunStatus.FAILED, error=RunError.WORKER_LOST)
        return Reconciled.LOST
    if one.cancelled:
        await runs.end(scope, one.id, one.attempt, RunStatus.CANCELLED, error=RunError.CANCELLED)
        return Reconciled.CANCELLED
    if one.rescues < MOST_RESCUES and await run_claims.requeue(scope, one.id, one.attempt, rescued=True):
        return Reconciled.RESCUED
    await runs.end(scope, one.id, one.attempt, RunStatus.FAILED, error=RunError.WORKER_LOST)
    return Reconciled.FAILED
