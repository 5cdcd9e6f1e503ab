"""A worker on the loop of a test: the broker, the jobs and the threads of `hango worker`, and a picker that counts."""

from __future__ import annotations

import asyncio
import io
import json
import logging
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import dramatiq
import structlog
from dramatiq.broker import Broker, MessageProxy
from dramatiq.middleware import Middleware
from redis import Redis

from hango import logs
from hango.config import LogFormat, Settings
from hango.workers import main
from hango.workers.broker import BlockingRedisBroker, make_broker
from hango.workers.encoder import QUEUE
from hango.workers.resources import Picker

SECONDS = 20.0
POLL_SECONDS = 0.005


class CountingPicker:
    """Counts how often it was rung; `busy` is how long one look takes."""

    def __init__(self, *, busy: float = 0.0) -> None:
        self.rung = 0
        self.busy = busy

    async def ring(self) -> None:
        self.rung += 1
        await asyncio.sleep(self.busy)

    async def stop(self) -> None:
        return

    def has_rung(self, times: int) -> bool:
        return self.rung == times


class Handled(Middleware):
    """The Redis id of every message that a thread of the worker was handed, in order."""

    def __init__(self) -> None:
        self.ids: list[str] = []

    def before_process_message(self, broker: Broker, message: MessageProxy) -> None:
        self.ids.append(message.options["redis_message_id"])


@asynccontextmanager
async def working(
    redis_url: str, picker: Picker, *more: Middleware
) -> AsyncIterator[tuple[dramatiq.Worker, BlockingRedisBroker]]:
    """Ends in order with the block."""
    broker = make_broker(redis_url, [main.LoopOfProcess(asyncio.get_running_loop()), *more])
    main.add_jobs(broker, picker)
    worker = dramatiq.Worker(broker, worker_threads=main.DOORBELL_THREADS, worker_timeout=main.NOTICE_MS)
    worker.start()
    try:
        yield worker, broker
    finally:
        await asyncio.to_thread(worker.stop, main.END_OF_THREADS_MS)
        broker.client.close()


async def eventually(holds: Callable[[], bool], seconds: float = SECONDS) -> bool:
    """Whether it comes to hold in that time; the loop goes on meanwhile."""
    try:
        async with asyncio.timeout(seconds):
            while not holds():  # noqa: ASYNC110  most of it stands in Redis, which tells nobody
                await asyncio.sleep(POLL_SECONDS)
    except TimeoutError:
        return False
    return True


def put(redis: Redis, body: bytes, name: str) -> None:
    """A message as anybody who can write to Redis may leave one."""
    redis.hset(f"hango:{QUEUE}.msgs", name, body)
    redis.rpush(f"hango:{QUEUE}", name)


def left(redis: Redis) -> dict[str, int]:
    """What is in the queue, waiting or in some worker's hands; empty when all is done."""
    acks = [one for key in redis.scan_iter("hango:__acks__*") for one in redis.smembers(key)]
    found = {
        "waiting": redis.llen(f"hango:{QUEUE}"),
        "bodies": redis.hlen(f"hango:{QUEUE}.msgs"),
        "dead letters": redis.zcard(f"hango:{QUEUE}.XQ"),
        "fetched": len(acks),
    }
    return {name: number for name, number in found.items() if number}


@contextmanager
def logged() -> Iterator[Callable[[], list[dict[str, Any]]]]:
    """The lines that hango logs in the block."""
    stream = io.StringIO()
    root = logging.getLogger()
    handlers, level = root.handlers, root.level
    logs.setup(Settings(home=Path("/"), log_format=LogFormat.JSON), stream)
    try:
        yield lambda: [json.loads(line) for line in stream.getvalue().splitlines()]
    finally:
        root.handlers, root.level = handlers, level
        structlog.reset_defaults()
