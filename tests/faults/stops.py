"""F10 and F11: a worker is told to end, once and in order, or twice and at once."""

from __future__ import annotations

import asyncio
import signal
from collections import Counter
from collections.abc import Sequence
from typing import Final

from tests.faults.invariants import check, read_tries, until_over
from tests.faults.load import answered_in, load
from tests.faults.programs import Program
from tests.faults.report import Figure, at_least, at_most, exactly
from tests.faults.run import Run
from tests.faults.stage import Shape, staged
from tests.faults.summary import never_500, summary

STOPS: Final = 6
CALL_SECONDS: Final = 2.0
# After the last call: to write the answer down, and for Dramatiq's threads.
END_SECONDS: Final = 5.0
PAUSE_SECONDS: Final = 3.0
BETWEEN_SECONDS: Final = 1.0  # two signals of a kind that nobody has looked at yet are one
TRIES: Final = 200
DRAIN_SECONDS: Final = 60.0


async def orderly(run: Run) -> Sequence[Figure]:
    """F10: one SIGTERM lets the calls under way end: nothing is lost, failed or called twice."""
    async with staged(Shape(), run.folder) as stage:
        seconds = STOPS * (CALL_SECONDS + PAUSE_SECONDS)
        sending = asyncio.create_task(
            load(stage, TRIES, seconds, run.random("load"), draw=answered_in(CALL_SECONDS), cancelled=0)
        )
        took, codes = [], []
        for number in range(STOPS):
            await asyncio.sleep(PAUSE_SECONDS)
            one = stage.workers[number % len(stage.workers)]
            seconds_to_end, code = await _end(one, signal.SIGTERM)
            took.append(seconds_to_end)
            codes.append(code)
            one.start()
        accepted = await sending
        await until_over(stage, DRAIN_SECONDS)
        statuses = Counter(one.status for one in read_tries(stage))
        return [
            *summary(stage),
            exactly("exit codes", codes, [0] * STOPS),
            at_most("from SIGTERM to the end of the process", max(took), CALL_SECONDS + END_SECONDS),
            exactly("tries that did not succeed", len(accepted) - statuses["succeeded"], 0),
            *check(stage, accepted),
            never_500(stage),
        ]


async def at_once(run: Run) -> Sequence[Figure]:
    """F11: a second SIGTERM ends the process in the middle of its calls; they are given up as lost, and billed."""
    async with staged(Shape(), run.folder) as stage:
        seconds = STOPS * (PAUSE_SECONDS + BETWEEN_SECONDS)
        sending = asyncio.create_task(
            load(stage, TRIES // 2, seconds, run.random("load"), draw=answered_in(CALL_SECONDS), cancelled=0)
        )
        took = []
        for number in range(STOPS):
            await stage.until_working()
            await asyncio.sleep(PAUSE_SECONDS)  # so that it has calls under way
            one = stage.workers[number % len(stage.workers)]
            one.wanted = False
            one.send(signal.SIGTERM)
            await asyncio.sleep(BETWEEN_SECONDS)
            seconds_to_end, _ = await _end(one, signal.SIGTERM)
            took.append(seconds_to_end)
            one.start()
        accepted = await sending
        await until_over(stage, DRAIN_SECONDS)
        lost = sum(one.status == "lost" for one in read_tries(stage))
        return [
            *summary(stage),
            at_most("from the second SIGTERM to the end of the process", max(took), 1.0),
            at_least("tries in whose call a worker ended", lost, 1),
            *check(stage, accepted),
            never_500(stage),
        ]


async def _end(one: Program, sign: signal.Signals) -> tuple[float, int | None]:
    """How long it took to end, and its exit code."""
    loop = asyncio.get_running_loop()
    began = loop.time()
    one.wanted = False
    if one.alive():
        one.send(sign)
    code = await one.ended(CALL_SECONDS + 4 * END_SECONDS)
    return loop.time() - began, code
