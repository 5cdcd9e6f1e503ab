"""The queue on a real Valkey: pick-up, poison, duplicates, a Redis that dies, hangs and comes back, the doorbell."""

from __future__ import annotations

import asyncio
import functools
import hashlib
import json
import os
import shutil
import signal
import socket
import statistics
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from redis import Redis

from hango.cli.embedded.valkey import EmbeddedValkey
from hango.config import Settings
from hango.config.values import SecretUrl
from hango.workers.broker import AWAY_SECONDS, RING_SECONDS, Doorbell, make_broker
from hango.workers.encoder import QUEUE, doorbell
from tests.faults.proxy import proxying, says
from tests.people import serve
from tests.services import Services
from tests.working import CountingPicker, Handled, eventually, left, logged, put, working

RING: dict[str, Any] = doorbell().asdict()
BATCH = 16


@pytest.fixture(scope="module")
def queue_url(services: Services) -> str:
    """A database of the run's Valkey in which no API of another test rings: reconcilers ring while anything waits."""
    worker = os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")
    return f"{services.redis_url}?db={15 - int(worker) % 8}"


@pytest.fixture
def redis(queue_url: str) -> Iterator[Redis]:
    """The worker's own Redis database, without a queue."""
    client = Redis.from_url(queue_url)
    client.flushdb()
    yield client
    client.close()


@pytest.fixture
def valkey() -> Iterator[EmbeddedValkey]:
    """One of this test alone, to be killed. It keeps nothing."""
    home = Path(tempfile.mkdtemp(prefix="hango-home-"))
    service = EmbeddedValkey(home, durable=False).start()
    yield service
    service.stop()
    shutil.rmtree(home)


async def test_an_idle_worker_is_woken_at_once(redis: Redis, queue_url: str) -> None:
    """Idle pick-up takes milliseconds: the consumer blocks in Redis instead of sleeping."""
    picker = CountingPicker()
    bell = Doorbell(queue_url)
    taken = []
    async with working(queue_url, picker):
        for number in range(1, 10):
            assert await eventually(lambda: waits(redis))
            started = time.perf_counter()
            await bell.ring()
            assert await eventually(functools.partial(picker.has_rung, number))
            taken.append(time.perf_counter() - started)
        assert await eventually(lambda: left(redis) == {})
    await bell.close()

    assert statistics.median(taken) < 0.05


def waits(redis: Redis) -> bool:
    """A worker is blocked in Redis, in this database."""
    number = str(redis.connection_pool.connection_kwargs.get("db", 0))
    return any(one["cmd"] == "blmove" and one["db"] == number for one in redis.client_list())


async def test_every_ring_arrives(redis: Redis, queue_url: str) -> None:
    """`ring(times)` puts so many doorbells; with every thread busy the rest wait, and nothing is left afterwards."""
    picker = CountingPicker(busy=0.02)
    bell = Doorbell(queue_url)
    async with working(queue_url, picker):
        await asyncio.gather(bell.ring(20), bell.ring(), bell.ring(0))

        assert await eventually(lambda: picker.rung >= 21 and left(redis) == {})
    await bell.close()
    assert picker.rung == 21


async def test_two_workers_share(redis: Redis, queue_url: str) -> None:
    """Both take doorbells, and each doorbell is taken by one."""
    pickers = [CountingPicker(busy=0.01), CountingPicker(busy=0.01)]
    bell = Doorbell(queue_url)
    async with working(queue_url, pickers[0]), working(queue_url, pickers[1]):
        await bell.ring(100)

        assert await eventually(lambda: left(redis) == {})
    await bell.close()
    assert sum(picker.rung for picker in pickers) == 100
    assert min(picker.rung for picker in pickers) > 0


async def test_duplicates_are_harmless(redis: Redis, queue_url: str) -> None:
    """The same message, many times, under one id and under many: each is a look, and none is left."""
    picker = CountingPicker()
    for name in ["one", "one", "one", "two"]:
        put(redis, ring("one"), name)
    async with working(queue_url, picker):
        assert await eventually(lambda: left(redis) == {})

    assert picker.rung >= 1


def ring(name: str, **changes: Any) -> bytes:
    return json.dumps(RING | {"options": {"redis_message_id": name}} | changes).encode()


POISON = [
    b"{nope",
    b"[1,2,3]",
    b"\xff\xfe",
    b"x" * 100_000,
    b'{"a":1}',
    b"null",
    b"NaN",
    b"[" * 2000,
    ring("elsewhere", queue_name="another"),
    ring("early", actor_name="a job of another version"),
]


@pytest.mark.parametrize("place", ["head", "middle", "tail"])
async def test_poison_does_not_touch_its_neighbours(place: str, redis: Redis, queue_url: str) -> None:
    """Ten kinds of poison in a batch of 16, with a restart: all good ones run, each poison is counted once, no thread
    dies, and nothing of a poison's content is logged."""
    good = [f"good {number}" for number in range(BATCH - len(POISON))]
    order = {"head": POISON + good, "middle": good[:3] + POISON + good[3:], "tail": good + POISON}[place]
    for number, one in enumerate(order):
        put(redis, *((ring(one), one) if isinstance(one, str) else (one, f"bad {number}")))
    handled, again = Handled(), Handled()
    with logged() as lines:
        async with working(queue_url, CountingPicker(), handled) as (worker, _):
            assert await eventually(lambda: left(redis) == {})
            alive = [thread.is_alive() for thread in [*worker.workers, *worker.consumers.values()]]
        async with working(queue_url, CountingPicker(), again):
            assert await eventually(lambda: left(redis) == {})

    told = reports(lines())
    assert sorted(one for one in handled.ids if one.startswith("good")) == good
    assert sorted(line["bytes"] for line in told) == sorted(len(one) for one in POISON)
    assert set(told[0]) == {"time", "level", "event", "process", "fingerprint", "bytes"}
    assert len({line["fingerprint"] for line in told}) == len(POISON)
    assert [line for line in lines() if line["event"] != "poison_message"] == []
    assert alive == [True] * len(alive)
    assert again.ids == []


async def test_a_message_that_lies_about_its_id_ends(redis: Redis, queue_url: str) -> None:
    """It is taken off the queue like any other, and does not come back for ever."""
    picker = CountingPicker()
    put(redis, ring("mine"), "another's")
    redis.rpush(f"hango:{QUEUE}", "without a body")
    async with working(queue_url, picker):
        assert await eventually(lambda: left(redis) == {})
        rung = picker.rung

    assert rung <= 3


@pytest.mark.parametrize(
    "name", ["tries", "tries.msgs", "tries.XQ", "__heartbeats__", "__acks__.{own}.tries", "__acks__.dead.tries"]
)
async def test_a_key_of_another_type_is_dropped_as_poison(name: str, redis: Redis, queue_url: str) -> None:
    """Whoever writes a string where the queue has another type stops no worker: the key is deleted, that is reported
    once like poison, and rings are taken again."""
    picker, bell = CountingPicker(), Doorbell(queue_url)
    with logged() as lines:
        async with working(queue_url, picker) as (_, broker):
            key = f"hango:{name.format(own=broker.broker_id)}"
            if "dead" in name:
                redis.zadd("hango:__heartbeats__", {"dead": 1})
            redis.set(key, "x" * 100)
            await bell.ring()
            assert await eventually(lambda: reports(lines()) != [] and redis.type(key) != b"string")
            assert await eventually(lambda: picker.rung > 0)
            before = picker.rung
            await bell.ring()
            assert await eventually(lambda: picker.rung > before and left(redis) == {})
    await bell.close()

    fingerprint = hashlib.sha256(key.encode()).hexdigest()[:16]
    assert [(one["fingerprint"], one["bytes"]) for one in reports(lines())] == [(fingerprint, len(key))]
    assert [one for one in lines() if one["event"] != "poison_message"] == []


def reports(lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [line for line in lines if line["event"] == "poison_message"]


async def test_what_a_dead_worker_had_fetched_is_looked_for_again(redis: Redis, queue_url: str) -> None:
    """A worker that died between fetch and ack costs at most its heartbeat: another takes over its doorbells."""
    dead = make_broker(queue_url)
    dead.enqueue(doorbell())
    assert len(dead.do_fetch(QUEUE, 1)) == 1
    # As if it had been silent for longer than is allowed.
    redis.zadd("hango:__heartbeats__", {dead.broker_id: 1})
    picker = CountingPicker()
    async with working(queue_url, picker):
        assert await eventually(lambda: picker.rung == 1 and left(redis) == {})
    dead.client.close()


async def test_a_worker_outlives_its_redis(valkey: EmbeddedValkey) -> None:
    """Redis killed and started again: the worker comes back by itself, within about a second, and says so once."""
    picker = CountingPicker()
    bell = Doorbell(valkey.url)
    with logged() as lines:
        async with working(valkey.url, picker):
            await bell.ring()
            assert await eventually(lambda: picker.rung == 1)
            assert valkey.pid is not None
            os.kill(valkey.pid, signal.SIGKILL)
            assert await eventually(lambda: [one for one in lines() if one.get("process") == "worker"] != [])
            before = time.process_time()
            await asyncio.sleep(3 * AWAY_SECONDS)  # the time to measure in
            busy = time.process_time() - before
            valkey.stop()
            valkey.start()
            back = time.monotonic()
            # Through a client of its own: the bell may still pause.
            ringing = make_broker(valkey.url)
            ringing.enqueue(doorbell())
            assert await eventually(lambda: picker.rung == 2)
            gone = time.monotonic() - back
            ringing.client.close()
        await bell.close()

    assert [line["event"] for line in lines() if line.get("process") == "worker"] == ["redis_away"]
    assert gone < 2.0
    assert busy < 1.0  # of a processor, in one and a half seconds


async def test_a_lost_reply_of_a_fetch_costs_one_ring(redis: Redis, services: Any, queue_url: str) -> None:
    """The reply is lost, and the connection with it: what Redis had handed out is looked for again, at once."""
    path = queue_url.removeprefix("unix://").partition("?")[0]
    number = queue_url.partition("db=")[2]
    async with proxying(path) as proxy:
        picker = CountingPicker()
        async with working(f"redis://127.0.0.1:{proxy.port}/{number}", picker):
            cut = proxy.cut(says(doorbell().actor_name.encode()))
            put(redis, ring("one"), "one")
            await cut.wait()

            assert await eventually(lambda: picker.rung == 1 and left(redis) == {})


async def test_a_dead_redis_holds_up_nobody(tmp_path: Path) -> None:
    """A ring at a Redis that is not there, or that takes connections and never answers, returns in time and raises
    nothing; it is logged once, and those behind it need not wait again."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        for url in (f"unix://{tmp_path}/none.sock", f"redis://127.0.0.1:{silent.getsockname()[1]}/0"):
            bell = Doorbell(url)
            with logged() as lines:
                started = time.monotonic()
                await asyncio.gather(*(bell.ring() for _ in range(50)))
                taken = time.monotonic() - started
            await bell.close()

            assert taken < RING_SECONDS
            assert [line["event"] for line in lines()] == ["redis_away"]


async def test_a_try_is_accepted_while_redis_is_silent(settings: Settings) -> None:
    """A POST answers 202 in less than two and a half seconds with a Redis that takes connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = SecretUrl(f"redis://127.0.0.1:{silent.getsockname()[1]}/0")
        async with serve(replace(settings, redis_url=url)) as api:
            person = await api.admin()
            session = await person.session((await person.agent())["id"], messages=[{"role": "user", "content": "Hi."}])
            taken = []
            for _ in range(3):
                started = time.monotonic()
                reply = await person.post(f"/v1/sessions/{session['id']}/context/try", json={})
                taken.append(time.monotonic() - started)
                assert reply.status_code == 202, reply.text

    assert max(taken) < 2.5


async def test_passwords_and_numbers_of_databases(valkey: EmbeddedValkey) -> None:
    """An address may name a database and a password, of a socket as of a host."""
    with Redis.from_url(valkey.url) as admin:
        admin.config_set("requirepass", "a+b c")
    wrong, right = f"{valkey.url}?db=3", f"{valkey.url}?db=3&password=a%2Bb%20c"
    picker = CountingPicker()
    for url, rung in ((wrong, 0), (right, 1)):
        bell = Doorbell(url)
        await bell.ring()
        await bell.close()
        with Redis.from_url(right) as look:
            assert look.llen(f"hango:{QUEUE}") == rung
    async with working(right, picker):
        assert await eventually(lambda: picker.rung == 1)


async def test_a_worker_that_ends_hands_back_what_it_had_not_begun(redis: Redis, queue_url: str) -> None:
    """Doorbells that no thread had taken yet are for the next worker."""
    slow = CountingPicker(busy=1.0)
    bell = Doorbell(queue_url)
    async with working(queue_url, slow):
        await bell.ring(12)
        assert await eventually(lambda: slow.rung == 4)
    begun = slow.rung
    assert left(redis) == {"waiting": 12 - begun, "bodies": 12 - begun}
    picker = CountingPicker()
    async with working(queue_url, picker):
        assert await eventually(lambda: left(redis) == {})
    await bell.close()
    assert begun + picker.rung == 12
