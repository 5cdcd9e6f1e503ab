"""One model call of a run: written down before the first byte goes out, made once, settled with what came of it.

Nothing is repeated but a call that the provider said it did not take; every attempt is a call of its own.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, Final

from hango import logs
from hango.chain import calls as planning
from hango.chain import sendable
from hango.chain import tries as estimates
from hango.chain.calls import Conversation, NextCall
from hango.domain import CallID, Purpose, RunID, RunStatus
from hango.errors import HangoError, Invalid, NotFound, ProviderFailed, ProviderTimeout, QuotaExceeded, Unavailable
from hango.logs import Log
from hango.messages import MessageRole, Response
from hango.runs import BegunCall, CallEnd, RunError
from hango.store import context_bases, run_calls, run_claims
from hango.store.connection import Scope
from hango.store.run_claims import Hold
from hango.telemetry import Attr, Metric
from hango.telemetry.names import Value
from hango.tries import TryUsage
from hango.workers import calls, counting
from hango.workers.absences import FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS
from hango.workers.outcomes import Ended, Ending, Terms, answered, delay, unanswered
from hango.workers.run_steps import Step, append, named_tools, step_after
from hango.workers.running import Leaving, LetGo, Running, Stop

# A single call: long answers take minutes, and a silent provider must not take a run's whole time.
MOST_CALL_SECONDS: Final = 600.0
MOST_DEFERRALS: Final = 5
# Ends that are the whole run's, whatever call met them.
LIMITS: Final = frozenset({RunError.QUOTA_EXCEEDED, RunError.TOO_MANY_TOKENS, RunError.TOO_MANY_TURNS})

After = Callable[[Scope, Response], Awaitable[None]]


async def plan(running: Running, conversation: Conversation) -> NextCall:
    """The call that the conversation makes now."""
    async with running.deps.store.read(running.claimed.principal) as scope:
        base = await planning.base_now(scope, running.start, conversation, running.skill)
        return await planning.next_call(scope, running.deps, base, is_child=conversation.is_child)


async def converse(running: Running, conversation: Conversation, planned: NextCall) -> Step | None:
    """Make the call and append its answer, with the bill, in one transaction. Returns what comes next, if it is known.

    Raises Stop, also when a provider would refuse it, LetGo, Leaving, Ended.
    """
    _need_key(running, planned)
    try:
        sendable.check(running.deps, planned.drafted)
    except Invalid:
        raise Stop(RunStatus.FAILED, error=RunError.UNSENDABLE) from None

    agent, seq = planned.drafted.state.agent, 0

    async def write(scope: Scope, response: Response) -> None:
        nonlocal seq
        seq = await append(scope, running, conversation, MessageRole.ASSISTANT, response.content, model=agent.model)
        if not conversation.is_child:
            await run_claims.count_turn(scope, running.claimed.id)

    response = await make(running, planned, conversation.purpose, write)
    running.tools[conversation.session_id] = named_tools(planned.drafted)
    return step_after(conversation, agent, seq, response) if seq else None


async def make(running: Running, planned: NextCall, purpose: Purpose, after: After) -> Response:
    """One call that a provider takes, and `after` it in the transaction that settles it.

    Raises Stop, LetGo, Leaving, Ended.
    """
    _need_key(running, planned)
    for deferral in range(MOST_DEFERRALS + 1):
        running.check_time()
        begun, terms = await _begin(running, planned, purpose)
        try:
            response = await _answer(running, planned, purpose, begun, terms)
        except (ProviderFailed, ProviderTimeout, Ended) as error:
            counting.billed(planned.model, purpose, await _settle_failure(running, begun.id, terms, error))
            seconds = delay(error, deferral + 1)
            if seconds is None or deferral == MOST_DEFERRALS:
                raise _stop(running, error) from None
            await _rest(running, seconds)
            continue
        counting.billed(planned.model, purpose, await _settle(running, begun.id, terms, response, after))
        if purpose is Purpose.RUN and response.usage_known:
            counting.cached(planned.model, response.usage)
        await _learn(running, planned, response)
        return response
    raise AssertionError("the last attempt returns or raises")


def _need_key(running: Running, planned: NextCall) -> None:
    """Raise Stop when this worker has no key for the provider, which the API that accepted the run has."""
    provider = planned.drafted.state.agent.provider
    if running.deps.providers.completer(provider) is None:
        claimed = running.claimed
        logs.error(
            Log.NO_PROVIDER_KEY, process="worker", provider=provider, tenant_id=claimed.tenant_id, run_id=claimed.id
        )
        raise Stop(RunStatus.FAILED, error=RunError.INTERNAL)


async def _begin(running: Running, planned: NextCall, purpose: Purpose) -> tuple[BegunCall, Terms]:
    deps, claimed, settings = running.deps, running.claimed, running.deps.settings
    state = planned.drafted.state
    async with deps.store.begin(claimed.principal) as scope:
        held = await running.hold(scope)
        if await _turns(scope, claimed.id, held, planned, purpose) >= settings.run_max_turns:
            raise Stop(RunStatus.FAILED, error=RunError.TOO_MANY_TURNS)
        if await run_calls.tokens_of(scope, claimed.id) >= settings.run_max_tokens:
            raise Stop(RunStatus.FAILED, error=RunError.TOO_MANY_TOKENS)
        base_id = await context_bases.find_or_create(scope, planned.base)
        new = planning.new_call(planned, base_id, purpose)
        try:
            begun = await run_calls.begin(scope, claimed.id, new)
        except QuotaExceeded:
            raise Stop(RunStatus.FAILED, error=RunError.QUOTA_EXCEEDED) from None
        if begun is None:  # one that a worker left open: the reconciler ends this run
            raise LetGo
    terms = Terms(
        model=new.model,
        reserved=new.reserved,
        max_output_tokens=new.max_output_tokens,
        priced=deps.providers.is_priced(state.agent.provider),
        cache_ttl=state.agent.cache.ttl,
    )
    return begun, terms


async def _turns(scope: Scope, run_id: RunID, held: Hold, planned: NextCall, purpose: Purpose) -> int:
    """Of the conversation whose call this is: the run's, or a subagent's. A summary is nobody's turn."""
    if purpose is Purpose.SUBAGENT:
        return await run_calls.count_of(scope, run_id, planned.base.session_id)
    return held.turns if purpose is Purpose.RUN else 0


async def _answer(running: Running, planned: NextCall, purpose: Purpose, begun: BegunCall, terms: Terms) -> Response:
    provider = planned.drafted.state.agent.provider
    completer = running.deps.providers.completer(provider)
    assert completer is not None, "it was looked for before the call was begun"
    seconds = min(running.seconds_left, MOST_CALL_SECONDS)
    prompt = calls.Prompt(running.claimed.principal, provider, planned.request, completer, seconds, terms)
    new, size = planned.drafted.draft, planned.drafted.draft.size
    attrs: dict[Attr, Value] = {
        Attr.RUN_ID: running.claimed.id,
        Attr.RUN_CALL: begun.n,
        Attr.PURPOSE: purpose,
        Attr.OVERRIDES: sum(mark.override is not None for mark in new.marks.values()),
        Attr.EXCLUDED_TOKENS: 0 if size is None else size.before - size.after,
    }
    return await calls.send(prompt, running.held.ending, attrs, seconds=Metric.RUN_CALL)


async def _settle(running: Running, call_id: CallID, terms: Terms, response: Response, after: After) -> TryUsage:
    """The bill and the answer together, through a short absence of PostgreSQL. Raises LetGo when that is not for us."""
    ended = answered(response, terms)
    end = CallEnd(ended.usage, stop_reason=response.stop_reason, provider_request_id=response.request_id)

    async def write(scope: Scope) -> None:
        held = await run_claims.hold(scope, running.claimed.id, running.claimed.attempt)
        if held is None:
            raise LetGo
        if not await run_calls.settle(scope, call_id, end):
            return  # this is the second time: the first was committed, and its confirmation lost
        with suppress(NotFound):  # its session was deleted meanwhile: what was paid is billed all the same
            await after(scope, response)

    await _insist(running, write)
    return ended.usage


async def _settle_failure(running: Running, call_id: CallID, terms: Terms, error: Exception) -> TryUsage:
    if isinstance(error, Ended) and error.why is Ending.GIVEN_UP:
        raise LetGo
    ended = unanswered(error, terms)
    end = CallEnd(
        ended.usage,
        error=None if ended.error is None else RunError(ended.error.value),
        provider_status=ended.provider_status,
        provider_request_id=ended.provider_request_id,
    )

    async def write(scope: Scope) -> None:
        # The run is held first, as the reconciler holds it: neither waits for what the other one has.
        held = await run_claims.hold(scope, running.claimed.id, running.claimed.attempt)
        if held is None:
            raise LetGo
        await run_calls.settle(scope, call_id, end)  # once: nothing, where the confirmation of a first time was lost

    await _insist(running, write)
    return ended.usage


async def _insist(running: Running, write: Callable[[Scope], Awaitable[None]]) -> None:
    loop = asyncio.get_running_loop()
    until, pause = loop.time() + running.deps.settings.context_try_lease, FIRST_PAUSE_SECONDS
    while True:
        try:
            async with running.deps.store.begin(running.claimed.principal) as scope:
                await write(scope)
            return
        except Unavailable:
            if loop.time() + pause > until:
                raise LetGo from None
        await asyncio.sleep(pause)
        pause = min(2 * pause, LONGEST_PAUSE_SECONDS)


async def _rest(running: Running, seconds: float) -> None:
    """Wait until the provider may take the call. A cancel ends the wait, and so does the end of the process: no call
    is under way, another worker goes on."""
    held = running.held
    ends: set[asyncio.Future[Any]] = {held.ending, held.leaving}
    seconds = min(seconds, max(running.seconds_left, 0))
    await asyncio.wait(ends, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
    if held.ending.done():
        raise Ended(held.ending.result())
    if held.leaving.done():
        raise Leaving


async def _learn(running: Running, planned: NextCall, response: Response) -> None:
    """What was billed is a lesson for the next estimate. Missing one is no harm."""
    if not response.usage_known:
        return
    try:
        async with running.deps.store.begin(running.claimed.principal) as scope:
            await estimates.learn(scope, running.deps, [(planned, response.usage)])
    except HangoError:
        return


def _stop(running: Running, error: Exception) -> Stop:
    if isinstance(error, Ended):
        return Stop(RunStatus.CANCELLED, error=RunError.CANCELLED)
    if isinstance(error, ProviderTimeout):
        status = RunStatus.TIMED_OUT if running.seconds_left <= 0 else RunStatus.FAILED
        return Stop(status, error=RunError.TIMEOUT)
    assert isinstance(error, ProviderFailed)
    return Stop(RunStatus.FAILED, error=RunError(error.fault.value))
