"""Faults by a seeded plan: what is struck how often. The same seed strikes in the same order, at the same distances."""

from __future__ import annotations

import asyncio
import random
import signal
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from tests.faults.programs import Program, becomes
from tests.faults.stage import Stage

MOST_START_SECONDS: Final = 30.0

Strike = Callable[[Stage, random.Random], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Blow:
    """`every` so many seconds of the program's work, give or take a third; of any time, where it names none."""

    name: str
    every: float
    strike: Strike
    program: str | None = None


def killed(name: str, every: float) -> Blow:
    return Blow(f"{name} killed", every, _killing(name), name)


def _killing(name: str) -> Strike:
    """`kill -9`, and a new start within a second."""

    async def strike(stage: Stage, rng: random.Random) -> None:
        stage.programs[name].kill()
        await asyncio.sleep(rng.random())
        stage.programs[name].start()

    return strike


async def wiping_valkey(stage: Stage, rng: random.Random) -> None:
    await stage.kill_valkey(away_seconds=rng.random())


async def crashing_postgres(stage: Stage, rng: random.Random) -> None:
    """In one of two ways: all of it at once, or its head alone, whose children then notice."""
    sign = rng.choice([signal.SIGQUIT, signal.SIGKILL])
    await stage.crash_postgres(sign, away_seconds=rng.random())


KILL_LOOP = (
    killed("worker1", 4),
    killed("worker2", 6),
    Blow("Valkey killed, all forgotten", 9, wiping_valkey),
    killed("api1", 15),
    Blow("PostgreSQL crashed", 22, crashing_postgres),
)


async def rage(
    stage: Stage, blows: tuple[Blow, ...], seconds: float, seed: int, *, least: int = 0, times: float = 3.0
) -> Counter[str]:
    """Strike with all of them, each at its own pace, for so long; up to so many times longer, while there were too few.

    Afterwards everything runs again.
    """
    struck: Counter[str] = Counter()

    async def go_on(blow: Blow, rng: random.Random) -> None:
        while True:
            if blow.program is not None:
                await _has_started(stage.programs[blow.program])
            await asyncio.sleep(blow.every * rng.uniform(0.67, 1.33))
            passed = loop.time() - began
            if passed > times * seconds or (passed > seconds and struck.total() >= least):
                return
            await blow.strike(stage, rng)
            struck[blow.name] += 1

    loop = asyncio.get_running_loop()
    began = loop.time()
    # One source of chance each: how long one strike takes does not change the others.
    await asyncio.gather(*(go_on(blow, random.Random(f"{seed} {blow.name}")) for blow in blows))
    return struck


async def _has_started(program: Program) -> None:
    """A busy machine takes its time; what cannot start, because all else is away, is not waited for."""
    with suppress(TimeoutError):
        async with asyncio.timeout(MOST_START_SECONDS):
            await becomes(program.has_started)
