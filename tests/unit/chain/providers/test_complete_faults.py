"""Providers that behave badly: the closed failure that each becomes, within the limit, with one request sent."""

from __future__ import annotations

import asyncio
import re
import time
from typing import Any

import pytest
from aiohttp import web

from hango.chain.providers.failures import MAX_ERROR_BYTES
from hango.chain.providers.http import Http
from hango.errors import ProviderFailed, ProviderFault, ProviderTimeout
from tests.providers_server import (
    Answer,
    FakeProvider,
    crawls,
    drips,
    fake_provider,
    floods,
    hangs_up,
    never,
    packed,
    says,
    writes,
)
from tests.unit.chain.providers.answering import KEY, Adapter, Wire
from tests.unit.chain.providers.making import request, user

REQUEST = request(user("The canary sings."))
DEADLINE = 0.5


async def failure_of(adapter: Adapter, *, deadline: float = 10) -> ProviderFailed:
    with pytest.raises(ProviderFailed) as caught:
        await adapter.complete(REQUEST, deadline=deadline)
    assert caught.value.__cause__ is None
    return caught.value


@pytest.mark.parametrize("answer", [never, drips, crawls], ids=["hangs", "drips", "crawls"])
async def test_the_deadline_ends_a_slow_answer(adapter: Adapter, server: FakeProvider, answer: Answer) -> None:
    """A provider that hangs, sends its answer byte by byte or its headers letter by letter: ended at the deadline."""
    server.answer = answer
    begun = time.monotonic()

    with pytest.raises(ProviderTimeout, match=r"within 0\.5 s"):
        await adapter.complete(REQUEST, deadline=DEADLINE)

    assert DEADLINE <= time.monotonic() - begun < DEADLINE + 0.5
    assert len(server.seen) == 1


async def test_a_server_that_does_not_read_gets_no_whole_request(wire: Wire, http: Http) -> None:
    """The deadline holds for sending too, and what was not sent by then is never sent."""
    got: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    ended = asyncio.Event()

    async def reads_late(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await ended.wait()
        read = 0
        while piece := await reader.read(1 << 16):
            read += len(piece)
        got.set_result(read)
        writer.close()

    late = await asyncio.start_server(reads_late, "127.0.0.1", 0)
    adapter = wire.at(f"http://127.0.0.1:{late.sockets[0].getsockname()[1]}", http)
    large = request(user("x" * 50_000_000))

    with pytest.raises(ProviderTimeout):
        await adapter.complete(large, deadline=DEADLINE)
    ended.set()

    assert await asyncio.wait_for(got, 10) < 25_000_000
    late.close()


async def test_a_cancelled_call_closes_its_connection(adapter: Adapter, server: FakeProvider) -> None:
    """Cancelling is no failure of the provider: it passes through, and the provider sees the connection end."""
    arrived, gone = asyncio.Event(), asyncio.Event()

    async def waits(got: web.Request) -> web.StreamResponse:
        arrived.set()
        try:
            return await never(got)
        finally:
            gone.set()

    server.answer = waits
    call = asyncio.create_task(adapter.complete(REQUEST, deadline=60))
    await arrived.wait()
    call.cancel()

    with pytest.raises(asyncio.CancelledError):
        await call
    await asyncio.wait_for(gone.wait(), 1)


async def test_a_call_that_is_cancelled_in_its_answer(adapter: Adapter, server: FakeProvider) -> None:
    """So too when the answer has begun."""
    begun, gone = asyncio.Event(), asyncio.Event()

    async def starts(got: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(got)
        await response.write(b"{")
        begun.set()
        try:
            return await never(got)
        finally:
            gone.set()

    server.answer = starts
    call = asyncio.create_task(adapter.complete(REQUEST, deadline=60))
    await begun.wait()
    call.cancel()

    with pytest.raises(asyncio.CancelledError):
        await call
    await asyncio.wait_for(gone.wait(), 1)


async def test_an_endless_answer_is_cut_at_the_limit(adapter: Adapter, server: FakeProvider) -> None:
    """At most as many bytes as are taken are read, and a few that were on their way; no memory holds more."""
    sent = 0

    async def counts(got: web.Request) -> web.StreamResponse:
        nonlocal sent
        response = web.StreamResponse()
        await response.prepare(got)
        while True:
            await response.write(b" " * 65_536)
            sent += 65_536

    server.answer = counts

    failure = await failure_of(adapter)

    assert (failure.fault, failure.http_status) == (ProviderFault.TOO_LARGE, 200)
    assert "1,048,576 bytes" in str(failure)
    # The limit, and what the sockets of both ends hold.
    assert sent < (1 << 20) + 16 * (1 << 20)


async def test_a_length_over_the_limit_is_not_read(adapter: Adapter, server: FakeProvider) -> None:
    """300 megabytes that are announced end the call at once."""
    server.answer = writes(b"HTTP/1.1 200 OK\r\ncontent-length: 300000000\r\n\r\n{")

    assert (await failure_of(adapter)).fault is ProviderFault.TOO_LARGE


@pytest.mark.parametrize(
    ("status", "fault"),
    [
        (429, ProviderFault.RATE_LIMITED),
        (529, ProviderFault.OVERLOADED),
        (400, ProviderFault.REFUSED),
        (401, ProviderFault.REFUSED),
        (403, ProviderFault.REFUSED),
        (404, ProviderFault.REFUSED),
        (413, ProviderFault.REFUSED),
        (499, ProviderFault.REFUSED),
        (500, ProviderFault.ERROR),
        (502, ProviderFault.ERROR),
        (503, ProviderFault.ERROR),
        (504, ProviderFault.ERROR),
        (301, ProviderFault.ERROR),
        (304, ProviderFault.ERROR),
        (600, ProviderFault.ERROR),
        (201, ProviderFault.PROTOCOL),
        (204, ProviderFault.PROTOCOL),
    ],
)
async def test_each_status_is_one_fault(
    wire: Wire, adapter: Adapter, server: FakeProvider, status: int, fault: ProviderFault
) -> None:
    """Whatever is no 200 is a failure with its status, the id of the call and the time to wait; asked once."""
    headers = {"retry-after": "7", "request-id": "req_9", "x-request-id": "req_9"}
    server.answer = says(wire.error("No canary."), status=status, headers=headers)

    failure = await failure_of(adapter)

    found = (failure.fault, failure.http_status, failure.retry_after, failure.request_id)
    assert found == (fault, status, 7.0, "req_9")
    assert failure.said == (None if status in (204, 304) else "No canary.")
    assert "canary" not in str(failure)
    assert len(server.seen) == 1


async def test_overloaded_by_its_type(wire: Wire, adapter: Adapter, server: FakeProvider) -> None:
    """A 503 that says it is overloaded is the same as a 529."""
    server.answer = says(wire.error("Busy.", "overloaded_error"), status=503)

    assert (await failure_of(adapter)).fault is ProviderFault.OVERLOADED


async def test_an_echoed_key_is_not_passed_on(wire: Wire, adapter: Adapter, server: FakeProvider) -> None:
    """A provider that repeats the key it refuses: the words are kept without it."""
    server.answer = says(wire.error(f"Incorrect API key provided: {KEY.reveal()}. See the page."), status=401)

    failure = await failure_of(adapter)

    assert failure.said == "Incorrect API key provided: ***. See the page."
    assert str(failure) == (
        f"Provider '{wire.name}' refused the key (status 401): check HANGO_{wire.name.upper()}_API_KEY."
    )
    assert KEY.reveal() not in repr(failure)


async def test_a_key_in_the_id_of_a_call_is_not_passed_on(wire: Wire, adapter: Adapter, server: FakeProvider) -> None:
    """The id is stored beside the try and logged: a provider that repeats the key there has it taken out, too."""
    echo = {"request-id": f"req_{KEY.reveal()}"}
    server.answer = says(wire.answer("Hello."), headers=echo)
    answered = await adapter.complete(REQUEST, deadline=10)

    failures = []
    for answer in (
        says(wire.error("No."), status=400, headers=echo),
        says(wire.error("No."), headers=echo),
        says(b" " * (2 << 20), headers=echo),
        says(b"{}", headers=echo | {"content-encoding": "br"}),
    ):
        server.answer = answer
        failures.append(await failure_of(adapter))

    assert [answered.request_id, *(failure.request_id for failure in failures)] == ["req_***"] * 5


@pytest.mark.parametrize(
    "error",
    [
        packed({"error": {"message": "packed"}}, status=429),
        says(b"<html>busy</html>", status=429),
        says(b"", status=429),
        says(b" " * (MAX_ERROR_BYTES + 1), status=429),
        says({"error": {"message": 7}}, status=429),
        says({"error": ["a"]}, status=429),
        says([], status=429),
        writes(b"HTTP/1.1 429 Busy\r\ncontent-length: 100\r\n\r\n{"),
    ],
    ids=["packed", "html", "empty", "large", "number", "list", "array", "cut"],
)
async def test_an_error_whose_words_cannot_be_had(adapter: Adapter, server: FakeProvider, error: Answer) -> None:
    """The status says what happened, whatever stands in the body."""
    server.answer = error

    failure = await failure_of(adapter)

    assert (failure.fault, failure.http_status, failure.said) == (ProviderFault.RATE_LIMITED, 429, None)


async def test_an_error_that_hangs_in_its_words(adapter: Adapter, server: FakeProvider) -> None:
    """A 429 without the end of its body is a 429 at the deadline, no timeout: the call was not taken."""

    async def starts(got: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(status=429, headers={"retry-after": "3"})
        await response.prepare(got)
        return await never(got)

    server.answer = starts

    failure = await failure_of(adapter, deadline=DEADLINE)

    assert (failure.fault, failure.retry_after) == (ProviderFault.RATE_LIMITED, 3.0)


BAD_ANSWERS: dict[str, Any] = {
    "cut": hangs_up,
    "cut before it began": writes(),
    "cut in its headers": writes(b"HTTP/1.1 200 OK\r\ncontent-"),
    "no HTTP": writes(b"hello\r\n\r\n"),
    "bad chunk": writes(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n{}"),
    "two lengths": writes(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\ncontent-length: 5\r\n\r\n{}"),
    "endless header": writes(b"HTTP/1.1 200 OK\r\nx-a: " + b"a" * 1_000_000),
    "many headers": writes(b"HTTP/1.1 200 OK\r\n" + b"x-a: b\r\n" * 10_000),
    "empty": says(b""),
    "html": says(b"<html>"),
    "not UTF-8": says(b'{"content": "\xff\xfe"}'),
    "NaN": says(b'{"content": NaN}'),
    "twice": says(b'{"content":[],"content":[]}'),
    "deep": says(b"[" * 100_000),
    "null": says(None),
    "list": says([]),
    "empty object": says({}),
    "text": says("Hello."),
    "an error in a 200": says({"type": "error", "error": {"type": "overloaded_error", "message": "Busy."}}),
}


@pytest.mark.parametrize("answer", BAD_ANSWERS.values(), ids=BAD_ANSWERS)
async def test_an_answer_that_cannot_be_read(adapter: Adapter, server: FakeProvider, answer: Answer) -> None:
    """Cut, no HTTP, no JSON or another shape: `provider_protocol`, and no word of it in the sentence."""
    server.answer = answer

    failure = await failure_of(adapter)

    assert failure.fault is ProviderFault.PROTOCOL
    assert re.fullmatch(r"The answer of provider '\w+' (was cut or is no HTTP \(\w+\)|cannot be read)\.", str(failure))
    assert len(server.seen) == 1


async def test_a_packed_answer_is_refused(wire: Wire, adapter: Adapter, server: FakeProvider) -> None:
    """Packed bytes were not asked for, and a few of them may be many: they are not unpacked."""
    server.answer = packed(wire.answer("Hello."))

    failure = await failure_of(adapter)

    assert (failure.fault, str(failure)) == (
        ProviderFault.PROTOCOL,
        f"Provider '{wire.name}' packed its answer though it was asked not to.",
    )


async def test_the_words_of_an_error_in_a_200(wire: Wire, adapter: Adapter, server: FakeProvider) -> None:
    """Some servers say an error with status 200: it is no answer, and its words are kept."""
    server.answer = says(wire.error("No such model."), headers={"request-id": "req_2"})

    failure = await failure_of(adapter)

    found = (failure.fault, failure.http_status, failure.request_id, failure.said)
    assert found == (ProviderFault.PROTOCOL, 200, "req_2", "No such model.")


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_redirects_are_not_followed(adapter: Adapter, server: FakeProvider, status: int) -> None:
    """A redirect would carry the key and the content to another place: 0 requests get there."""
    async with fake_provider(says({})) as elsewhere:
        server.answer = says({}, status=status, headers={"location": elsewhere.url})

        failure = await failure_of(adapter)

        assert (failure.fault, failure.http_status) == (ProviderFault.ERROR, status)
        assert (len(server.seen), elsewhere.seen) == (1, [])


async def test_a_server_that_is_not_there(wire: Wire, http: Http) -> None:
    """Where nobody listens nothing was sent: `provider_unreachable`, and the sentence names the setting."""
    async with fake_provider(never) as gone:
        pass

    failure = await failure_of(wire.at(gone.url, http))

    assert (failure.fault, failure.http_status) == (ProviderFault.UNREACHABLE, None)
    assert f"HANGO_{wire.name.upper()}_BASE_URL" in str(failure)


async def test_a_connection_that_was_closed_in_between(wire: Wire, adapter: Adapter, server: FakeProvider) -> None:
    """A kept connection that ends before the first byte of an answer: the request is not sent a second time."""
    await adapter.complete(REQUEST, deadline=10)
    server.answer = writes()

    failure = await failure_of(adapter)

    assert failure.fault is ProviderFault.PROTOCOL
    assert len(server.seen) == 2
    server.answer = says(wire.answer("Hello again."))
    assert (await adapter.complete(REQUEST, deadline=10)).content[0].view.text == "Hello again."


async def test_a_flood_harms_no_other_call(wire: Wire, adapter: Adapter, server: FakeProvider) -> None:
    """While ten providers flood, another call is answered."""
    server.answer = floods
    flooded = [asyncio.create_task(failure_of(adapter)) for _ in range(10)]
    async with fake_provider(says(wire.answer("Hello."))) as calm:
        calm_http = Http()
        response = await wire.at(calm.url, calm_http).complete(REQUEST, deadline=10)
        await calm_http.close()

    assert response.content[0].view.text == "Hello."
    assert [failure.fault for failure in await asyncio.gather(*flooded)] == [ProviderFault.TOO_LARGE] * 10
