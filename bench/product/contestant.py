"""The product: its inspect in this process, without HTTP, and over HTTP."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial

import msgspec
import uvloop

from bench import shape
from bench.contestant import Work, place, serve
from bench.place import Client
from bench.product.caller import Caller
from hango.api.app import open_runtime
from hango.chain import base as bases
from hango.chain import calls, context, frames, saved_overrides
from hango.chain.calls import Conversation
from hango.chain.deps import Deps
from hango.chain.frames import MAX_FRAMES
from hango.chain.kept import Kept
from hango.chain.kept_bases import MAX_BASES
from hango.chain.kept_histories import KeptHistories
from hango.chain.parts import message_part
from hango.chain.state import Wanted
from hango.chain.window import WHOLE, Window
from hango.domain import Override, OverrideAction, Principal, SessionID
from hango.store import context_overrides

PAGE = 200


def main() -> None:
    found, caller = place(), Caller.of_place()
    sessions = caller.sessions
    api = Client(found["api_url"], found["api_key"])
    loop = uvloop.new_event_loop()
    runtime = open_runtime(caller.settings)
    deps = loop.run_until_complete(runtime.__aenter__()).deps

    def here(answer: Callable[[Deps, Principal, SessionID, int], Awaitable[bytes]], size: int) -> Work:
        return Work(lambda: loop.run_until_complete(answer(deps, caller.principal, sessions[size], size)), shape.facts)

    def saved(size: int) -> Work:
        return Work(here(save_set, size).run, json.loads)

    def request(provider: str, size: int) -> Work:
        return Work(here(partial(first_request, provider), size).run, json.loads)

    def over_http(query: str, size: int) -> Work:
        path = f"/v1/sessions/{sessions[size]}/context?count=estimate{query.format(after=size // 2)}"
        return Work(lambda: api.ask("GET", path), shape.facts)

    serve(
        {
            "inspect": partial(here, inspect),
            "page": partial(here, page),
            "first inspect": partial(here, first_inspect),
            "preview of 500": partial(here, preview),
            "set of 500": saved,
            "first request": partial(request, "anthropic"),
            "first request, OpenAI's form": partial(request, "openai"),
            "inspect over HTTP": partial(over_http, ""),
            "page over HTTP": partial(over_http, f"&group=messages&limit={PAGE}&after={{after}}"),
        }
    )
    loop.run_until_complete(runtime.__aexit__(None, None, None))


async def inspect(deps: Deps, principal: Principal, session_id: SessionID, size: int) -> bytes:
    """What GET context does between its guard and its answer, for a state that was looked at before."""
    return await look(deps, principal, session_id, WHOLE)


async def page(deps: Deps, principal: Principal, session_id: SessionID, size: int) -> bytes:
    """A page from the middle."""
    return await look(deps, principal, session_id, Window("messages", size // 2, PAGE))


async def first_inspect(deps: Deps, principal: Principal, session_id: SessionID, size: int) -> bytes:
    """The same when nobody has looked at this state before."""
    return await look(replace(deps, frames=Kept(MAX_FRAMES)), principal, session_id, WHOLE)


async def preview(deps: Deps, principal: Principal, session_id: SessionID, size: int) -> bytes:
    """What POST preview does for 500 exclusions."""
    wanted = Wanted(exclusions(size))
    async with deps.store.read(principal) as scope:
        drafted = await context.draft_next_call(scope, deps, session_id, wanted)
    return msgspec.json.encode(context.estimated_snapshot(drafted))


async def save_set(deps: Deps, principal: Principal, session_id: SessionID, size: int) -> bytes:
    """What PUT context-overrides does with 500 overrides between its guard and its answer; taken back at the end."""
    made = b"{}"
    with suppress(TakenBack):
        async with deps.store.begin(principal) as scope:
            await context_overrides.hold_session(scope, session_id)
            plan = await saved_overrides.plan_for_session(scope, deps, session_id, exclusions(size))
            await context_overrides.replace_for_session(scope, session_id, plan.stored)
            made = msgspec.json.encode({"messages": size, "stored": len(plan.stored), "added": len(plan.added)})
            raise TakenBack
    return made


async def first_request(provider: str, deps: Deps, principal: Principal, session_id: SessionID, size: int) -> bytes:
    """What a worker does between the claim of a run and the first byte to the provider, in a session it has not met."""
    cold = replace(deps, bases=Kept(MAX_BASES), frames=Kept(MAX_FRAMES), histories=KeptHistories())
    async with deps.store.read(principal) as scope:
        start = await bases.current(scope, session_id)
        planned = await calls.next_call(
            scope, cold, await calls.base_now(scope, start, Conversation(session_id), None), is_child=False
        )
    request = planned.request
    body = deps.providers.get(provider).body(request)
    return msgspec.json.encode({"messages": len(request.messages), "tools": len(request.tools), "bytes": len(body)})


class TakenBack(Exception):
    """Ends a transaction without keeping what was written."""


def exclusions(size: int) -> list[Override]:
    """500 answers of a long history, or as many as there are."""
    seqs = range(4, size + 1, max(4, size // 500 // 4 * 4))
    return [Override(message_part(seq), OverrideAction.EXCLUDE) for seq in seqs][:500]


async def look(deps: Deps, principal: Principal, session_id: SessionID, window: Window) -> bytes:
    async with deps.store.read(principal) as scope:
        found = await context.look(scope, deps, session_id, window, count=False)
    assert found is not None, "estimates need no provider"
    return msgspec.json.encode(frames.fill(found[0], window, found[1]))


if __name__ == "__main__":
    main()
