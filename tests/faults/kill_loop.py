"""F1: everything is killed again and again under load; nothing is lost, called twice or left unbilled."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final

from tests.faults.chaos import KILL_LOOP, rage
from tests.faults.invariants import check, read_tries, until_over
from tests.faults.load import load_during
from tests.faults.report import Figure, at_least, at_most, told
from tests.faults.run import Run
from tests.faults.stage import Shape, staged
from tests.faults.summary import never_500, seconds_of, summary

SECONDS: Final = 240.0
TRIES: Final = 1000
TRIES_PER_SECOND: Final = 4.6
FAULTS: Final = 100
# With a lease of 6 s: it runs out, the reconciler comes, and PostgreSQL may be away meanwhile.
MOST_SECONDS: Final = 30.0
DRAIN_SECONDS: Final = 90.0


async def kill_loop(run: Run) -> Sequence[Figure]:
    seconds = run.seconds(SECONDS)
    share = seconds / SECONDS
    tries, faults = round(TRIES * share), round(FAULTS * min(1.0, share))
    async with staged(Shape(), run.folder) as stage:
        raging = asyncio.create_task(rage(stage, KILL_LOOP, seconds, run.seed, least=faults))
        accepted = await load_during(stage, raging, TRIES_PER_SECOND, run.random("load"))
        struck = await raging
        tail = await until_over(stage, DRAIN_SECONDS)
        return [
            *(told(f"fault: {name}", number) for name, number in struck.items()),
            *summary(stage),
            told("after the last fault, until all had ended", f"{tail:.1f} s"),
            at_least("faults", struck.total(), faults),
            at_least("tries accepted", len(accepted), tries),
            *check(stage, accepted),
            at_most(
                "the slowest try, from its POST to its end",
                max(seconds_of(read_tries(stage))),
                run.within(MOST_SECONDS),
            ),
            never_500(stage),
        ]
