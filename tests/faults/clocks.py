"""F12: processes whose clocks are wrong. Every time that decides something is PostgreSQL's."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

from tests.faults.invariants import check, read_tries, until_over
from tests.faults.load import answered_in, load
from tests.faults.report import Figure, at_most, exactly, percentile
from tests.faults.run import Run
from tests.faults.stage import Shape, staged
from tests.faults.summary import never_500, seconds_of, summary

TRIES: Final = 60
SECONDS: Final = 15.0
DRAIN_SECONDS: Final = 60.0
MOST_SECONDS: Final = 5.0  # for calls of at most 1.5 s, with nothing else wrong

WRONG: Final[Mapping[str, Mapping[str, float]]] = {
    "API 70 s fast, a worker 70 s slow": {"api1": 70.0, "worker1": -70.0},
    "a worker an hour fast": {"worker1": 3600.0},
    "API an hour slow": {"api1": -3600.0},
}


async def clocks(run: Run) -> Sequence[Figure]:
    figures: list[Figure] = []
    for number, (name, wrong) in enumerate(WRONG.items()):
        folder = run.folder / str(number)
        folder.mkdir()
        async with staged(Shape(clocks=wrong), folder) as stage:
            accepted = await load(
                stage, TRIES, SECONDS, run.random(name), draw=answered_in(0.05, 0.4, 1.5), cancelled=0
            )
            await until_over(stage, DRAIN_SECONDS)
            stored = read_tries(stage)
            figures += [
                exactly(f"{name}: tries that succeeded", Counter(one.status for one in stored)["succeeded"], TRIES),
                at_most(f"{name}: 95th to the end", percentile(seconds_of(stored), 0.95), MOST_SECONDS),
                *(one for one in check(stage, accepted) if not one.holds),
                never_500(stage),
                *summary(stage)[-1:],
            ]
    return figures
