"""Long waits: woken by the commit, never polling, leaving nothing behind."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from statistics import median
from time import perf_counter
from typing import Any
from uuid import UUID, uuid4

import httpx2
import psycopg
import pytest
import uvicorn
from psycopg import AsyncConnection
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from hango.api import waiters as module
from hango.api import waiting
from hango.api.waiters import Waiters
from hango.domain import KeyID
from hango.store.connection import Store
from tests.conftest import Database
from tests.integration.test_notifications import proxied

KEY = KeyID(UUID(int=1))
LONG = 60.0  # seconds; nothing here waits for so long
STEP_SECONDS = 20


async def never() -> None:
    """A client that stays."""
    await asyncio.Event().wait()


def is_ended(state: str) -> bool:
    return state == "ended"


@dataclass
class Things:
    """A table whose rows end, as tries do: the change and its notification are one transaction."""

    store: Store
    conn: AsyncConnection[Any]
    looks: int = 0
    _looked: asyncio.Event = field(default_factory=asyncio.Event)

    async def make(self) -> UUID:
        id = uuid4()
        await self.conn.execute("insert into things values (%s, 'running')", (id,))
        await self.conn.commit()
        return id

    async def end(self, id: UUID, *, commit: bool = True) -> None:
        await self.conn.execute("update things set state = 'ended' where id = %s", (id,))
        await self.conn.execute("select pg_notify('done', %s)", (str(id),))
        if commit:
            await self.conn.commit()

    async def look(self, id: UUID) -> str:
        async with self.store.system() as scope:
            cursor = await scope.conn.execute("select state from things where id = %s", (id,))
            row = await cursor.fetchone()
        assert row
        self.looks += 1
        self._looked.set()
        return str(row[0])

    async def looked(self, times: int) -> None:
        """Until somebody has looked so often, and has seen what there is."""
        async with asyncio.timeout(STEP_SECONDS):
            while self.looks < times:
                self._looked.clear()
                await self._looked.wait()


@pytest.fixture
async def things(fresh_database: Database) -> AsyncIterator[Things]:
    with psycopg.connect(fresh_database.superuser_dsn) as conn:
        conn.execute("create table things (id uuid primary key, state text)")
        conn.execute("grant all on things to hango_app, hango_system")
    store = await Store.open(fresh_database.app_dsn)
    speaker = await AsyncConnection.connect(fresh_database.app_dsn)
    yield Things(store, speaker)
    await speaker.close()
    await store.close()


@asynccontextmanager
async def opened(url: str, **bounds: int) -> AsyncIterator[Waiters]:
    """Waiters of which nothing is left after the test."""
    waiters = await Waiters.open(url, **bounds)
    yield waiters
    await asyncio.sleep(0)  # what was cancelled ends in the next round of the loop
    assert [task for task in asyncio.all_tasks() if task.get_name() == "client"] == []
    assert (len(waiters), waiters._by_id, dict(waiters._of_key)) == (0, {}, {})
    await waiters.close()


@pytest.fixture
async def waiters(fresh_database: Database) -> AsyncIterator[Waiters]:
    async with opened(fresh_database.app_dsn) as found:
        yield found


def start(
    waiters: Waiters,
    things: Things,
    id: UUID,
    *,
    seconds: float = LONG,
    key: KeyID = KEY,
    gone: module.Gone = never,
) -> asyncio.Task[str]:
    made: Coroutine[Any, Any, str] = waiters.wait(
        id, key, lambda: things.look(id), is_ended, seconds=seconds, gone=gone
    )
    return asyncio.create_task(made)


async def result(task: asyncio.Task[str]) -> str:
    async with asyncio.timeout(STEP_SECONDS):
        return await task


async def test_it_is_woken_by_the_commit_and_not_before_it(waiters: Waiters, things: Things) -> None:
    """A waiter is woken by the commit: it looks once at the start and once at the end, and never between."""
    mine, other = await things.make(), await things.make()
    waiting = start(waiters, things, mine)
    neighbour = start(waiters, things, other)
    await things.looked(2)

    await things.end(other)
    assert await result(neighbour) == "ended"
    await things.end(mine, commit=False)
    assert not waiting.done()
    assert things.looks == 3
    await things.conn.commit()

    assert await result(waiting) == "ended"
    assert things.looks == 4


async def test_what_has_ended_is_answered_at_once(waiters: Waiters, things: Things) -> None:
    """Nobody waits for what is there, nor who does not ask to wait: one look is the answer."""
    ended, running = await things.make(), await things.make()
    await things.end(ended)

    assert await result(start(waiters, things, ended)) == "ended"
    assert await result(start(waiters, things, running, seconds=0)) == "running"
    assert things.looks == 2


async def test_an_end_between_the_look_and_its_answer_is_not_missed(waiters: Waiters, things: Things) -> None:
    """The waiter is registered before it looks: a commit just after what it sees wakes it."""
    id = await things.make()

    async def look() -> str:
        found = await things.look(id)
        if things.looks == 1:
            await things.end(id)
            await things.store.ping()
        return found

    waiting = asyncio.create_task(waiters.wait(id, KEY, look, is_ended, seconds=LONG, gone=never))
    assert await result(waiting) == "ended"
    assert things.looks == 2


async def test_when_the_time_is_over_it_says_how_things_are_then(waiters: Waiters, things: Things) -> None:
    """A wait that ends without an end answers with the state of that moment, not of its beginning."""
    id = await things.make()
    waiting = start(waiters, things, id, seconds=0.2)
    await things.looked(1)
    await things.conn.execute("update things set state = 'going on' where id = %s", (id,))
    await things.conn.commit()

    assert await result(waiting) == "going on"
    assert things.looks == 2


async def test_all_look_again_after_a_reconnection(fresh_database: Database, things: Things) -> None:
    """What ended while the listener was away is found when it is back, without a notification."""
    ended, running = await things.make(), await things.make()
    async with proxied(fresh_database) as (proxy, url), opened(url) as waiters:
        waiting, other = start(waiters, things, ended), start(waiters, things, running)
        await things.looked(2)
        await proxy.refuse()
        await things.end(ended)
        await proxy.accept()
        assert await result(waiting) == "ended"
        await things.looked(4)
        assert not other.done()
        await things.end(running)
        assert await result(other) == "ended"


async def test_500_wait_and_200_leave(waiters: Waiters, things: Things) -> None:
    """500 waiters on one process: 200 go away and are gone at once, 300 get their answers; nobody polls."""
    ids = [await things.make() for _ in range(500)]
    door = asyncio.Event()

    async def leaves() -> None:
        await door.wait()

    waiting = [
        start(waiters, things, id, key=KeyID(UUID(int=n % 3)), gone=leaves if n < 200 else never)
        for n, id in enumerate(ids)
    ]
    await things.looked(500)
    assert len(waiters) == 500
    door.set()
    left = await asyncio.gather(*waiting[:200], return_exceptions=True)
    assert len(waiters) == 300
    late = []
    for id, task in zip(ids[200:], waiting[200:], strict=True):
        await things.end(id)
        started = perf_counter()
        assert await result(task) == "ended"
        late.append(perf_counter() - started)

    assert {type(one) for one in left} == {ClientDisconnect}
    assert things.looks == 500 + 300
    # A few milliseconds on an idle machine; a poll would show as the half of its interval.
    assert median(late) < 0.1


async def test_many_wait_for_one(waiters: Waiters, things: Things) -> None:
    """Everybody who waits for the same thing is woken, and asks with their own eyes."""
    id = await things.make()
    waiting = [start(waiters, things, id) for _ in range(50)]
    await things.looked(50)
    await things.end(id)

    assert [await result(one) for one in waiting] == ["ended"] * 50
    assert things.looks == 100


async def test_those_who_are_woken_together_look_a_few_at_a_time(waiters: Waiters) -> None:
    """However many wait for one end, they leave connections for other requests, and none of them is turned away."""
    door, states, looking = asyncio.Event(), ["running"], [0, 0]

    async def look() -> str:
        looking[0] += 1
        looking[1] = max(looking)
        try:
            await door.wait()
            return states[0]
        finally:
            looking[0] -= 1

    id = uuid4()
    door.set()
    waiting = [asyncio.create_task(waiters.wait(id, KEY, look, is_ended, seconds=LONG, gone=never)) for _ in range(50)]
    while len(waiters) < 50 or looking[0]:  # noqa: ASYNC110  a few rounds of the loop
        await asyncio.sleep(0)
    door.clear()
    states[0], looking[1] = "ended", 0
    waiters.wake_all()
    while looking[0] < module.LOOKS_AT_ONCE:  # noqa: ASYNC110
        await asyncio.sleep(0)
    door.set()

    assert [await result(one) for one in waiting] == ["ended"] * 50
    assert looking == [0, module.LOOKS_AT_ONCE]


async def test_over_a_bound_it_answers_at_once(fresh_database: Database, things: Things) -> None:
    """1,000 waiters a process and 200 a key: over that the request looks once and is answered."""
    assert (module.MOST_WAITERS, module.MOST_WAITERS_OF_A_KEY) == (1000, 200)
    id = await things.make()
    first, second = KeyID(uuid4()), KeyID(uuid4())
    async with opened(fresh_database.app_dsn, most=5, most_of_a_key=3) as waiters:
        waiting = [start(waiters, things, id, key=key) for key in (first, first, first, second, second)]
        await things.looked(5)

        assert await result(start(waiters, things, id, key=first)) == "running"
        assert await result(start(waiters, things, id, key=second)) == "running"
        assert len(waiters) == 5
        await things.end(id)
        assert [await result(one) for one in waiting] == ["ended"] * 5
    assert things.looks == 5 + 2 + 5


async def test_the_end_of_the_process_releases_everybody(waiters: Waiters, things: Things) -> None:
    """When the process is told to end, everybody who waits and who still comes is answered with what there is."""
    id = await things.make()
    waiting = [start(waiters, things, id) for _ in range(20)]
    await things.looked(20)
    waiters.release()

    assert [await result(one) for one in waiting] == ["running"] * 20
    assert things.looks == 20
    assert await result(start(waiters, things, id)) == "running"


async def test_a_failing_look_and_a_cancelled_wait_leave_nothing(waiters: Waiters, things: Things) -> None:
    """However a wait ends, it leaves no task and no entry."""
    id = await things.make()

    async def fails() -> str:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await waiters.wait(id, KEY, fails, is_ended, seconds=LONG, gone=never)
    waiting = start(waiters, things, id)
    await things.looked(1)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting

    assert len(waiters) == 0


@asynccontextmanager
async def served(waiters: Waiters, things: Things, ended: asyncio.Queue[str]) -> AsyncIterator[str]:
    """A server whose requests wait for the thing they name; `ended` tells how each of them came to its end."""

    async def show(request: Request) -> Response:
        id = UUID(request.path_params["id"])
        if request.method == "POST":
            await request.body()
        try:
            found = await waiters.wait(
                id, KEY, lambda: things.look(id), is_ended, seconds=LONG, gone=waiting.leaving(request)
            )
        except ClientDisconnect:
            ended.put_nowait("gone")
            raise
        ended.put_nowait(found)
        return PlainTextResponse(found)

    async def app(scope: Any, receive: Any, send: Any) -> None:
        try:
            await Starlette(routes=[Route("/{id}", show, methods=["GET", "POST"])])(scope, receive, send)
        except ClientDisconnect:
            assert scope["type"] == "http"

    config = uvicorn.Config(app, log_config=None, access_log=False, lifespan="off")
    server = uvicorn.Server(config)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        serving = asyncio.create_task(server.serve(sockets=[listener]))
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        server.should_exit = True
        await serving


@pytest.mark.parametrize("method", ["GET", "POST"])
async def test_a_client_that_goes_away_ends_its_wait(waiters: Waiters, things: Things, method: str) -> None:
    """Over HTTP: a client that closes its connection leaves nothing behind; others are answered."""
    id, ended = await things.make(), asyncio.Queue[str]()
    async with (
        asyncio.timeout(STEP_SECONDS),
        served(waiters, things, ended) as url,
        httpx2.AsyncClient(timeout=STEP_SECONDS, trust_env=False) as stays,
    ):
        answer = asyncio.create_task(stays.request(method, f"{url}/{id}", content=b"{}"))
        await things.looked(1)
        async with httpx2.AsyncClient(timeout=STEP_SECONDS, trust_env=False) as leaves:
            left = asyncio.create_task(leaves.request(method, f"{url}/{id}", content=b"{}"))
            await things.looked(2)
            left.cancel()
            await asyncio.gather(left, return_exceptions=True)
        first = await ended.get()
        others = len(waiters)
        await things.end(id)
        reply = await answer

    assert (first, others, ended.get_nowait()) == ("gone", 1, "ended")
    assert (reply.status_code, reply.text) == (200, "ended")
