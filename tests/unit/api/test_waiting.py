"""How a request asks to wait: the Prefer header, the query, and whether its client is still there."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.requests import ClientDisconnect, Request

from hango.api import bodies, waiting
from hango.api.waiting import WaitQuery, Wish, preferred_wait
from hango.errors import Invalid

MOST = 60.0
STAYS = "stays"  # of a client that waits the server says nothing


def request(*prefer: str, query: str = "", messages: tuple[str, ...] = ()) -> Request:
    """A request with these Prefer headers; its server tells these messages, one a call."""
    told = iter(messages)

    async def receive() -> dict[str, Any]:
        message = next(told)
        if message == STAYS:
            await asyncio.Event().wait()
        return {"type": message, "body": b"", "more_body": False}

    headers = [(b"prefer", one.encode("latin-1")) for one in prefer]
    scope = {"type": "http", "method": "GET", "path": "/", "query_string": query.encode(), "headers": headers}
    return Request(scope, receive)


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        (["wait=30"], 30),
        (["wait=0"], 0),
        (["WAIT=30"], 30),
        (['wait="30"'], 30),
        (["wait = 30"], 30),
        (["\twait\t=\t30\t"], 30),
        (["wait=030"], 30),
        (["wait=30; strict=yes"], 30),
        (["wait=30;"], 30),
        (["respond-async, wait=30"], 30),
        (["return=minimal; wait=5, wait=30"], 30),
        (['handling="wait=5, wait=6", wait=30'], 30),
        ([r'handling="a\", wait=5", wait=30'], 30),
        (["respond-async", "wait=30"], 30),
        (["wait=30", "wait=5"], 30),
        (["wait=30, wait=5"], 30),
        (["wait=" + "9" * 5000], 999_999_999),
        ([", ,wait=30,,"], 30),
        ([], None),
        ([""], None),
        (["respond-async"], None),
        (["wait"], None),
        (["wait="], None),
        (['wait=""'], None),
        (["wait=soon"], None),
        (["wait=-1"], None),
        (["wait=1.5"], None),
        (["wait=\xb2"], None),
        (["wait=1_0"], None),
        (["wait=30 seconds"], None),
        (["waiting=30"], None),
        (["wait=soon, wait=30"], None),
        (['handling="wait=5'], None),
        (['"wait=30"'], None),
        (["=30, ;wait=30"], None),
    ],
)
def test_the_first_wait_of_the_header_counts(headers: list[str], seconds: int | None) -> None:
    """RFC 7240: lists, quotes, parameters, letters of any case, repeated headers; the first of a name counts, and what
    is not understood is passed over."""
    assert preferred_wait(headers) == seconds


@given(st.lists(st.text(st.sampled_from('wait=0123456789",;\\ \t\xe9')), max_size=4))
def test_no_header_is_refused(headers: list[str]) -> None:
    """Garbage is ignored, whatever it is."""
    found = preferred_wait(headers)

    assert found is None or 0 <= found <= 999_999_999


def test_a_long_header_is_read_in_one_pass() -> None:
    """The work grows with the length alone: 60,000 quotes and backslashes are nothing."""
    assert preferred_wait(['\\"' * 30_000, '"\\' * 30_000, "wait" * 15_000, "wait=" + " " * 60_000]) is None


@pytest.mark.parametrize(
    ("asked", "found", "told"),
    [
        (request(), Wish(0), {}),
        (request("wait=30"), Wish(30, is_preference=True), {"Preference-Applied": "wait=30"}),
        (request("wait=3600"), Wish(60, is_preference=True), {"Preference-Applied": "wait=60"}),
        (request(query="wait=30"), Wish(30), {}),
        (request(query="wait=999999999999999999"), Wish(60), {}),
        (request("wait=30", query="wait=5"), Wish(5), {}),
        (request("wait=30", query="wait=0"), Wish(0), {}),
    ],
)
def test_a_wish_is_kept_within_the_bound(asked: Request, found: Wish, told: dict[str, str]) -> None:
    """The query counts before the header; both end at HANGO_LONG_WAIT_MAX; a followed preference is told."""
    wish = waiting.wish(asked, bodies.read_query(asked, WaitQuery), MOST)

    assert (wish, wish.headers()) == (found, told)


def test_a_route_without_the_query_takes_the_header() -> None:
    """A POST asks by the header alone."""
    assert waiting.wish(request("wait=7", query="wait=5"), None, MOST) == Wish(7, is_preference=True)


@pytest.mark.parametrize("written", ["-1", "1.5", "soon", "", "\u0661", "1e3", "9" * 30])
def test_a_wait_that_is_no_number_is_refused(written: str) -> None:
    """A query parameter that hango knows is whole seconds in decimal digits, from 0."""
    with pytest.raises(Invalid):
        bodies.read_query(request(query=f"wait={written}".encode().decode("latin-1")), WaitQuery)


async def test_the_client_is_there_until_the_server_says_so() -> None:
    """What still comes of a body is no sign that the client went away."""
    asked = request(messages=("http.request", "http.request", "http.disconnect"))
    await waiting.leaving(asked)()

    with pytest.raises(RuntimeError):  # every message was asked for, and none after the last
        await asked.receive()


async def test_work_is_done_while_its_client_is_there() -> None:
    """What work gives or raises is passed on, and no task of it is left."""

    async def gives() -> int:
        await asyncio.sleep(0)
        return 7

    async def fails() -> int:
        raise ZeroDivisionError

    here = request(messages=(STAYS,))
    given = await waiting.while_there(here, gives(), MOST)
    with pytest.raises(ZeroDivisionError):
        await waiting.while_there(request(messages=(STAYS,)), fails(), MOST)

    assert given == 7
    assert asyncio.all_tasks() == {asyncio.current_task()}


@pytest.mark.parametrize(
    ("messages", "seconds", "error"),
    [(("http.disconnect",), MOST, ClientDisconnect), (("http.request", "http.disconnect"), MOST, ClientDisconnect),
     ((STAYS,), 0.01, TimeoutError)],
    ids=["gone", "gone after a word", "late"],
)  # fmt: skip
async def test_work_for_nobody_is_cancelled(messages: tuple[str, ...], seconds: float, error: type[Exception]) -> None:
    """When the client goes away or the time is over, the work ends before the error comes."""
    ended = asyncio.Event()

    async def works() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    with pytest.raises(error):
        await waiting.while_there(request(messages=messages), works(), seconds)

    assert ended.is_set()
    assert asyncio.all_tasks() == {asyncio.current_task()}
