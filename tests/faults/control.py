"""F2: the checks of the kill loop, held against a worker that is known to be wrong. They must find that out."""

from __future__ import annotations

import asyncio
import random
import sys
from collections.abc import Sequence
from typing import Final

from tests.faults import naive
from tests.faults.callers import Accepted
from tests.faults.chaos import KILL_LOOP, rage
from tests.faults.invariants import check, until_over
from tests.faults.naive import Sender
from tests.faults.provider import Act
from tests.faults.report import Figure, at_least, told
from tests.faults.run import Run
from tests.faults.stage import Shape, Stage, staged

SECONDS: Final = 90.0
TRIES: Final = 150
PATIENCE_SECONDS: Final = 30.0
LEAST_RULES: Final = 2


async def control(run: Run) -> Sequence[Figure]:
    seconds = run.seconds(SECONDS)
    # Nobody comes to expire what was forgotten: the design has nobody for it.
    shape = Shape(worker_command=(sys.executable, "-m", naive.__name__), settings={"HANGO_CONTEXT_TRY_QUEUE_TTL": "1h"})
    async with staged(shape, run.folder) as stage:
        struck, accepted = await asyncio.gather(
            rage(stage, KILL_LOOP, seconds * 0.87, run.seed),
            _load(stage, seconds * 0.8, run.random("load")),
        )
        await until_over(stage, PATIENCE_SECONDS)
        broken = [one for one in check(stage, accepted) if not one.holds]
        return [
            told("faults", struck.total()),
            told("tries accepted", len(accepted)),
            *(told(one.what, one.found) for one in broken),
            at_least("rules that were found broken", len(broken), LEAST_RULES),
        ]


async def _load(stage: Stage, seconds: float, rng: random.Random) -> list[Accepted]:
    sender = Sender(stage.valkey.url)

    async def one() -> Accepted | None:
        tenant, at, act = (
            rng.randrange(len(stage.callers)),
            rng.uniform(0, seconds),
            Act(seconds=rng.choice([0.05, 0.4, 1.5])),
        )
        await asyncio.sleep(at)
        accepted = await stage.callers[tenant].start(act, tenant=tenant)
        if accepted is not None:
            await asyncio.to_thread(sender.send, accepted.id)
        return accepted

    found = await asyncio.gather(*(asyncio.create_task(one()) for _ in range(TRIES)))
    return [accepted for accepted in found if accepted is not None]
