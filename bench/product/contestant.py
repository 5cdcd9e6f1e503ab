"""The product: its inspect in this process, without HTTP, and over HTTP."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial

import msgspec
import uvloop

from bench import shape
from bench.contestant import Work, place, serve
from bench.place import Client
from bench.product.caller import Caller
from hango.api.app import open_runtime
from hango.chain import context, frames
from hango.chain.deps import Deps
from hango.chain.frames import MAX_FRAMES
from hango.chain.kept import Kept
from hango.chain.window import WHOLE, Window
from hango.domain import Principal, SessionID

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

    def over_http(query: str, size: int) -> Work:
        path = f"/v1/sessions/{sessions[size]}/context?count=estimate{query.format(after=size // 2)}"
        return Work(lambda: api.ask("GET", path), shape.facts)

    serve(
        {
            "inspect": partial(here, inspect),
            "page": partial(here, page),
            "first inspect": partial(here, first_inspect),
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


async def look(deps: Deps, principal: Principal, session_id: SessionID, window: Window) -> bytes:
    async with deps.store.read(principal) as scope:
        found = await context.look(scope, deps, session_id, window, count=False)
    assert found is not None, "estimates need no provider"
    return msgspec.json.encode(frames.fill(found[0], window, found[1]))


if __name__ == "__main__":
    main()
