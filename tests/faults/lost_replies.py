"""F5: replies that never arrive, of the queue and of COMMIT: what was done is done, and nobody knows."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

from tests.faults.invariants import check, until_over
from tests.faults.load import answered_in, load
from tests.faults.proxy import Matches, Proxy
from tests.faults.report import Figure, at_least
from tests.faults.run import Run
from tests.faults.stage import Shape, Stage, staged
from tests.faults.summary import never_500, summary

TIMES: Final = 50
SECONDS: Final = 150.0
TRIES_PER_SECOND: Final = 8
DRAIN_SECONDS: Final = 60.0
COMMIT: Final = b"COMMIT"

# The argument of Dramatiq's script in Redis, as it goes over the wire.
OF_REDIS: Final = {"fetch": b"$5\r\nfetch", "enqueue": b"$7\r\nenqueue", "ack": b"$3\r\nack"}
# A statement that stands in one kind of transaction alone.
OF_POSTGRES: Final = {
    "COMMIT of the admission": b"insert into tries (",
    "COMMIT of the claim": b"claim_tries(",
    "COMMIT of the mark": b"set called_at = clock_timestamp()",
    "COMMIT of the settlement": b"insert into try_payloads",
}


async def lost_replies(run: Run) -> Sequence[Figure]:
    seconds = run.seconds(SECONDS)
    times = TIMES if seconds >= SECONDS else max(1, int(TIMES * seconds / SECONDS))
    async with staged(Shape(postgres_apart=True, redis_apart=True), run.folder) as stage:
        cutting = {
            name: asyncio.create_task(_cut(proxy, matches, times, run.random(name)))
            for name, proxy, matches in _wanted(stage)
        }
        accepted = await load(
            stage, round(TRIES_PER_SECOND * seconds), seconds, run.random("load"), draw=answered_in(0.05, 0.3)
        )
        lost = {name: await _end(task) for name, task in cutting.items()}
        await until_over(stage, DRAIN_SECONDS)
        return [
            *(at_least(f"lost replies: {name}", number, times) for name, number in lost.items()),
            *summary(stage),
            *check(stage, accepted),
            never_500(stage),
        ]


def _wanted(stage: Stage) -> list[tuple[str, Proxy, Matches]]:
    redis = [(name, stage.redis_proxy, _answers_both(text)) for name, text in OF_REDIS.items()]
    return redis + [(name, stage.postgres_proxy, _answers_both(text, COMMIT)) for name, text in OF_POSTGRES.items()]


def _answers_both(*texts: bytes) -> Matches:
    return lambda asked, _: all(text in asked for text in texts)


async def _cut(proxy: Proxy, matches: Matches, times: int, rng: random.Random) -> int:
    """Lose one of the next replies that match, again and again."""
    lost = 0
    with suppress(asyncio.CancelledError):
        while lost < times:
            await proxy.cut(matches, nth=rng.randint(1, 4)).wait()
            lost += 1
    return lost


async def _end(task: asyncio.Task[int]) -> int:
    task.cancel()
    return await task
