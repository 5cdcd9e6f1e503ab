"""L2: a steady load of mixed tries. Memory, open files and connections stay where they are."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from tests.faults.invariants import check, rows, until_over
from tests.faults.load import load
from tests.faults.programs import Program
from tests.faults.report import Figure, at_least, at_most
from tests.faults.run import Run
from tests.faults.stage import Shape, Stage, staged
from tests.faults.summary import never_500, summary

SECONDS: Final = 120.0
TRIES_PER_SECOND: Final = 20
SAMPLE_SECONDS: Final = 2.0
DRAIN_SECONDS: Final = 60.0
MOST_MIB_PER_MINUTE: Final = 1.0
MOST_MORE: Final = 12  # connections of a pool and of the HTTP client come and go


@dataclass(frozen=True, slots=True)
class Sample:
    minute: float
    mib: float
    files: int


async def soak(run: Run) -> Sequence[Figure]:
    seconds = run.seconds(SECONDS)
    async with staged(Shape(), run.folder) as stage:
        # The first minute fills pools, caches and arenas: what counts comes after it.
        await load(stage, round(TRIES_PER_SECOND * 30), 30, run.random("warm"))
        watching = {one.name: asyncio.create_task(_watch(one)) for one in stage.programs.values()}
        connections = _connections(stage)
        accepted = await load(stage, round(TRIES_PER_SECOND * seconds), seconds, run.random("load"))
        await until_over(stage, DRAIN_SECONDS)
        seen = {name: await _end(task) for name, task in watching.items()}
        return [
            *summary(stage),
            at_least("tries accepted", len(accepted), TRIES_PER_SECOND * seconds),
            *(
                at_most(f"{name}: memory grows", _slope(found), MOST_MIB_PER_MINUTE, "MiB/min")
                for name, found in seen.items()
            ),
            *(
                at_most(f"{name}: open files grow", found[-1].files - found[0].files, MOST_MORE, "")
                for name, found in seen.items()
            ),
            at_most("connections to PostgreSQL grow", _connections(stage) - connections, MOST_MORE, ""),
            *check(stage, accepted),
            never_500(stage),
        ]


async def _watch(one: Program) -> list[Sample]:
    samples: list[Sample] = []
    loop = asyncio.get_running_loop()
    began = loop.time()
    try:
        while True:
            samples.append(Sample((loop.time() - began) / 60, one.rss_mib(), one.descriptors()))
            await asyncio.sleep(SAMPLE_SECONDS)
    except asyncio.CancelledError:
        return samples


async def _end(task: asyncio.Task[list[Sample]]) -> list[Sample]:
    task.cancel()
    return await task


def _slope(samples: list[Sample]) -> float:
    """MiB a minute, by least squares over all samples."""
    middle = sum(one.minute for one in samples) / len(samples)
    mean = sum(one.mib for one in samples) / len(samples)
    spread = sum((one.minute - middle) ** 2 for one in samples)
    return sum((one.minute - middle) * (one.mib - mean) for one in samples) / spread


def _connections(stage: Stage) -> int:
    return int(rows(stage, "select count(*) from pg_stat_activity where usename = 'hango_app'")[0][0])
