"""Providers that send what costs the reader more than it costs them: the calls of others go on."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

import pytest

from hango.chain.providers.http import Http
from hango.chain.providers.sockets import HEAD_BYTES, MOST_BYTES_AT_ONCE, make_factory
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


@pytest.mark.parametrize(("head", "piece"), [INTERIM, PIECES], ids=["interim answers", "pieces of one byte"])
async def test_no_more_is_read_than_an_answer_may_have(wire: Wire, head: bytes, piece: bytes) -> None:
    """What is no part of the answer counts too: the call fails long before its deadline, and another is answered."""
    http = Http(max_bytes=MOST_BYTES)
    with flood(head, piece) as flooding:
        flooded = asyncio.create_task(wire.at(flooding.url, http).complete(REQUEST, deadline=60))
        async with fake_provider(says(wire.answer("Hello."))) as calm:
            response = await wire.at(calm.url, http).complete(REQUEST, deadline=60)
        with pytest.raises(ProviderFailed) as caught:
            await flooded
    await http.close()

    assert response.content[0].view.text == "Hello."
    assert caught.value.fault is ProviderFault.PROTOCOL
    assert flooding.sent < 2 * MOST_BYTES + HEAD_BYTES + KEPT_BYTES


async def test_little_is_read_at_once() -> None:
    """Others have their turn after a few kilobytes, whatever the reader asks for; a send begins a new count."""
    near, far = socket.socketpair()
    made = make_factory(MOST_BYTES)((socket.AF_INET, socket.SOCK_STREAM, 0, "", ("", 0)))
    made.close()
    bounded = type(made)(fileno=near.detach())
    bounded.most_bytes = 3 * MOST_BYTES_AT_ONCE
    with bounded, far:
        for _ in range(2):
            far.sendall(b"x" * (3 * MOST_BYTES_AT_ONCE))
            first, into = bounded.recv(1 << 18), bounded.recv_into(bytearray(1 << 18))
            assert (len(first), into, bounded.recv_into(bytearray(9), 5)) == (MOST_BYTES_AT_ONCE,) * 2 + (5,)
            bounded.recv(1 << 18)
            bounded.send(b"more")
        far.sendall(b"x" * (3 * MOST_BYTES_AT_ONCE + 1))
        for _ in range(3):
            bounded.recv(1 << 18)
        with pytest.raises(ConnectionResetError):
            bounded.recv(1 << 18)
