"""Tries through stops and absences: a worker told to end, none at all, an empty Redis, one that is away, a lost API."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from uuid import uuid4

import pytest

from hango.cli.embedded.process import wait_until
from tests.cases.try_world import SECONDS, TryWorld
from tests.cases.world import a_server, two_tenants
from tests.integration.test_try_end_to_end import Desk, Gate, desk_of
from tests.worker_processes import a_worker

MODEL = "openai/gpt-4o"
QUEUE_OVER = "update tries set queue_expires_at = clock_timestamp() - interval '1 s' where id = %s"
LEASES_OVER = """
update tries
set lease_until = clock_timestamp() - interval '1 s'
where batch_id = %s and finished_at is null
"""
MOST_OF_A_POST = 2.5


@pytest.fixture
def desk(try_world: TryWorld) -> Desk:
    return desk_of(try_world, asyncio.run(two_tenants(try_world.database))[0], MODEL)


def ledger(desk: Desk) -> tuple[int, int, int]:
    """Tokens used and reserved, and bills."""
    tenant = desk.get("/v1/me")["tenant"]
    return tenant["quota_used"], tenant["quota_reserved"], len(desk.bills())


def test_a_worker_that_is_told_to_end_ends_its_call_first(desk: Desk) -> None:
    """SIGTERM during a call: the answer is waited for and written down, and the worker ends with nothing left over."""
    world, gate = desk.world, Gate()
    world.answers(gate)
    made = desk.post()
    world.until_called()
    ending = threading.Thread(target=world.worker.stop)
    world.worker.tell_to_end()
    ending.start()
    gate.open = True
    ended = world.until(desk.owner, made["id"])
    ending.join(SECONDS)

    assert (ended["status"], ended["attempts"], len(world.calls()), ledger(desk)) == ("succeeded", 1, 1, (15, 0, 1))
    assert json.loads(world.worker.log_file.read_text().splitlines()[-1])["event"] == "stopped"


def test_without_a_worker_a_try_expires(desk: Desk) -> None:
    """Nobody takes it in its time: expired, not called, not charged, and a worker that comes later leaves it alone."""
    desk.world.worker.stop()
    made = desk.post()
    desk.world.change(QUEUE_OVER, made["id"])
    expired = desk.world.until(desk.owner, made["id"])
    desk.world.worker.start()
    after = desk.tried()

    assert (expired["status"], expired["error"]["code"], expired["usage"]) == ("expired", "queue_expired", None)
    assert (after["status"], len(desk.world.calls()), ledger(desk)) == ("succeeded", 1, (15, 0, 1))


def test_an_emptied_redis_loses_no_try(desk: Desk) -> None:
    """FLUSHALL with tries waiting: the reconciler rings again, and each is called once."""
    desk.world.worker.stop()
    made = [desk.post() for _ in range(5)]
    desk.world.redis.flushall()
    desk.world.worker.start()

    assert [desk.world.until(desk.owner, one["id"])["status"] for one in made] == ["succeeded"] * 5
    assert (len(desk.world.calls()), ledger(desk)) == (5, (75, 0, 5))


def test_a_redis_that_is_away_holds_up_no_post(desk: Desk) -> None:
    """POST answers 202 while Redis is away; the tries are called once it is back."""
    desk.world.valkey.stop()
    try:
        began = time.monotonic()
        made = [desk.post() for _ in range(2)]
        seconds = (time.monotonic() - began) / 2
    finally:
        desk.world.valkey.start()

    assert [desk.world.until(desk.owner, one["id"])["status"] for one in made] == ["succeeded"] * 2
    assert seconds < MOST_OF_A_POST
    assert (len(desk.world.calls()), ledger(desk)) == (2, (30, 0, 2))


def test_a_try_outlives_the_api_that_accepted_it(desk: Desk) -> None:
    """The API that accepted it ends while its client waits: the try goes on, and another process has the answer."""
    world, gate = desk.world, Gate()
    world.answers(gate)
    with a_server(world.settings, world.environment, world.folder / uuid4().hex) as second:
        made = desk.owner.send(second, "POST", desk.path, {}).json()
        world.until_called()
    gate.open = True

    assert world.until(desk.owner, made["id"])["status"] == "succeeded"
    assert (len(world.calls()), ledger(desk)) == (1, (15, 0, 1))


def test_a_dead_worker_takes_no_call_of_another_with_it(desk: Desk) -> None:
    """Two workers share a batch and one is killed: its tries are lost, the others' answered; 16 calls, 16 bills."""
    world, gate = desk.world, Gate()
    world.answers(gate)
    world.worker.stop()
    half = world.environment | {"HANGO_WORKER_THREADS": "8"}
    with (
        a_worker(world.settings, half, world.folder / uuid4().hex),
        a_worker(world.settings, half, world.folder / uuid4().hex) as second,
    ):
        body = {"variants": [{"message": f"Number {n}."} for n in range(8)], "repeats": 2}
        batch = desk.owner.make(world.server, f"{desk.path}-batches", body)
        world.until_called(16)
        second.kill()
        gate.open = True
        assert wait_until(lambda: desk.get(f"/v1/try-batches/{batch['id']}")["done"] == 8, SECONDS)
        world.change(LEASES_OVER, batch["id"])
        ended = desk.get(f"/v1/try-batches/{batch['id']}?wait=30")

    assert (ended["done"], ended["counts"]) == (16, {"succeeded": 8, "lost": 8})
    assert (len(world.calls()), sum(bill["estimated"] for bill in desk.bills())) == (16, 8)
    assert ledger(desk)[1:] == (0, 16)


def test_whoever_waits_is_answered_by_the_end(desk: Desk) -> None:
    """A client that waits on the POST is woken by the commit, long before its time is over."""
    world, gate = desk.world, Gate()
    world.answers(gate)

    def let_it_answer() -> None:
        world.until_called()
        gate.open = True

    opener = threading.Thread(target=let_it_answer)
    opener.start()
    began = time.monotonic()
    reply = desk.send("POST", desk.path, {}, Prefer="wait=50")
    opener.join(SECONDS)

    assert (reply.status_code, reply.json()["status"]) == (200, "succeeded")
    assert time.monotonic() - began < 25
