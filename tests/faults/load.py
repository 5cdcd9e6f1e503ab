"""Tries as many tenants send them: what happens to each call is drawn by chance, a few are cancelled."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from typing import Final

from tests.faults.callers import Accepted
from tests.faults.provider import Act
from tests.faults.stage import Stage

PATIENCE_SECONDS: Final = 60.0
CANCELLED_SHARE: Final = 0.05

# What happens to the calls, by weight: most are answered, some fail in each way that a provider has.
MIXED: Final = (
    (6, "answer", 0.05, 0),
    (6, "answer", 0.4, 0),
    (3, "answer", 1.5, 0),
    (1, "answer", 2.5, 0),
    (1, "hang", 0.0, 0),
    (1, "drip", 0.0, 0),
    (1, "fail", 0.1, 0),
    (1, "limited", 0.1, 2),
    (1, "busy", 0.1, 1),
    (1, "cut", 0.1, 0),
    (1, "huge", 0.1, 0),
)

Draw = Callable[[random.Random], Act]


def mixed(rng: random.Random) -> Act:
    _, do, seconds, times = rng.choices(MIXED, [one[0] for one in MIXED])[0]
    return Act(do, seconds, times)


def answered_in(*seconds: float) -> Draw:
    return lambda rng: Act(seconds=rng.choice(seconds))


async def load(
    stage: Stage,
    tries: int,
    seconds: float,
    rng: random.Random,
    *,
    draw: Draw = mixed,
    cancelled: float = CANCELLED_SHARE,
    patience: float = PATIENCE_SECONDS,
) -> list[Accepted]:
    """So many tries of all tenants, spread over the time; those that were accepted."""

    async def one() -> Accepted | None:
        tenant, at, act = rng.randrange(len(stage.callers)), rng.uniform(0, seconds), draw(rng)
        cancels, cancel_after = rng.random() < cancelled, rng.random()
        await asyncio.sleep(at)
        accepted = await stage.callers[tenant].start(act, patience=patience, tenant=tenant)
        if accepted is not None and cancels:
            await asyncio.sleep(cancel_after)
            await stage.callers[tenant].cancel(accepted)
        return accepted

    # Each draws all its chances before its first wait, one after the other: the same seed gives the same load.
    found = await asyncio.gather(*(asyncio.create_task(one()) for _ in range(tries)))
    return [accepted for accepted in found if accepted is not None]
