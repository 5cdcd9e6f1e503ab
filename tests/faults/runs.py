"""F16: runs with tools while everything is killed; F17: the same on a worker that is known to be wrong."""

from __future__ import annotations

import asyncio
import sys
from collections import Counter
from collections.abc import Sequence
from typing import Final

from tests.faults import careless
from tests.faults.callers import Accepted, Caller
from tests.faults.chaos import KILL_LOOP, Blow, killed, rage
from tests.faults.invariants import until
from tests.faults.provider import Act
from tests.faults.report import Figure, at_least, exactly, percentile, told
from tests.faults.run import Run
from tests.faults.run_rows import StoredRun, check_runs, ends, read_runs, taken
from tests.faults.stage import Shape, Stage, staged
from tests.faults.summary import met, never_500, words
from tests.faults.talk import drawn, ended, sessions, start, talk

SECONDS: Final = 180.0
CONTROL_SECONDS: Final = 40.0
SESSIONS_EACH: Final = 8
RUNS: Final = 300
FAULTS: Final = 75
DRAIN_SECONDS: Final = 120.0
LEAST_RULES: Final = 2
SETTINGS: Final = {"HANGO_RUN_TIMEOUT": "60s"}
OPEN_RUNS: Final = "select from runs where finished_at is null"
WORKERS_KILLED: Final = (killed("worker1", 3), killed("worker2", 3))

Desk = tuple[Caller, str]


async def runs(run: Run) -> Sequence[Figure]:
    seconds = run.seconds(SECONDS)
    share = min(1.0, seconds / SECONDS)
    async with staged(Shape(settings=SETTINGS), run.folder) as stage:
        desks = await sessions(stage, SESSIONS_EACH)
        struck, accepted = await _talk_while(stage, desks, KILL_LOOP, seconds, run, least=round(FAULTS * share))
        tail = await until(stage, OPEN_RUNS, DRAIN_SECONDS)
        chance = run.random("the last runs")
        last = Counter(await asyncio.gather(*(_one_more(*desk, drawn(chance)) for desk in desks)))
        stored = read_runs(stage)
        return [
            *(told(f"fault: {name}", number) for name, number in struck.items()),
            *_summary(stage, stored),
            told("after the last fault, until all had ended", f"{tail:.1f} s"),
            at_least("faults", struck.total(), round(FAULTS * share)),
            at_least("runs accepted", len(accepted), round(RUNS * share)),
            exactly("the last run of every session", words(last), f"{len(desks)} succeeded"),
            *check_runs(stage, accepted),
            never_500(stage),
        ]


async def control(run: Run) -> Sequence[Figure]:
    shape = Shape(worker_command=(sys.executable, "-m", careless.__name__), settings=SETTINGS)
    async with staged(shape, run.folder) as stage:
        desks = await sessions(stage, SESSIONS_EACH)
        seconds = run.seconds(CONTROL_SECONDS)
        struck, accepted = await _talk_while(stage, desks, WORKERS_KILLED, seconds, run, least=8)
        await until(stage, OPEN_RUNS, DRAIN_SECONDS)
        broken = [one for one in check_runs(stage, accepted) if not one.holds]
        return [
            told("faults", struck.total()),
            told("runs accepted", len(accepted)),
            *(told(one.what, one.found) for one in broken),
            at_least("rules that were found broken", len(broken), LEAST_RULES),
        ]


async def _talk_while(
    stage: Stage, desks: list[Desk], blows: tuple[Blow, ...], seconds: float, run: Run, *, least: int
) -> tuple[Counter[str], list[Accepted]]:
    """What was struck, and the runs that were accepted meanwhile."""
    raging = asyncio.create_task(rage(stage, blows, seconds, run.seed, least=least))
    talks = [
        asyncio.create_task(talk(caller, session_id, run.random(f"session {number}"), raging.done))
        for number, (caller, session_id) in enumerate(desks)
    ]
    struck = await raging
    return struck, [one for done in await asyncio.gather(*talks) for one in done]


async def _one_more(caller: Caller, session_id: str, act: Act) -> str:
    """How a run ends when nothing is struck any more."""
    accepted = await start(caller, session_id, act)
    return "not accepted" if accepted is None else await ended(caller, accepted)


def _summary(stage: Stage, stored: list[StoredRun]) -> list[Figure]:
    seconds = [one.seconds for one in stored if one.seconds is not None]
    shares = (("median", 0.5), ("95th", 0.95), ("slowest", 1.0))
    return [
        told("runs", len(stored)),
        told("ended as", words(ends(stored))),
        told("turns", sum(one.turns for one in stored)),
        told("calls that the provider took", sum(taken(stage.provider, one) for one in stored)),
        told("taken over by another worker", sum(one.attempts > 1 for one in stored)),
        told("of these, succeeded", sum(one.attempts > 1 and one.status == "succeeded" for one in stored)),
        told("requests that were sent again", words(met(stage)) or "0"),
        told(
            "from the POST to the end",
            ", ".join(f"{name} {percentile(seconds, share) or 0:.2f} s" for name, share in shares),
        ),
    ]
