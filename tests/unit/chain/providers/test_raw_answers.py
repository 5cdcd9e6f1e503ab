"""Answers as bytes on a connection: cut at every place, and mutated from the first byte of HTTP on."""

from __future__ import annotations

import json
import logging
import random

import pytest

from hango.errors import ProviderFailed, ProviderFault, ProviderTimeout
from hango.messages import Response
from tests.providers_server import FakeProvider, says, writes
from tests.unit.chain.providers.answering import KEY, Adapter, Wire
from tests.unit.chain.providers.making import request, user

REQUEST = request(user("The canary sings."))
MUTATIONS = 1000
PIECES = [b"\r\n", b"\r", b"\n", b"\x00", b": ", b"HTTP/1.1 ", b"transfer-encoding: chunked\r\n", b"\xff", b"9" * 30]


def whole_answer(wire: Wire) -> bytes:
    body = json.dumps(wire.answer("Hello.")).encode()
    head = f"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
    return head.encode() + body


async def outcome(adapter: Adapter, *, deadline: float = 10) -> Response | ProviderFailed | ProviderTimeout:
    """What comes of a call; any other error is the test's failure."""
    try:
        return await adapter.complete(REQUEST, deadline=deadline)
    except (ProviderFailed, ProviderTimeout) as failure:
        return failure


async def test_cut_at_every_byte(wire: Wire, adapter: Adapter, server: FakeProvider) -> None:
    """However much of an answer came before the connection ended: it is cut, and was asked for once."""
    raw = whole_answer(wire)
    for length in range(len(raw)):
        server.answer = writes(raw[:length])

        failure = await outcome(adapter)

        assert isinstance(failure, ProviderFailed)
        assert failure.fault is ProviderFault.PROTOCOL, length
    assert len(server.seen) == len(raw)
    server.answer = writes(raw)
    assert isinstance(await outcome(adapter), Response)


async def test_mutated_from_the_first_byte(wire: Wire, adapter: Adapter, server: FakeProvider) -> None:
    """Bytes changed, put in and taken out, also in the status and the headers: closed failures only."""
    chance = random.Random(20261130)
    for _ in range(MUTATIONS):
        raw = bytearray(whole_answer(wire))
        for _ in range(chance.randint(1, 4)):
            # Half of them in the head.
            at = chance.randrange(len(raw) if chance.random() < 0.5 else 80)
            piece = chance.choice([*PIECES, chance.randbytes(chance.randint(0, 3))])
            raw[at : at + chance.randint(0, 3)] = piece
        server.answer = writes(bytes(raw))

        found = await outcome(adapter, deadline=2)

        assert isinstance(found, ProviderTimeout | Response) or found.fault in ProviderFault, bytes(raw)
    assert len(server.seen) == MUTATIONS


async def test_nothing_of_a_call_is_logged(
    wire: Wire, adapter: Adapter, server: FakeProvider, caplog: pytest.LogCaptureFixture
) -> None:
    """No log of any library, at any level, has a word of the request, of the answer or of the key."""
    caplog.set_level(logging.DEBUG)
    answers = [
        says(wire.answer("The canary answers.")),
        says(wire.error(f"The canary with {KEY.reveal()} fails."), status=400),
        says(b"The canary is no JSON."),
        writes(b"The canary is no HTTP.\r\n\r\n"),
    ]
    for answer in answers:
        server.answer = answer
        await outcome(adapter)

    assert len(server.seen) == len(answers)
    assert "canary" not in caplog.text
