"""One claimed try, seen to its end: its request is made, the call is marked, made once, and settled.

No transaction is open during the call. What cannot be written down is left to the reconciler, which finds the try by
its lease.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from hango import logs, telemetry
from hango.chain import tries as rules
from hango.chain.deps import Deps
from hango.chain.tries import ContextChanged, Prepared
from hango.errors import ProviderFailed, ProviderTimeout, Unavailable
from hango.logs import Log
from hango.store import try_claims
from hango.store.connection import Scope
from hango.telemetry import Seen, Span
from hango.tries import Claimed, ClaimedRequest, Settlement, TryError, TryStatus
from hango.workers import calls, counting
from hango.workers.calls import Ready
from hango.workers.held import Held
from hango.workers.outcomes import Ended, Ending, Terms, answered, delay, unanswered

# Between attempts to write an end down while PostgreSQL is away: short after a restart, doubled up to a second.
FIRST_PAUSE_SECONDS = 0.1
LONGEST_PAUSE_SECONDS = 1.0


async def see_through(deps: Deps, held: Held[Claimed]) -> float | None:
    """One claim to its end. Returns after how many seconds the try may be claimed again, if the provider did not take
    the call.

    Raises nothing; when it is cancelled, nothing is settled.
    """
    claimed = held.claimed
    counting.claimed(claimed)
    with telemetry.job_span(Span.CONTEXT_TRY, claimed.traceparent, counting.of_claim(claimed)) as seen:
        ready = await _mark(deps, claimed, seen)
        if ready is None:
            return None
        try:
            response = await calls.call(held, ready)
        except Exception as error:
            return await _without_answer(deps, claimed, ready, error, seen)
        await _settle(deps, claimed, ready, answered(response, ready.terms), seen)
    return None


async def _mark(deps: Deps, claimed: Claimed, seen: Seen) -> Ready | None:
    """The request, with its call marked as begun. None: nothing is to be called."""
    try:
        async with deps.store.begin(claimed.principal) as scope:
            ready = await _prepare(scope, deps, claimed)
            marked = await try_claims.mark_called(scope, claimed.id, claimed.attempt)
    except Unavailable as error:
        # Perhaps the mark is there and only its confirmation was lost: to call now could be to call twice.
        _log(Log.UNAVAILABLE, error, claimed)
        return None
    except ContextChanged:
        await _end_uncalled(deps, claimed, TryStatus.FAILED, TryError.CONTEXT_CHANGED, seen)
        return None
    except Exception as error:
        _log(Log.UNEXPECTED, error, claimed)
        await _end_uncalled(deps, claimed, TryStatus.FAILED, TryError.INTERNAL, seen)
        return None
    if not marked:
        # Ends nothing but a try that somebody wants to be cancelled: any other is in the hands of somebody else.
        await _end_uncalled(deps, claimed, TryStatus.CANCELLED, TryError.CANCELLED, seen)
        return None
    return ready


async def _prepare(scope: Scope, deps: Deps, claimed: Claimed) -> Ready:
    """Raises ContextChanged, and Unavailable."""
    wanted = await try_claims.request(scope, claimed.request_id)
    if wanted is None:
        raise ContextChanged
    prepared = await rules.prepare(scope, deps, claimed.session_id, wanted)
    completer = deps.providers.completer(prepared.provider)
    assert completer is not None, "a try is accepted only with its provider's key, and workers have the same settings"
    return Ready(prepared, completer, _terms(deps, claimed, wanted, prepared))


def _terms(deps: Deps, claimed: Claimed, wanted: ClaimedRequest, prepared: Prepared) -> Terms:
    return Terms(
        model=prepared.model,
        reserved=claimed.reserved,
        max_output_tokens=wanted.max_output_tokens,
        priced=deps.providers.is_priced(prepared.provider),
        cache_ttl=prepared.request.cache_ttl,
    )


async def _without_answer(deps: Deps, claimed: Claimed, ready: Ready, error: Exception, seen: Seen) -> float | None:
    """The end of a call that gave no answer; seconds, when the try waits again instead."""
    if isinstance(error, Ended) and error.why is Ending.GIVEN_UP:
        return None
    if not isinstance(error, ProviderFailed | ProviderTimeout | Ended):
        _log(Log.UNEXPECTED, error, claimed)
    seconds = delay(error, claimed.attempt)
    if seconds is not None:
        deferred = await _defer(deps, claimed, seconds)
        if deferred is None:
            return None
        if deferred:
            seen.set_all(counting.of_end(TryStatus.QUEUED, None))
            return seconds
    await _settle(deps, claimed, ready, unanswered(error, ready.terms), seen)
    return None


async def _settle(deps: Deps, claimed: Claimed, ready: Ready, ended: Settlement, seen: Seen) -> None:
    """Write down how a call ended, through an absence of PostgreSQL; nothing, when that is not for this claim to do.

    Figures are a lesson for the next estimate. Those that come after the try was given up as lost take the place of
    its estimate.
    """
    real = not ended.usage.estimated

    async def write() -> bool:
        async with deps.store.begin(claimed.principal) as scope:
            done = await try_claims.settle(
                scope, claimed.id, claimed.attempt, ended, retention_seconds=deps.settings.context_try_retention
            )
            if done and real and ended.status is TryStatus.SUCCEEDED:
                await rules.learn(scope, deps, ready.prepared, ended.usage.tokens)
            elif not done and real:
                await try_claims.correct_lost(scope, claimed.id, claimed.attempt, ended.usage)
            return done

    if await _insist(deps, claimed, write):
        seen.set_all(counting.of_end(ended.status, ended.error))
        counting.ended(ended.status)


async def _end_uncalled(deps: Deps, claimed: Claimed, status: TryStatus, error: TryError, seen: Seen) -> None:
    async def write() -> bool:
        async with deps.store.begin(claimed.principal) as scope:
            return await try_claims.end_uncalled(scope, claimed.id, claimed.attempt, status, error)

    if await _insist(deps, claimed, write):
        seen.set_all(counting.of_end(status, error))
        counting.ended(status)


async def _defer(deps: Deps, claimed: Claimed, seconds: float) -> bool | None:
    """Whether it waits again; None when nobody knows."""

    async def write() -> bool:
        async with deps.store.begin(claimed.principal) as scope:
            return await try_claims.defer(scope, claimed.id, claimed.attempt, seconds)

    return await _insist(deps, claimed, write)


async def _insist(deps: Deps, claimed: Claimed, write: Callable[[], Awaitable[bool]]) -> bool | None:
    """Do what may be done twice, again for up to a lease while PostgreSQL is away. None when it could not be done."""
    loop = asyncio.get_running_loop()
    until, pause = loop.time() + deps.settings.context_try_lease, FIRST_PAUSE_SECONDS
    while True:
        try:
            return await write()
        except Unavailable as error:
            if loop.time() + pause > until:
                _log(Log.UNAVAILABLE, error, claimed)
                return None
        except Exception as error:
            _log(Log.UNEXPECTED, error, claimed)
            return None
        await asyncio.sleep(pause)
        pause = min(2 * pause, LONGEST_PAUSE_SECONDS)


def _log(event: Log, error: Exception, claimed: Claimed) -> None:
    write = logs.warning if event is Log.UNAVAILABLE else logs.error
    write(event, error, process="worker", tenant_id=claimed.tenant_id, try_id=claimed.id)
