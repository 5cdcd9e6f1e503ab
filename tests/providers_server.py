"""A local HTTP server that behaves like a provider, well or badly. It keeps what it got."""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

Answer = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass(frozen=True, slots=True)
class Seen:
    """One request as it came."""

    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass(slots=True)
class FakeProvider:
    """`answer` says what comes back; change it while the server runs."""

    answer: Answer
    url: str = ""
    seen: list[Seen] = field(default_factory=list)

    async def handle(self, request: web.Request) -> web.StreamResponse:
        headers = {name.lower(): value for name, value in request.headers.items()}
        self.seen.append(Seen(request.path_qs, headers, await request.read()))
        return await self.answer(request)


@asynccontextmanager
async def fake_provider(answer: Answer) -> AsyncIterator[FakeProvider]:
    """The server on a free port of this machine."""
    fake = FakeProvider(answer)
    app = web.Application(client_max_size=1 << 30)
    app.router.add_route("*", "/{path:.*}", fake.handle)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0, handler_cancellation=True)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    assert site._server is not None
    fake.url = f"http://127.0.0.1:{site._server.sockets[0].getsockname()[1]}"  # type: ignore[attr-defined]  # asyncio's base class does not name it
    try:
        yield fake
    finally:
        await runner.cleanup()


def says(body: Any, *, status: int = 200, headers: dict[str, str] | None = None) -> Answer:
    """Answers with JSON, or with bytes as they are."""

    async def answer(_: web.Request) -> web.StreamResponse:
        text = body if isinstance(body, bytes) else json.dumps(body).encode()
        return web.Response(body=text, status=status, headers={"content-type": "application/json"} | (headers or {}))

    return answer


async def never(_: web.Request) -> web.StreamResponse:
    """Takes the request and says nothing."""
    await asyncio.Event().wait()
    raise AssertionError("nobody sets the event")


async def drips(request: web.Request) -> web.StreamResponse:
    """Sends a byte now and then, for ever."""
    response = web.StreamResponse()
    await response.prepare(request)
    while True:
        await response.write(b" ")
        await asyncio.sleep(0.05)


async def floods(request: web.Request) -> web.StreamResponse:
    """Sends as much as is taken, for ever."""
    response = web.StreamResponse()
    await response.prepare(request)
    while True:
        await response.write(b" " * 65_536)


async def hangs_up(request: web.Request) -> web.StreamResponse:
    """Closes the connection in the middle of its answer."""
    response = web.StreamResponse(headers={"content-length": "1000"})
    await response.prepare(request)
    await response.write(b"{")
    assert request.transport is not None
    request.transport.close()
    return response


async def crawls(request: web.Request) -> web.StreamResponse:
    """Sends its headers letter by letter, for ever."""
    assert request.transport is not None
    request.transport.write(b"HTTP/1.1 200 OK\r\n")
    while True:
        for letter in b"x-a: b\r\n":
            request.transport.write(bytes([letter]))
            await asyncio.sleep(0.05)


def writes(*raw: bytes) -> Answer:
    """Puts bytes on the connection as they are, then closes it."""

    async def answer(request: web.Request) -> web.StreamResponse:
        assert request.transport is not None
        for one in raw:
            request.transport.write(one)
        request.transport.close()
        return web.StreamResponse()

    return answer


def packed(body: Any, *, status: int = 200) -> Answer:
    """Answers with gzip though nobody asked for it."""
    return says(gzip.compress(json.dumps(body).encode()), status=status, headers={"content-encoding": "gzip"})


def message(*content: dict[str, Any] | str, stop_reason: str = "end_turn", **usage: Any) -> dict[str, Any]:
    """An answer in the words of Anthropic's Messages API; its usage is 12 tokens read and 3 said, or as given."""
    return {
        "id": "msg_01",
        "type": "message",
        "role": "assistant",
        "model": "claude-sonnet-4-5",
        "content": [{"type": "text", "text": one} if isinstance(one, str) else one for one in content],
        "stop_reason": stop_reason,
        "stop_sequence": None,
        "usage": {"input_tokens": 12, "output_tokens": 3} | usage,
    }


def chat(content: Any = None, finish_reason: str = "stop", usage: Any = None, **said: Any) -> dict[str, Any]:
    """An answer in the words of Chat Completions; its usage is 12 tokens read and 3 said, or as given."""
    return {
        "id": "chatcmpl-01",
        "object": "chat.completion",
        "created": 1_700_000_000,
        "model": "gpt-5",
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": content} | said,
                "finish_reason": finish_reason,
                "logprobs": None,
            }
        ],
        "usage": {"prompt_tokens": 12, "completion_tokens": 3, "total_tokens": 15} if usage is None else usage,
    }
