"""The provider of the fault runs: it does what the words of each try say, and counts try by try what it took.

A try tells in its last user text who it is and what shall happen to it (`Act.text`), so that a call can be told from
any other after everything else was killed.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Final
from uuid import uuid4

from aiohttp import web

from tests.faults.canaries import MESSAGE
from tests.faults.run_script import answer, spoken
from tests.providers_server import chat, drips, floods, hangs_up, message, never, packed, says

WORDS: Final = re.compile(rb"mark:([0-9a-f]{32}) do:([a-z_]+) for:([0-9.]+) times:([0-9]+)")
# Not taken, in the words of the contract: whoever gets one may ask again.
NOT_TAKEN: Final = {"limited": 429, "busy": 529, "run_limited": 429}
# Of a run: `times` is the number of its tools, and each of its calls is refused at most once.
RUNS: Final = b" do:run"
HUGE_BYTES: Final = 3 * 2**20


@dataclass(frozen=True, slots=True)
class Act:
    """What shall happen to the call of one try. `times` is how often it is refused before it is answered."""

    do: str = "answer"
    seconds: float = 0.05
    times: int = 0
    mark: str = field(default_factory=lambda: uuid4().hex)

    @property
    def text(self) -> str:
        """The words of a try that ask for it."""
        return f"{MESSAGE} mark:{self.mark} do:{self.do} for:{self.seconds} times:{self.times}"


@dataclass(slots=True)
class Calls:
    """What came for one try: calls that were taken, and calls that were refused as too many."""

    taken: int = 0
    refused: int = 0


@dataclass(slots=True)
class CountingProvider:
    """Its address, and by mark what it saw. `under_way` is how many calls it holds, `most` how many it ever held."""

    port: int = 0
    calls: dict[str, Calls] = field(default_factory=lambda: defaultdict(Calls))
    unmarked: int = 0
    under_way: int = 0
    most: int = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def called(self) -> set[str]:
        return {mark for mark, calls in self.calls.items() if calls.taken}

    async def handle(self, request: web.Request) -> web.StreamResponse:
        body = await request.read()
        said, turn = spoken(body) if RUNS in body else ("", 0)
        found = WORDS.findall(said.encode() or body)
        if not found:
            self.unmarked += 1
            return web.json_response({"error": {"message": "no mark"}}, status=400)
        mark, do, seconds, times = found[-1]
        word = do.decode()
        is_run = word.startswith("run")
        seen = self.calls[turn_of(mark.decode(), turn) if is_run else mark.decode()]
        if word in NOT_TAKEN and seen.refused < (1 if is_run else int(times)):
            seen.refused += 1
            return web.json_response(
                {"error": {"message": "later"}}, status=NOT_TAKEN[word], headers={"retry-after": "1"}
            )
        seen.taken += 1
        self.under_way += 1
        self.most = max(self.most, self.under_way)
        try:
            if is_run:
                await asyncio.sleep(float(seconds))
                is_anthropic = request.path.endswith("/messages")
                return await says(answer(mark.decode(), turn, int(times), anthropic=is_anthropic))(request)
            return await self._act(request, word, float(seconds))
        finally:
            self.under_way -= 1

    async def _act(self, request: web.Request, do: str, seconds: float) -> web.StreamResponse:
        await asyncio.sleep(seconds)
        anthropic = request.path.endswith("/messages")
        match do:
            case "hang":
                return await never(request)
            case "drip":
                return await drips(request)
            case "flood":
                return await floods(request)
            case "cut":
                return await hangs_up(request)
            case "garbage":
                return await says(b"{this is no answer")(request)
            case "bomb":
                return await packed(_answer(anthropic, "x" * HUGE_BYTES))(request)
            case "fail":
                return await says({"error": {"message": "it failed"}}, status=500)(request)
            case "echo":  # as a provider that quotes the key it does not know, and what it was asked
                told = {key.lower(): value for key, value in request.headers.items()}
                quoted = f"{told.get('authorization', '')} {told.get('x-api-key', '')}"
                return await says({"error": {"message": f"wrong key {quoted}"}}, status=401)(request)
            case "refuse":
                return await says({"error": {"message": "no"}}, status=400)(request)
            case "huge":
                return await says(_answer(anthropic, "x" * HUGE_BYTES))(request)
            case _:
                return await says(_answer(anthropic, "Well."))(request)


def _answer(anthropic: bool, text: str) -> dict[str, Any]:
    return message(text) if anthropic else chat(text)


@asynccontextmanager
async def counting_provider() -> AsyncIterator[CountingProvider]:
    """At a free port of this machine, for the time of the block."""
    made = CountingProvider()
    app = web.Application(client_max_size=1 << 30)
    app.router.add_route("*", "/{path:.*}", made.handle)
    # A caller that goes away ends its call here too: a dead worker leaves nothing under way.
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0, handler_cancellation=True)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, backlog=2048)
    await site.start()
    made.port = runner.addresses[0][1]
    try:
        yield made
    finally:
        await runner.cleanup()


def turn_of(mark: str, turn: int) -> str:
    """The name of one call of a run."""
    return f"{mark} {turn}"


def marks_of(texts: str) -> list[str]:
    """The marks in what is stored of a try."""
    return [found[0].decode() for found in WORDS.findall(json.dumps(texts).encode())]
