"""What providers, clients and whoever writes to the queue may do to tries: the whole product holds, in time."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

import aiohttp
import psutil
import pytest
from aiohttp import web

from hango.cli.embedded.process import wait_until
from hango.workers.encoder import doorbell
from tests.cases.try_steps import put_message
from tests.cases.try_world import ENDED, SECONDS, TryWorld, in_its_words
from tests.cases.world import Person, Server, a_server, two_tenants
from tests.picking import in_turn
from tests.providers_server import (
    Answer,
    crawls,
    drips,
    floods,
    hangs_up,
    message,
    never,
    packed,
    says,
    writes,
)
from tests.working import left

MODEL = "anthropic/claude-sonnet-4-5"
LIMIT = 1.5
MOST_MIB = 10.0
BOMB = packed({"content": "x" * 50_000_000})
ELSEWHERE = {"location": "http://127.0.0.1:1/elsewhere"}
NEGATIVE = message("Yes.", input_tokens=-5)


async def announces_much(request: web.Request) -> web.StreamResponse:
    """A length of 300 MB, and bytes as long as anybody takes them."""
    response = web.StreamResponse(headers={"content-length": str(300_000_000)})
    await response.prepare(request)
    for _ in range(4000):
        await response.write(b" " * 65_536)
    return response


# What a provider does, and how the try ends: status, code, whether it may have been charged for.
PROVIDERS: Mapping[str, tuple[Answer, str, str | None, bool]] = {
    "hangs": (never, "timed_out", "timeout", True),
    "drips": (drips, "timed_out", "timeout", True),
    "crawls": (crawls, "timed_out", "timeout", True),
    "floods": (floods, "failed", "response_too_large", True),
    "announces-much": (announces_much, "failed", "response_too_large", True),
    "packs-a-bomb": (BOMB, "failed", "provider_protocol", True),
    "is-cut": (hangs_up, "failed", "provider_protocol", True),
    "says-nothing": (writes(), "failed", "provider_protocol", True),
    "is-no-http": (writes(b"SSH-2.0-other\r\n"), "failed", "provider_protocol", True),
    "is-no-json": (says(b"{nope"), "failed", "provider_protocol", True),
    "is-deep-json": (says(b"[" * 100_000), "failed", "provider_protocol", True),
    "has-negative-usage": (says(NEGATIVE), "succeeded", None, True),
    "redirects": (says({}, status=307, headers=ELSEWHERE), "failed", "provider_error", False),
    "fails": (says({}, status=500), "failed", "provider_error", False),
    "refuses": (says({"error": {"message": "No."}}, status=400), "failed", "provider_refused", False),
    "answers": (in_its_words("In drawer 4."), "succeeded", None, False),
}
PATIENCE = {"late": "-1", "no-time": "yesterday", "past": "Wed, 21 Oct 2015 07:28:00 GMT", "second": "1", "none": None}


def by_word(answers: Mapping[str, Answer]) -> Answer:
    """Each behaves as its own message says."""

    async def answer(request: web.Request) -> web.StreamResponse:
        said = json.dumps((await request.json())["messages"][-1])
        (word,) = [word for word in answers if f"Please: {word}." in said]
        return await answers[word](request)

    return answer


@pytest.fixture
def owner(try_world: TryWorld) -> Person:
    """The admin of a tenant of this test alone."""
    return asyncio.run(two_tenants(try_world.database))[0]


def a_session(world: TryWorld, owner: Person) -> str:
    agent = {"name": "stock", "model": MODEL, "builtin": [], "max_output_tokens": 100}
    agent_id = owner.make(world.server, "/v1/agents", agent)["id"]
    messages = [{"role": "user", "content": "Where are the nuts?"}]
    return str(owner.make(world.server, "/v1/sessions", {"agent_id": agent_id, "messages": messages})["id"])


def batch_of(server: Server, owner: Person, session_id: str, words: list[str], repeats: int = 1) -> dict[str, Any]:
    body = {"variants": [{"label": word, "message": f"Please: {word}."} for word in words], "repeats": repeats}
    return owner.make(server, f"/v1/sessions/{session_id}/context/try-batches", body)


def until_done(server: Server, owner: Person, batch_id: str) -> list[dict[str, Any]]:
    """The tries of a batch that has ended."""
    end = time.monotonic() + 60
    while not (batch := owner.send(server, "GET", f"/v1/try-batches/{batch_id}?wait=10").json())["finished_at"]:
        assert time.monotonic() < end, batch
    tries = owner.send(server, "GET", f"/v1/try-batches/{batch_id}/tries?limit=500").raise_for_status().json()
    return list(tries["data"])


@pytest.fixture
def hasty(try_world: TryWorld) -> Iterator[Server]:
    """An API on the same database whose tries have little time."""
    little = {"HANGO_CONTEXT_TRY_TIMEOUT": f"{LIMIT}s"}
    folder = try_world.folder / f"hasty{time.monotonic_ns()}"
    with a_server(try_world.settings, try_world.environment | little, folder) as server:
        yield server


def test_whatever_providers_do_tries_end_in_time(try_world: TryWorld, owner: Person, hasty: Server) -> None:
    """Hang, drip, slow headers, floods, a gzip bomb, a cut, no JSON, redirects, all at once: the right end and code,
    within the limit and half a second, one call each, nothing else fetched, and the worker takes no memory for it."""
    session_id = a_session(try_world, owner)
    try_world.answers(by_word({word: answer for word, (answer, *_) in PROVIDERS.items()}))
    until_done(hasty, owner, batch_of(hasty, owner, session_id, ["answers"], repeats=16)["id"])
    asked, before = len(try_world.calls()), rss_mib(try_world)

    batch = batch_of(hasty, owner, session_id, list(PROVIDERS))
    ended = {one["label"]: one for one in until_done(hasty, owner, batch["id"])}

    ends = {word: (one["status"], (one["error"] or {}).get("code")) for word, one in ended.items()}
    assert ends == {word: (status, code) for word, (_, status, code, _) in PROVIDERS.items()}
    assert {word for word, one in ended.items() if one["usage"]["estimated"]} == {
        word for word, (*_, charged) in PROVIDERS.items() if charged
    }
    assert {word: seconds_of(one) for word, one in ended.items() if seconds_of(one) > LIMIT + 0.5} == {}
    assert len(try_world.calls()) - asked == len(PROVIDERS)
    assert rss_mib(try_world) - before < MOST_MIB
    me = owner.send(hasty, "GET", "/v1/me").json()["tenant"]
    assert me["quota_reserved"] == 0


def rss_mib(world: TryWorld) -> float:
    assert world.worker.pid is not None
    return float(psutil.Process(world.worker.pid).memory_info().rss) / 2**20


def seconds_of(made: dict[str, Any]) -> float:
    """From the claim to the end."""
    began, ended = (datetime.fromisoformat(made[key]) for key in ("started_at", "finished_at"))
    return (ended - began).total_seconds()


def test_a_provider_that_takes_no_call_is_asked_again_when_it_says(try_world: TryWorld, owner: Person) -> None:
    """429 with a Retry-After that is negative, past, no time or not there: asked again once, answered, paid once."""
    try_world.answers(by_word({word: twice(after) for word, after in PATIENCE.items()}))
    session_id = a_session(try_world, owner)
    batch = batch_of(try_world.server, owner, session_id, list(PATIENCE))
    ended = until_done(try_world.server, owner, batch["id"])

    assert sorted(one["label"] for one in ended) == sorted(PATIENCE)
    assert {(one["status"], one["attempts"]) for one in ended} == {("succeeded", 2)}
    assert len(bills_of(try_world, session_id)) == len(ended)


def twice(after: str | None) -> Answer:
    """A 429 with that Retry-After, then an answer."""
    headers = {} if after is None else {"retry-after": after}
    return in_turn(says({}, status=429, headers=headers), in_its_words("In drawer 4."))


def bills_of(world: TryWorld, session_id: str) -> list[dict[str, Any]]:
    return world.rows("select try_id, estimated from usage_records where session_id = %s", session_id)


POISON = [
    b"{nope",
    b"[1,2,3]",
    b"\xff\xfe",
    b"x" * 100_000,
    b'{"a":1}',
    b"null",
    b"NaN",
    b"[" * 2000,
    doorbell().copy(queue_name="elsewhere", options={"redis_message_id": "elsewhere"}).encode(),
    doorbell().copy(actor_name="old", options={"redis_message_id": "old"}).encode(),
]


def test_poison_in_the_queue_stops_no_try(try_world: TryWorld, owner: Person) -> None:
    """Ten kinds of poison among the doorbells, before and after a restart: every try is answered, every poison is
    counted once, and nothing of it is logged or left."""
    session_id, counted = a_session(try_world, owner), poisoned(try_world)
    for _ in range(2):
        for number, one in enumerate(POISON):
            put_message(try_world, one, f"poison {number}")
        batch = batch_of(try_world.server, owner, session_id, ["answer"], repeats=16)
        ended = until_done(try_world.server, owner, batch["id"])
        assert [one["status"] for one in ended] == ["succeeded"] * 16
        assert wait_until(lambda: left(try_world.redis) == {}, SECONDS), left(try_world.redis)
        try_world.worker.stop()
        try_world.worker.start()

    assert wait_until(lambda: poisoned(try_world) - counted == 2 * len(POISON), SECONDS), poisoned(try_world) - counted
    assert "xxxxxxxxxx" not in try_world.worker.log_file.read_text()


def poisoned(world: TryWorld) -> int:
    return world.worker.log_file.read_text().count('"poison_message"')


def test_duplicate_doorbells_cause_one_call_each(try_world: TryWorld, owner: Person) -> None:
    """100 tries, each rung for eleven times, and ten doorbells delivered again: 100 calls, 100 bills."""
    session_id = a_session(try_world, owner)
    batch = batch_of(try_world.server, owner, session_id, ["one", "two", "three", "four"], repeats=25)
    for number in range(1000):
        put_message(try_world, doorbell().encode(), f"again {number}")
    for number in range(10):
        put_message(try_world, doorbell().encode(), f"again {number}")
    ended = until_done(try_world.server, owner, batch["id"])
    assert wait_until(lambda: left(try_world.redis) == {}, SECONDS), left(try_world.redis)

    assert ([one["status"] for one in ended], len(try_world.calls())) == (["succeeded"] * 100, 100)
    bills = bills_of(try_world, session_id)
    assert sorted(str(one["try_id"]) for one in bills) == sorted(one["id"] for one in ended)
    assert {one["attempts"] for one in ended} == {1}


WAITERS = 500
LEAVING = 100
# A wait is 50 s: nobody is answered by its end. What it takes with the machine to itself is a figure of `./dev faults`.
MOST_DELAY = 10.0


async def test_500_requests_wait_and_are_woken(try_world: TryWorld) -> None:
    """500 requests wait on one process, 100 of them go away; the others are answered by the commit of their try, and
    the process serves others meanwhile."""
    people = [await asyncio.to_thread(lambda: asyncio.run(two_tenants(try_world.database))[0]) for _ in range(4)]
    opened = threading.Event()

    async def answer(request: web.Request) -> web.StreamResponse:
        """Held back until the test says so; this runs in another thread's loop."""
        while not opened.is_set():  # noqa: ASYNC110
            await asyncio.sleep(0.02)
        return await in_its_words("In drawer 4.")(request)

    try_world.answers(answer)
    waited = []
    for one in people:
        session_id = await asyncio.to_thread(a_session, try_world, one)
        batch = await asyncio.to_thread(batch_of, try_world.server, one, session_id, list("abcde"), 5)
        waited += [(one, id) for variant in batch["variants"] for id in variant["tries"]]
    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(try_world.server.url, connector=connector) as client:

        async def wait(person: Person, id: str) -> tuple[dict[str, Any], float]:
            headers = {"Authorization": f"Bearer {person.key}"}
            async with client.get(f"/v1/tries/{id}?wait=50", headers=headers) as reply:
                body = await reply.read()
                at = time.time()
            return json.loads(body), at

        asked = [asyncio.create_task(wait(*waited[n % len(waited)])) for n in range(WAITERS)]
        assert await asyncio.to_thread(wait_until, lambda: connections(try_world) >= WAITERS, SECONDS)
        for leaving in asked[:LEAVING]:
            leaving.cancel()
        async with client.get("/readyz") as alive:
            assert alive.status == 200
        opened.set()
        answered = await asyncio.gather(*asked[LEAVING:])
    delays = sorted(at - ended_at(made) for made, at in answered)
    assert {made["status"] for made, _ in answered} == {"succeeded"}
    assert len(answered) == WAITERS - LEAVING
    assert delays[-1] < MOST_DELAY, delays[-10:]


def connections(world: TryWorld) -> int:
    """Open ones to the API."""
    port = int(world.server.url.rpartition(":")[2])
    return sum(one.raddr[1:] == (port,) for one in psutil.Process().net_connections("tcp"))


def ended_at(made: Any) -> float:
    assert made["status"] in ENDED
    return datetime.fromisoformat(made["finished_at"]).timestamp()
