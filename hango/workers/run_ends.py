"""A model call that nobody heard the end of, billed so that no token stays reserved for ever."""

from __future__ import annotations

from hango.chain.deps import Deps
from hango.domain import RunID
from hango.runs import CallEnd, RunError
from hango.store import run_calls
from hango.store.connection import Scope
from hango.workers.outcomes import Terms


async def lose_call(scope: Scope, deps: Deps, run_id: RunID, error: RunError) -> bool:
    """Whether a call of the run was under way. It may have been paid for: it is billed by its estimate."""
    call = await run_calls.find_open(scope, run_id)
    if call is None:
        return False
    terms = Terms(
        model=call.model,
        reserved=call.reserved,
        max_output_tokens=call.max_output_tokens,
        priced=deps.providers.is_priced(call.model.partition("/")[0]),
    )
    return await run_calls.settle(scope, call.id, CallEnd(terms.estimate, error=error))
