"""F1 and F2: everything is killed again and again under load; the same for a worker as one writes it at first."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Sequence
from typing import Final

from tests.faults.callers import Accepted
from tests.faults.chaos import KILL_LOOP, rage
from tests.faults.invariants import check, read_tries, until_over
from tests.faults.provider import Act
from tests.faults.report import Figure, at_least, at_most, percentile, told
from tests.faults.run import Run
from tests.faults.stage import Shape, Stage, staged

SECONDS: Final = 240.0
TRIES_PER_SECOND: Final = 1000 / SECONDS
FAULTS_PER_SECOND: Final = 100 / SECONDS
# With a lease of 6 s: it runs out, the reconciler comes, and PostgreSQL may be away meanwhile.
MOST_SECONDS: Final = 30.0
TO_START_SECONDS: Final = 60.0

# What happens to the calls, by weight: most are answered, some fail in each way that a provider has.
ACTS: Final = (
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
CANCELLED_SHARE: Final = 0.05


def any_act(rng: random.Random) -> Act:
    _, do, seconds, times = rng.choices(ACTS, [one[0] for one in ACTS])[0]
    return Act(do, seconds, times)


async def load(stage: Stage, tries: int, seconds: float, rng: random.Random) -> list[Accepted]:
    """So many tries of all tenants, spread over the time; a few of them are cancelled soon after."""

    async def one() -> Accepted | None:
        tenant = rng.randrange(len(stage.callers))
        at, act, cancel_after = rng.uniform(0, seconds), any_act(rng), rng.random()
        cancels = rng.random() < CANCELLED_SHARE
        await asyncio.sleep(at)
        accepted = await stage.callers[tenant].start(act, patience=TO_START_SECONDS, tenant=tenant)
        if accepted is not None and cancels:
            await asyncio.sleep(cancel_after)
            await stage.callers[tenant].cancel(accepted)
        return accepted

    # All chances are taken before the first wait, so that a seed gives the same load.
    found = await asyncio.gather(*(asyncio.create_task(one()) for _ in range(tries)))
    return [accepted for accepted in found if accepted is not None]


async def kill_loop(run: Run) -> Sequence[Figure]:
    """F1: workers, API, Valkey and PostgreSQL killed under load; nothing is lost, doubled or unbilled."""
    seconds = run.seconds(SECONDS)
    tries = max(50, round(TRIES_PER_SECOND * seconds))
    async with staged(Shape(), run.folder) as stage:
        struck, accepted = await asyncio.gather(
            rage(stage, KILL_LOOP, seconds * 0.87, run.seed),
            load(stage, tries, seconds * 0.8, run.random("load")),
        )
        tail = await until_over(stage, 90.0)
        return [
            *_told(stage, struck, accepted, tail),
            at_least("faults", struck.total(), min(100, int(FAULTS_PER_SECOND * seconds))),
            at_least("tries accepted", len(accepted), 0.97 * tries),
            *check(stage, accepted),
            at_most("the slowest try, from its POST to its end", _slowest(stage), MOST_SECONDS),
            Figure("answers with a 500", str(_met(stage)["500"]), "0", _met(stage)["500"] == 0),
        ]


def _told(stage: Stage, struck: Counter[str], accepted: list[Accepted], tail: float) -> list[Figure]:
    stored = read_tries(stage)
    statuses = Counter(one.status for one in stored)
    seconds = [one.seconds for one in stored if one.seconds is not None]
    return [
        *(told(f"fault: {name}", number) for name, number in struck.items()),
        told("tries accepted", len(accepted)),
        told("ended as", ", ".join(f"{name} {number}" for name, number in statuses.most_common())),
        told("calls that the provider took", sum(calls.taken for calls in stage.provider.calls.values())),
        told("tries claimed again before their call", sum(one.rescues > 0 for one in stored)),
        told("billed as called, though no call came", _marked_and_not_called(stage)),
        told("requests that were sent again", ", ".join(f"{n} {k}" for k, n in _met(stage).most_common())),
        told("median from the POST to the end", f"{percentile(seconds, 0.5) or 0:.2f} s"),
        told("95th percentile of it", f"{percentile(seconds, 0.95) or 0:.2f} s"),
        told("after the last fault, until all had ended", f"{tail:.1f} s"),
    ]


def _met(stage: Stage) -> Counter[str]:
    return sum((one.met for one in stage.callers), Counter[str]())


def _marked_and_not_called(stage: Stage) -> int:
    called = stage.provider.called()
    return sum(one.called and one.mark not in called for one in read_tries(stage))


def _slowest(stage: Stage) -> float | None:
    return percentile((one.seconds for one in read_tries(stage) if one.seconds is not None), 1.0)
