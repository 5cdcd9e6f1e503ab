"""F14: tries are cancelled at any moment, some while their worker is killed. A try that has ended stays as it ended."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

from tests.faults.callers import AWAY
from tests.faults.chaos import Blow, killing, rage
from tests.faults.invariants import check, read_tries, until_over
from tests.faults.load import mixed
from tests.faults.report import Figure, at_least, none_of
from tests.faults.run import Run
from tests.faults.stage import Shape, Stage, staged
from tests.faults.summary import never_500, summary

TRIES: Final = 300
SECONDS: Final = 40.0
# As long as a call may take and longer than a lease, so that a cancel may meet a rescue.
LATEST_SECONDS: Final = 9.0
DRAIN_SECONDS: Final = 60.0
KILLS: Final = (Blow("worker1 killed", 8, killing("worker1")), Blow("worker2 killed", 13, killing("worker2")))
ENDED: Final = ("succeeded", "failed", "timed_out", "cancelled", "lost")


async def cancels(run: Run) -> Sequence[Figure]:
    async with staged(Shape(), run.folder) as stage:
        rng = run.random("cancels")
        asking = [asyncio.create_task(_one(stage, rng)) for _ in range(TRIES)]
        await rage(stage, KILLS, SECONDS, run.seed)
        told_ends = {id: status for id, status in await asyncio.gather(*asking) if status in ENDED}
        await until_over(stage, DRAIN_SECONDS)
        stored = {one.id: one.status for one in read_tries(stage)}
        return [
            *summary(stage),
            at_least("cancels that were answered with the end of a try", len(told_ends), TRIES / 4),
            none_of(
                "tries that ended otherwise than a cancel was told",
                [f"{id} {status} {stored[id]}" for id, status in told_ends.items() if stored[id] != status],
            ),
            none_of("tries that ended as none may", [id for id, status in stored.items() if status not in ENDED]),
            *check(stage, [one for caller in stage.callers for one in caller.accepted.values()]),
            never_500(stage),
        ]


async def _one(stage: Stage, rng: random.Random) -> tuple[str, str]:
    """A try that is cancelled some time later: its id, and what the cancel said of it."""
    caller = stage.callers[rng.randrange(len(stage.callers))]
    act, at, later = mixed(rng), rng.uniform(0, SECONDS * 0.8), rng.uniform(0, LATEST_SECONDS) ** 2 / LATEST_SECONDS
    await asyncio.sleep(at)
    accepted = await caller.start(act)
    assert accepted is not None
    await asyncio.sleep(later)
    with suppress(*AWAY):
        status, reply, _ = await caller.ask("POST", f"/v1/tries/{accepted.id}/cancel")
        return str(accepted.id), str(reply.get("status")) if status in {200, 202} else ""
    return str(accepted.id), ""
