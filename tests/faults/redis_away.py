"""F6: Valkey is killed, wiped, silent, full, read-only, slow. Tries are taken on all the same, and run afterwards."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Final

from tests.faults.callers import Accepted
from tests.faults.invariants import check, until, until_over
from tests.faults.provider import Act
from tests.faults.report import Figure, at_most, exactly, percentile
from tests.faults.run import Run
from tests.faults.stage import Shape, Stage, staged
from tests.faults.summary import never_500, summary

TRIES: Final = 24
AT_ONCE: Final = 4
AWAY_SECONDS: Final = 10.0
SILENT_SECONDS: Final = 30.0
SLOW_SECONDS: Final = 2.0
MOST_POST_SECONDS: Final = 2.5
# The reconciler rings every five seconds; a worker is back within one.
MOST_START_SECONDS: Final = 7.0
DRAIN_SECONDS: Final = 60.0
RATE: Final = 100_000

Trouble = Callable[[Stage], AbstractAsyncContextManager[None]]


@asynccontextmanager
async def killed(stage: Stage) -> AsyncIterator[None]:
    await asyncio.to_thread(stage.valkey.stop)
    yield
    await asyncio.to_thread(stage.valkey.start)


@asynccontextmanager
async def wiped(stage: Stage) -> AsyncIterator[None]:
    """Again and again, so that no ring lives long."""
    stop = asyncio.Event()

    async def wipe() -> None:
        while not stop.is_set():
            await asyncio.to_thread(stage.redis().flushall)
            await asyncio.sleep(0.05)

    wiping = asyncio.create_task(wipe())
    yield
    stop.set()
    await wiping


@asynccontextmanager
async def silent(stage: Stage) -> AsyncIterator[None]:
    began = time.monotonic()
    stage.redis_proxy.blackhole()
    yield
    await asyncio.sleep(max(0.0, SILENT_SECONDS - (time.monotonic() - began)))
    await stage.redis_proxy.reset()
    stage.redis_proxy.pass_all()


@asynccontextmanager
async def full(stage: Stage) -> AsyncIterator[None]:
    stage.redis().config_set("maxmemory", "1")
    yield
    stage.redis().config_set("maxmemory", "0")


@asynccontextmanager
async def read_only(stage: Stage) -> AsyncIterator[None]:
    stage.redis().replicaof("127.0.0.1", "1")
    yield
    stage.redis().replicaof("NO", "ONE")


@asynccontextmanager
async def slow(stage: Stage) -> AsyncIterator[None]:
    stage.redis_proxy.slow(SLOW_SECONDS)
    yield
    stage.redis_proxy.pass_all()


TROUBLES: Final[dict[str, Trouble]] = {
    "killed": killed,
    "wiped all the time": wiped,
    "silent for 30 s": silent,
    "full": full,
    "read-only": read_only,
    "2 s slow": slow,
}


async def redis_away(run: Run) -> Sequence[Figure]:
    settings = {"HANGO_CONTEXT_TRY_TIMEOUT": "4s"}
    async with staged(Shape(redis_apart=True, scaled=False, settings=settings), run.folder) as stage:
        for caller in stage.callers:
            await caller.call("PATCH", "/v1/tenant", {"rate_per_minute": RATE})  # so that each request asks Valkey
        figures: list[Figure] = []
        accepted: list[Accepted] = []
        for name, trouble in TROUBLES.items():
            during, seconds = await _meet(stage, trouble)
            accepted += during
            slowest = percentile((one.seconds for one in during), 0.95)
            figures += [
                exactly(f"{name}: tries accepted meanwhile", len(during), TRIES),
                at_most(f"{name}: 95th percentile of their POSTs", slowest, MOST_POST_SECONDS),
                at_most(f"{name}: until all had started, after it was back", seconds, MOST_START_SECONDS),
            ]
        await until_over(stage, DRAIN_SECONDS)
        return [*figures, *summary(stage), *check(stage, accepted), never_500(stage)]


async def _meet(stage: Stage, trouble: Trouble) -> tuple[list[Accepted], float]:
    """Tries that were sent in the middle of it, and how long after its end the last of them started."""
    await until_over(stage, DRAIN_SECONDS)  # or those that end would wake the worker for these
    async with trouble(stage):
        places = asyncio.Semaphore(AT_ONCE)

        async def send(number: int) -> Accepted | None:
            async with places:
                return await stage.callers[number % len(stage.callers)].start(Act(seconds=0.05))

        found = await asyncio.gather(*(send(number) for number in range(TRIES)))
    ended = time.monotonic()
    await until(stage, "select from tries where started_at is null and finished_at is null", DRAIN_SECONDS)
    return [one for one in found if one is not None], time.monotonic() - ended
