"""Clients that send slowly or without end: they are not waited for, and who waits for an answer is."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
import uvicorn

from hango.api.patience import HEAD_MOST_BYTES, Patient

SECONDS = 20.0
GRACE_SECONDS = 0.3
HEAD = b"POST / HTTP/1.1\r\nhost: x\r\n"


async def echo(
    scope: uvicorn._types.Scope, receive: uvicorn._types.ASGIReceiveCallable, send: uvicorn._types.ASGISendCallable
) -> None:
    """Answers with the length of what it was sent, and takes its time."""
    length, more = 0, True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            return
        assert message["type"] == "http.request"
        length, more = length + len(message["body"]), message["more_body"]
    await asyncio.sleep(3 * GRACE_SECONDS)
    body = str(length).encode()
    headers = [(b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": 200, "headers": headers, "trailers": False})
    await send({"type": "http.response.body", "body": body, "more_body": False})


class Impatient(Patient):
    grace_seconds = GRACE_SECONDS
    least_bytes_per_second = 2000.0


@asynccontextmanager
async def connected() -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """A connection to a server that answers with `echo`."""
    config = uvicorn.Config(echo, http=Impatient, lifespan="off", log_config=None, access_log=False)
    server = asyncio.get_running_loop().create_server(
        lambda: Impatient(config, uvicorn.server.ServerState(), {}), "127.0.0.1", 0
    )
    async with await server as listening:
        reader, writer = await asyncio.open_connection(*listening.sockets[0].getsockname())
        try:
            async with asyncio.timeout(SECONDS):
                yield reader, writer
        finally:
            writer.transport.abort()


async def drip(writer: asyncio.StreamWriter, piece: bytes) -> None:
    """Until the connection is closed."""
    while not writer.is_closing():
        writer.write(piece)
        await asyncio.sleep(GRACE_SECONDS / 10)


@pytest.mark.parametrize(
    ("begin", "piece"),
    [
        pytest.param(b"", b"", id="nothing"),
        pytest.param(HEAD, b"x", id="head"),
        pytest.param(HEAD + b"content-length: 1000\r\n\r\n", b"x", id="body"),
    ],
)
async def test_a_client_that_drips_is_not_waited_for(begin: bytes, piece: bytes) -> None:
    """Slow heads and bodies are closed: nothing, a head that goes on, a body that goes on."""
    async with connected() as (reader, writer):
        writer.write(begin)
        dripping = asyncio.create_task(drip(writer, piece))

        assert await _rest(reader) == b""

        dripping.cancel()


async def test_a_body_that_comes_steadily_may_take_long() -> None:
    """A body of 3,000 bytes in pieces, over the grace but not under the least rate, is read to its end."""
    async with connected() as (reader, writer):
        writer.write(HEAD + b"content-length: 3000\r\nconnection: close\r\n\r\n")
        for _ in range(30):
            writer.write(b"x" * 100)
            await asyncio.sleep(2 * GRACE_SECONDS / 30)

        assert (await _rest(reader)).endswith(b"\r\n\r\n3000")


async def test_who_waits_for_an_answer_may_be_silent() -> None:
    """The limit is on sending a request, not on its answer; it holds for the next request of a connection too."""
    async with connected() as (reader, writer):
        writer.write(HEAD + b"content-length: 0\r\n\r\n")
        first = await reader.readuntil(b"\r\n\r\n0")
        writer.write(HEAD)

        assert first.startswith(b"HTTP/1.1 200")
        assert await _rest(reader) == b""


async def test_a_head_has_an_end() -> None:
    """A head of more than 64 KiB is not read on, however fast it comes."""
    async with connected() as (reader, writer):
        writer.write(HEAD + b"x-a: " + b"b" * 2 * HEAD_MOST_BYTES)

        assert await _rest(reader) == b""


async def _rest(reader: asyncio.StreamReader) -> bytes:
    """Until the server closes; a reset is an end too."""
    try:
        return await reader.read()
    except ConnectionResetError:
        return b""
