"""One model call of a try: under one limit of time, endable, with its span. Reads and writes no row."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

from hango import telemetry
from hango.chain.providers.base import Completer
from hango.chain.tries import Prepared
from hango.errors import ProviderTimeout
from hango.messages import Request, Response
from hango.telemetry import Attr, Content, Metric, Name, gen_ai
from hango.telemetry.names import Value
from hango.workers.held import Held
from hango.workers.outcomes import Ended, Terms

# How long an ended call may take to close its connection. One that takes longer is left to itself.
CLEAN_UP_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class Ready:
    """A try whose call may begin: what is sent, to whom, and what it is billed by."""

    prepared: Prepared
    completer: Completer
    terms: Terms


async def call(held: Held, ready: Ready) -> Response:
    """Send the request, once.

    Raises ProviderFailed, ProviderTimeout at the try's limit, and Ended when somebody wanted the call ended. Whatever
    came before that is the call's end.
    """
    principal, request = held.claimed.principal, ready.prepared.request
    with telemetry.chat_span(Name(request.model), _attrs(ready.prepared), seconds=Metric.TRY_CALL) as seen:
        seen.content(Content.SYSTEM, principal, lambda: gen_ai.system_json(request.system))
        seen.content(Content.INPUT, principal, lambda: gen_ai.messages_json(request.messages))
        response = await _answer(ready.completer, request, held)
        seen.set_all(gen_ai.of_response(response))
        seen.content(Content.OUTPUT, principal, lambda: gen_ai.answer_json(response))
    return response


async def _answer(completer: Completer, request: Request, held: Held) -> Response:
    seconds = held.claimed.timeout_seconds
    under_way = asyncio.create_task(completer.complete(request, deadline=seconds))
    watched: set[asyncio.Future[Any]] = {under_way, held.ending}
    try:
        await asyncio.wait(watched, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
    finally:
        if not under_way.done():
            under_way.cancel()
            await asyncio.wait({under_way}, timeout=CLEAN_UP_SECONDS)
    if under_way.done() and not under_way.cancelled():
        return under_way.result()
    if held.ending.done():
        raise Ended(held.ending.result())
    raise ProviderTimeout(f"The model did not answer within {seconds:g} s.")


def _attrs(prepared: Prepared) -> dict[Attr, Value]:
    return {
        Attr.TRY: True,
        Attr.OVERRIDES: prepared.overrides,
        Attr.EXCLUDED_TOKENS: prepared.excluded_tokens,
        **gen_ai.of_request(Name(prepared.provider), prepared.request),
    }
