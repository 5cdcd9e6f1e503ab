"""What a call holds while it waits for its answer."""

from __future__ import annotations

import asyncio
import tracemalloc

import pytest

from hango.chain.providers.http import Http
from tests.unit.chain.providers.answering import Wire
from tests.unit.chain.providers.making import request, user

BYTES = 8 << 20


async def test_a_body_is_let_go_when_it_is_sent(wire: Wire, http: Http) -> None:
    """By hundreds of calls that wait for their answers, a process holds what they have in common and no bodies."""
    large = request(user("x" * BYTES))
    got, answer = asyncio.Event(), asyncio.Event()

    async def reads(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        read = 0
        while read < BYTES:
            read += len(await reader.read(1 << 16))
        got.set()
        await answer.wait()
        writer.close()

    server = await asyncio.start_server(reads, "127.0.0.1", 0)
    adapter = wire.at(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", http)
    adapter.body(large)  # what it keeps of the message itself is there from now on
    tracemalloc.start()
    try:
        call = asyncio.create_task(adapter.complete(large, deadline=30))
        await got.wait()
        async with asyncio.timeout(10):
            while tracemalloc.get_traced_memory()[0] > BYTES // 2:  # noqa: ASYNC110  nobody tells of it
                await asyncio.sleep(0)
    finally:
        tracemalloc.stop()
    answer.set()
    with pytest.raises(Exception, match="cut"):
        await call
    server.close()
