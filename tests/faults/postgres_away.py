"""F7: PostgreSQL crashes, restarts, drops its sessions, is silent, is full, is locked. Callers are told so."""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Final

import psycopg

from tests.faults.callers import AWAY, Accepted
from tests.faults.full_disk import filling, small_disk
from tests.faults.invariants import check, until_over
from tests.faults.load import answered_in, load
from tests.faults.report import Figure, at_least, at_most, exactly, told
from tests.faults.run import Run
from tests.faults.stage import Shape, Stage, staged
from tests.faults.summary import met, never_500, summary, words

SECONDS: Final = 12.0  # of load around each trouble
TRIES: Final = 60
TERMINATIONS: Final = 20
SILENT_SECONDS: Final = 10.0
LOCKED_SECONDS: Final = 10.0
FULL_SECONDS: Final = 5.0
MOST_HEALTHY_SECONDS: Final = 5.0
DRAIN_SECONDS: Final = 90.0

Trouble = Callable[[Stage], Awaitable[None]]


async def crashed(stage: Stage) -> None:
    await stage.crash_postgres()


async def restarted(stage: Stage) -> None:
    await stage.crash_postgres(signal.SIGINT)


async def dropped(stage: Stage) -> None:
    """Every session of hango, waiting ones and working ones, twenty times."""
    for _ in range(TERMINATIONS):
        _do(stage, "select pg_terminate_backend(pid) from pg_stat_activity where usename = 'hango_app'")
        await asyncio.sleep(0.3)


async def silent(stage: Stage) -> None:
    stage.postgres_proxy.blackhole()
    await asyncio.sleep(SILENT_SECONDS)
    stage.postgres_proxy.pass_all()


async def locked(stage: Stage) -> None:
    """Somebody holds the quotas of all tenants."""
    with psycopg.connect(stage.database_url) as holder:
        holder.execute("select from quotas for update")
        await asyncio.sleep(LOCKED_SECONDS)


async def full(stage: Stage) -> None:
    with filling(stage.folder):
        await asyncio.sleep(FULL_SECONDS)
    if not stage.postgres.alive():  # it may end when its log of changes cannot grow
        await stage.restart_postgres()


TROUBLES: Final[dict[str, Trouble]] = {
    "crashed": crashed,
    "restarted": restarted,
    "sessions dropped 20 times": dropped,
    "silent for 10 s": silent,
    "quotas locked for 10 s": locked,
    "disk full for 5 s": full,
}


async def postgres_away(run: Run) -> Sequence[Figure]:
    with small_disk(run.folder) as folder:
        async with staged(Shape(postgres_apart=True), folder or run.folder) as stage:
            troubles = {name: do for name, do in TROUBLES.items() if do is not full or folder is not None}
            figures: list[Figure] = (
                [] if folder else [told("disk full", "not shown: this account may not mount a disk")]
            )
            accepted: list[Accepted] = []
            for name, trouble in troubles.items():
                during, healthy = await _meet(stage, trouble, run, name)
                accepted += during
                figures += [
                    at_least(f"{name}: tries accepted", len(during), TRIES),
                    at_most(f"{name}: until all was well again", healthy, MOST_HEALTHY_SECONDS),
                ]
            await until_over(stage, DRAIN_SECONDS)
            return [
                *figures,
                *summary(stage),
                told("met meanwhile", words(met(stage))),
                exactly(
                    "503s without Retry-After", sum(one.met["503 without Retry-After"] for one in stage.callers), 0
                ),
                *check(stage, accepted),
                never_500(stage),
            ]


async def _meet(stage: Stage, trouble: Trouble, run: Run, name: str) -> tuple[list[Accepted], float]:
    """Tries that were sent around it, and how long after its end five requests in a row went well."""
    sending = asyncio.create_task(load(stage, TRIES, SECONDS, run.random(name), draw=answered_in(0.05, 0.5)))
    await asyncio.sleep(1)
    await trouble(stage)
    ended = time.monotonic()
    await _until_well(stage)
    healthy = time.monotonic() - ended
    return await sending, healthy


async def _until_well(stage: Stage) -> None:
    well, end = 0, time.monotonic() + DRAIN_SECONDS
    while well < 5 and time.monotonic() < end:
        well = well + 1 if await _is_well(stage) else 0
        await asyncio.sleep(0.05)


async def _is_well(stage: Stage) -> bool:
    caller = stage.callers[0]
    with suppress(*AWAY):
        status, _, _ = await caller.ask("GET", f"/v1/sessions/{caller.session_id}/context", seconds=1.0)
        return status == 200
    return False


def _do(stage: Stage, statement: str) -> None:
    with psycopg.connect(stage.database_url, autocommit=True) as connection:
        connection.execute(statement.encode())
