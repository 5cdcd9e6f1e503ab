"""F15: hundreds of requests wait for tries; some leave, an API is killed, the connection that wakes them is cut."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

import psycopg

from tests.faults.callers import AWAY, Accepted, Caller
from tests.faults.invariants import check, rows, until_over
from tests.faults.provider import Act
from tests.faults.report import Figure, at_least, at_most, percentile
from tests.faults.run import Run
from tests.faults.stage import Shape, Stage, staged

TRIES: Final = 60
WAITERS: Final = 500
LEAVING: Final = 200
TENANTS: Final = 4  # one key may wait 200 times
CALL_SECONDS: Final = 6.0
WAIT_SECONDS: Final = 30
MOST_DELAY: Final = 1.5
MOST_DELAY_CUT: Final = 6.0
TO_BASELINE_SECONDS: Final = 10.0


async def waits(run: Run) -> Sequence[Figure]:
    shape = Shape(apis=2, tenants=TENANTS, settings={"HANGO_CONTEXT_TRY_TIMEOUT": "30s"})
    async with staged(shape, run.folder) as stage:
        rng = run.random("waits")
        (baseline, *_) = [one.descriptors() for one in stage.apis]
        calm = await _round(stage, rng)
        left = await _until_baseline(stage, baseline)
        killed = await _round(stage, rng, kill=True)
        cut = await _round(stage, rng, cut=True)
        await until_over(stage, WAIT_SECONDS)
        accepted = [one for caller in stage.callers for one in caller.accepted.values()]
        return [
            *_figures("200 of 500 leave", calm, MOST_DELAY),
            at_most("open files of the API, over those before, within 10 s", left, 10, "files"),
            *_figures("and an API is killed", killed, MOST_DELAY_CUT),
            *_figures("and the connection that wakes is cut", cut, MOST_DELAY_CUT),
            *check(stage, accepted),
        ]


def _figures(name: str, delays: list[float], most: float) -> list[Figure]:
    return [
        at_least(f"{name}: waiters that were answered", len(delays), WAITERS - LEAVING),
        at_most(f"{name}: median from the end to the answer", percentile(delays, 0.5), most),
        at_most(f"{name}: 99th percentile of it", percentile(delays, 0.99), most),
    ]


async def _round(stage: Stage, rng: random.Random, *, kill: bool = False, cut: bool = False) -> list[float]:
    """Of those that stay: seconds from the end of their try in the database to their answer."""
    started = await asyncio.gather(
        *(stage.callers[n % TENANTS].start(Act(seconds=CALL_SECONDS), tenant=n % TENANTS) for n in range(TRIES))
    )
    tries = [one for one in started if one is not None]
    waiting = []
    for number in range(WAITERS):
        wanted = tries[number % len(tries)]
        leaves = rng.uniform(0.5, CALL_SECONDS / 2) if number < LEAVING else None
        waiting.append(asyncio.create_task(_wait(stage.callers[wanted.tenant], wanted, leaves)))
    await asyncio.sleep(CALL_SECONDS / 4)
    if kill:
        stage.apis[1].kill()
        stage.apis[1].start()
    if cut:
        _cut_listeners(stage)
    answered = [one for one in await asyncio.gather(*waiting) if one is not None]
    ends = dict(
        rows(stage, "select id, extract(epoch from finished_at)::float8 from tries where finished_at is not null")
    )
    return [at - ends[accepted.id] for accepted, at in answered]


async def _wait(caller: Caller, accepted: Accepted, leaves: float | None) -> tuple[Accepted, float] | None:
    """Wait until it ends, asking again where somebody went away; None for one that leaves."""
    if leaves is not None:
        with suppress(TimeoutError, *AWAY):
            async with asyncio.timeout(leaves):
                await caller.read(accepted, wait=WAIT_SECONDS)
        return None
    end = time.monotonic() + 2 * WAIT_SECONDS
    while time.monotonic() < end:
        try:
            reply = await caller.read(accepted, wait=WAIT_SECONDS)
        except AWAY:
            await asyncio.sleep(0.2)
            continue
        if reply["finished_at"] is not None:
            return accepted, time.time()
    return None


def _cut_listeners(stage: Stage) -> None:
    with psycopg.connect(stage.database_url, autocommit=True) as connection:
        connection.execute("select pg_terminate_backend(pid) from pg_stat_activity where query ilike 'listen%'")


async def _until_baseline(stage: Stage, baseline: int) -> int:
    """How many files more than before are open, at the latest after the time that is granted."""
    end = time.monotonic() + TO_BASELINE_SECONDS
    while time.monotonic() < end:
        more = stage.apis[0].descriptors() - baseline
        if more <= 5:
            break
        await asyncio.sleep(0.2)
    return more
