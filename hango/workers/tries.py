"""One claimed try, seen to its end: its request is made, the call is marked, made once, and settled.

No transaction is open during the call. What cannot be written down is left to the reconciler, which finds the try by
its lease.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from enum import Enum, auto
from typing import TypeVar

from hango import logs, telemetry
from hango.chain.deps import Deps
from hango.chain.tries import ContextChanged
from hango.domain import Purpose
from hango.errors import ProviderFailed, ProviderTimeout, Unavailable
from hango.logs import Log
from hango.store import try_claims
from hango.telemetry import Seen, Span
from hango.tries import Claimed, TryError, TryStatus
from hango.workers import calls, counting
from hango.workers.calls import Ready
from hango.workers.held import Held
from hango.workers.outcomes import UNWANTED, Ended, Ending, answered, delay, unanswered
from hango.workers.together import NoProviderKey, Outcome, Together

# Between attempts to write an end down while PostgreSQL is away: short after a restart, doubled up to a second.
FIRST_PAUSE_SECONDS = 0.1
LONGEST_PAUSE_SECONDS = 1.0

Written = TypeVar("Written")


class Deferral(Enum):
    """What becomes of a try whose call was not taken."""

    WAITS = auto()
    UNWANTED = auto()  # somebody cancels it
    OVER = auto()  # too often or too late


async def see_through(deps: Deps, together: Together, held: Held[Claimed]) -> float | None:
    """One claim to its end. Returns after how many seconds the try may be claimed again, if the provider did not take
    the call.

    Raises nothing; when it is cancelled, nothing is settled.
    """
    claimed = held.claimed
    waited = counting.waited(claimed)
    with telemetry.job_span(Span.CONTEXT_TRY, claimed.traceparent, counting.of_claim(claimed)) as seen:
        ready = await _mark(deps, together, claimed, seen)
        if ready is None:
            return None
        _name(seen, ready.purpose)
        counting.claimed(claimed, ready.purpose, waited)
        try:
            response = await calls.call(held, ready)
        except Exception as error:
            return await _without_answer(deps, together, claimed, ready, error, seen=seen)
        await _settle(deps, together, Outcome(claimed, ready, answered(response, ready.terms)), seen)
    return None


async def _mark(deps: Deps, together: Together, claimed: Claimed, seen: Seen) -> Ready | None:
    """The request, with its call marked as begun. None: nothing is to be called."""
    try:
        ready = await together.ready(claimed)
    except Unavailable as error:
        # Perhaps the mark is there and only its confirmation was lost: to call now could be to call twice.
        _log(Log.UNAVAILABLE, error, claimed)
        return None
    except ContextChanged:
        await _end_uncalled(deps, claimed, TryStatus.FAILED, TryError.CONTEXT_CHANGED, seen)
        return None
    except NoProviderKey as error:
        logs.error(
            Log.NO_PROVIDER_KEY,
            process="worker",
            provider=error.provider,
            tenant_id=claimed.tenant_id,
            try_id=claimed.id,
        )
        await _end_uncalled(deps, claimed, TryStatus.FAILED, TryError.INTERNAL, seen)
        return None
    except Exception as error:
        _log(Log.UNEXPECTED, error, claimed)
        await _end_uncalled(deps, claimed, TryStatus.FAILED, TryError.INTERNAL, seen)
        return None
    if ready is None:
        # Ends nothing but a try that somebody wants to be cancelled: any other is in the hands of somebody else.
        await _end_uncalled(deps, claimed, TryStatus.CANCELLED, TryError.CANCELLED, seen)
    return ready


async def _without_answer(
    deps: Deps, together: Together, claimed: Claimed, ready: Ready, error: Exception, *, seen: Seen
) -> float | None:
    """The end of a call that gave no answer; seconds, when the try waits again instead."""
    if isinstance(error, Ended) and error.why is Ending.GIVEN_UP:
        return None
    if not isinstance(error, ProviderFailed | ProviderTimeout | Ended):
        _log(Log.UNEXPECTED, error, claimed)
    seconds, settlement = delay(error, claimed.attempt), unanswered(error, ready.terms)
    if seconds is not None:
        deferral = await _defer(deps, claimed, seconds)
        if deferral is None:
            return None
        if deferral is Deferral.WAITS:
            seen.set_all(counting.of_end(TryStatus.QUEUED, None))
            return seconds
        if deferral is Deferral.UNWANTED:
            settlement = UNWANTED
    await _settle(deps, together, Outcome(claimed, ready, settlement), seen)
    return None


async def _settle(deps: Deps, together: Together, outcome: Outcome, seen: Seen) -> None:
    """Write down how a call ended, through an absence of PostgreSQL; nothing, when that is not for this claim to do."""
    if await _insist(deps, outcome.claimed, lambda: together.settle(outcome)):
        _tell(seen, outcome.ready.purpose, outcome.settlement.status, outcome.settlement.error)
        counting.billed(outcome.ready.prepared.model, outcome.ready.purpose, outcome.settlement.usage)


async def _end_uncalled(deps: Deps, claimed: Claimed, status: TryStatus, error: TryError, seen: Seen) -> None:
    async def write() -> Purpose | None:
        async with deps.store.begin(claimed.principal) as scope:
            return await try_claims.end_uncalled(scope, claimed.id, claimed.attempt, status, error)

    if (purpose := await _insist(deps, claimed, write)) is not None:
        _name(seen, purpose)
        _tell(seen, purpose, status, error)


def _name(seen: Seen, purpose: Purpose) -> None:
    """What was claimed shows when its request is read."""
    if purpose is Purpose.SUMMARY:
        seen.become(Span.SUMMARY_PREVIEW)


def _tell(seen: Seen, purpose: Purpose, status: TryStatus, error: TryError | None) -> None:
    seen.set_all(counting.of_end(status, error))
    counting.ended(status, {purpose: 1})


async def _defer(deps: Deps, claimed: Claimed, seconds: float) -> Deferral | None:
    """What becomes of a try whose call was not taken; None when nobody knows."""

    async def write() -> Deferral:
        async with deps.store.begin(claimed.principal) as scope:
            if await try_claims.defer(scope, claimed.id, claimed.attempt, seconds):
                return Deferral.WAITS
            unwanted = await try_claims.is_cancelled(scope, claimed.id, claimed.attempt)
            return Deferral.UNWANTED if unwanted else Deferral.OVER

    return await _insist(deps, claimed, write)


async def _insist(deps: Deps, claimed: Claimed, write: Callable[[], Awaitable[Written]]) -> Written | None:
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
