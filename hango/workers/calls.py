"""One model call of a try: under one limit of time, endable, with its span. Reads and writes no row."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hango import telemetry
from hango.chain.providers.base import Completer
from hango.chain.tries import Prepared
from hango.domain import Principal, Purpose
from hango.errors import ProviderFailed, ProviderTimeout
from hango.messages import Request, Response
from hango.telemetry import Attr, Content, Metric, Name, gen_ai
from hango.telemetry.names import Value
from hango.tries import Claimed
from hango.workers.held import Held
from hango.workers.outcomes import Ended, Ending, Terms, answered, unanswered

# How long an ended call may take to close its connection. One that takes longer is left to itself.
CLEAN_UP_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class Ready:
    """A try, or the preview of a summary, whose call may begin: what is sent, to whom, and what it is billed by."""

    prepared: Prepared
    completer: Completer
    terms: Terms
    purpose: Purpose = Purpose.CONTEXT_TRY


@dataclass(frozen=True, slots=True)
class Prompt:
    """What is sent, on whose behalf, to whom, how long it may take, and what it is billed by."""

    principal: Principal
    provider: str
    request: Request
    completer: Completer
    seconds: float
    terms: Terms


async def call(held: Held[Claimed], ready: Ready) -> Response:
    """Send a try's request, once. Raises as `send`."""
    prepared, claimed = ready.prepared, held.claimed
    prompt = Prompt(
        claimed.principal, prepared.provider, prepared.request, ready.completer, claimed.timeout_seconds, ready.terms
    )
    attrs: dict[Attr, Value] = {
        Attr.PURPOSE: ready.purpose,
        Attr.OVERRIDES: prepared.overrides,
        Attr.EXCLUDED_TOKENS: prepared.excluded_tokens,
    }
    if ready.purpose is not Purpose.CONTEXT_TRY:
        return await send(prompt, held.ending, attrs, seconds=None)
    return await send(prompt, held.ending, attrs | {Attr.TRY: True}, seconds=Metric.TRY_CALL)


async def send(
    prompt: Prompt, ending: asyncio.Future[Ending], attrs: Mapping[Attr, Value], *, seconds: Metric | None
) -> Response:
    """Send the request, once. `seconds` is the histogram that takes its time; None: none does.

    Raises ProviderFailed, ProviderTimeout at the limit, and Ended when somebody wanted the call ended. Whatever came
    before that is the call's end.
    """
    principal, request = prompt.principal, prompt.request
    told = {**attrs, **gen_ai.of_request(Name(prompt.provider), request)}
    with telemetry.chat_span(Name(request.model), told, seconds=seconds) as seen:
        seen.content(Content.SYSTEM, principal, lambda: gen_ai.system_json(request.system))
        seen.content(Content.INPUT, principal, lambda: gen_ai.messages_json(request.messages))
        try:
            response = await _answer(prompt, ending)
        except (ProviderFailed, ProviderTimeout, Ended) as error:
            seen.set_all(gen_ai.of_cost(unanswered(error, prompt.terms).usage.cost_usd))
            raise
        seen.set_all(gen_ai.of_response(response))
        seen.set_all(gen_ai.of_cost(answered(response, prompt.terms).usage.cost_usd))
        seen.content(Content.OUTPUT, principal, lambda: gen_ai.answer_json(response))
    return response


async def _answer(prompt: Prompt, ending: asyncio.Future[Ending]) -> Response:
    under_way = asyncio.create_task(prompt.completer.complete(prompt.request, deadline=prompt.seconds))
    watched: set[asyncio.Future[Any]] = {under_way, ending}
    try:
        await asyncio.wait(watched, timeout=prompt.seconds, return_when=asyncio.FIRST_COMPLETED)
    finally:
        if not under_way.done():
            under_way.cancel()
            await asyncio.wait({under_way}, timeout=CLEAN_UP_SECONDS)
    if under_way.done() and not under_way.cancelled():
        return under_way.result()
    if ending.done():
        raise Ended(ending.result())
    raise ProviderTimeout(f"The model did not answer within {prompt.seconds:g} s.")
