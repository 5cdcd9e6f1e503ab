"""Providers that send what costs the reader more than it costs them: the calls of others go on."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

import pytest
import uvloop

from hango.chain.providers.bounded import HEAD_BYTES
from hango.chain.providers.http import Http
from hango.errors import ProviderFailed, ProviderFault
from tests.providers_server import fake_provider, says
from tests.unit.chain.providers.answering import Wire
from tests.unit.chain.providers.making import request, user

REQUEST = request(user("Hello?"))
MOST_BYTES = 1 << 20
# What the systems of both ends keep of what was sent and not read.
KEPT_BYTES = 16 << 20

INTERIM = (b"", b"HTTP/1.1 100 Continue\r\n\r\n")
PIECES = (b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n", b"1\r\n \r\n")


@dataclass(slots=True)
class Flood:
    url: str
    sent: int = 0


@contextmanager
def flood(head: bytes, piece: bytes) -> Iterator[Flood]:
    """A server on a thread of its own, since it never rests: the head, then pieces until the connection ends."""
    listener = socket.create_server(("127.0.0.1", 0))
    made = Flood(f"http://127.0.0.1:{listener.getsockname()[1]}")

    def answer() -> None:
        connection, _ = listener.accept()
        many = piece * (65536 // len(piece))
        with connection, suppress(OSError):
            connection.recv(65536)
            connection.sendall(head)
            while True:
                made.sent += connection.send(many)

    thread = threading.Thread(target=answer)
    thread.start()
    try:
        yield made
    finally:
        thread.join()
        listener.close()


# Workers run on the one, tests and tools on the other: they read in different ways.
LOOPS = {"asyncio": asyncio.new_event_loop, "uvloop": uvloop.new_event_loop}


@pytest.mark.parametrize(("head", "piece"), [INTERIM, PIECES], ids=["interim answers", "pieces of one byte"])
@pytest.mark.parametrize("loop", LOOPS)
def test_no_more_is_read_than_an_answer_may_have(wire: Wire, loop: str, head: bytes, piece: bytes) -> None:
    """What is no part of the answer counts too: the call fails long before its deadline, and another is answered."""

    async def both(flooding: Flood) -> tuple[str | None, ProviderFault]:
        http = Http(max_bytes=MOST_BYTES)
        flooded = asyncio.create_task(wire.at(flooding.url, http).complete(REQUEST, deadline=60))
        async with fake_provider(says(wire.answer("Hello."))) as calm:
            response = await wire.at(calm.url, http).complete(REQUEST, deadline=60)
        with pytest.raises(ProviderFailed) as caught:
            await flooded
        await http.close()
        return response.content[0].view.text, caught.value.fault

    with flood(head, piece) as flooding, asyncio.Runner(loop_factory=LOOPS[loop]) as runner:
        assert runner.run(both(flooding)) == ("Hello.", ProviderFault.PROTOCOL)

    assert flooding.sent < 2 * MOST_BYTES + HEAD_BYTES + KEPT_BYTES


@pytest.mark.parametrize("loop", LOOPS)
def test_each_call_of_a_connection_has_its_own_count(wire: Wire, loop: str) -> None:
    """Many answers over one connection may have more than one of them may."""
    large = "x" * (MOST_BYTES // 2)

    async def many() -> list[int]:
        http = Http(max_bytes=MOST_BYTES)
        async with fake_provider(says(wire.answer(large))) as server:
            adapter = wire.at(server.url, http)
            answers = [await adapter.complete(REQUEST, deadline=60) for _ in range(8)]
        await http.close()
        return [len(answer.content[0].view.text or "") for answer in answers]

    with asyncio.Runner(loop_factory=LOOPS[loop]) as runner:
        assert runner.run(many()) == [len(large)] * 8
