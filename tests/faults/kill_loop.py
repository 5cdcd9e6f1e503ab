"""F1: everything is killed again and again under load; nothing is lost, called twice or left unbilled."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final

from tests.faults.chaos import KILL_LOOP, rage
from tests.faults.invariants import check, read_tries, until_over
from tests.faults.load import load
from tests.faults.report import Figure, at_least, at_most, told
from tests.faults.run import Run
from tests.faults.stage import Shape, staged
from tests.faults.summary import never_500, seconds_of, summary

SECONDS: Final = 240.0
TRIES: Final = 1000
FAULTS: Final = 100
# With a lease of 6 s: it runs out, the reconciler comes, and PostgreSQL may be away meanwhile.
MOST_SECONDS: Final = 30.0
DRAIN_SECONDS: Final = 90.0


async def kill_loop(run: Run) -> Sequence[Figure]:
    seconds = run.seconds(SECONDS)
    share = seconds / SECONDS
    tries, faults = round(TRIES * share), int(FAULTS * min(1.0, share))
    async with staged(Shape(), run.folder) as stage:
        struck, accepted = await asyncio.gather(
            rage(stage, KILL_LOOP, seconds * 0.87, run.seed),
            load(stage, tries, seconds * 0.8, run.random("load")),
        )
        tail = await until_over(stage, DRAIN_SECONDS)
        return [
            *(told(f"fault: {name}", number) for name, number in struck.items()),
            *summary(stage),
            told("after the last fault, until all had ended", f"{tail:.1f} s"),
            at_least("faults", struck.total(), faults),
            at_least("tries accepted", len(accepted), 0.97 * tries),
            *check(stage, accepted),
            at_most("the slowest try, from its POST to its end", max(seconds_of(read_tries(stage))), MOST_SECONDS),
            never_500(stage),
        ]
