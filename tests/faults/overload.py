"""L5: more POSTs than can be taken on, for a minute. Each is answered, and what was accepted comes to its end."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from typing import Final
from uuid import uuid4

from tests.faults.callers import AWAY, Accepted
from tests.faults.invariants import check, until_over
from tests.faults.provider import Act
from tests.faults.report import Figure, at_most, exactly, percentile, told
from tests.faults.run import Run
from tests.faults.stage import Shape, Stage, staged
from tests.faults.summary import summary, words

SECONDS: Final = 60.0
OFFERED_PER_SECOND: Final = 500  # to an idle machine; to a busy one less
STEP_SECONDS: Final = 0.05
LAST_SECONDS: Final = 2.0
MOST_SECONDS: Final = 1.5
DRAIN_SECONDS: Final = 120.0
ANSWERS: Final = {"202", "429", "503"}


async def overload(run: Run) -> Sequence[Figure]:
    seconds = run.seconds(SECONDS)
    async with staged(Shape(tenants=8), run.folder) as stage:
        rate = OFFERED_PER_SECOND / run.slowness
        answers: Counter[str] = Counter()
        accepted: list[Accepted] = []
        asking: list[asyncio.Task[None]] = []
        loop = asyncio.get_running_loop()
        last: set[str] = set()
        began = loop.time()
        while (now := loop.time() - began) < seconds:
            due = round(now * rate) - len(asking)
            acts = [Act(seconds=0.05) for _ in range(due)]
            last |= {act.mark for act in acts if now > seconds - LAST_SECONDS}
            asking += [
                asyncio.create_task(_post(stage, len(asking) + n, act, answers, accepted)) for n, act in enumerate(acts)
            ]
            await asyncio.sleep(STEP_SECONDS)
        await asyncio.gather(*asking)
        took = loop.time() - began
        # After the last POST nobody comes any more: who waits then is let in late rather than refused.
        in_crowd = [one.seconds for one in accepted if one.mark not in last]
        await until_over(stage, DRAIN_SECONDS)
        others = {name: number for name, number in answers.items() if name not in ANSWERS}
        return [
            told("offered a second", f"{len(asking) / seconds:.0f}"),
            told("answered with", words(answers)),
            told("accepted a second", f"{len(accepted) / took:.0f}"),
            *summary(stage),
            exactly("answered with anything else", others, {}),
            exactly("answers", sum(answers.values()), len(asking)),
            at_most(
                "95th percentile of an accepted POST",
                percentile(in_crowd, 0.95),
                run.within(MOST_SECONDS),
            ),
            *check(stage, accepted),
        ]


async def _post(stage: Stage, number: int, act: Act, answers: Counter[str], accepted: list[Accepted]) -> None:
    tenant = number % len(stage.callers)
    try:
        status, reply, seconds = await stage.callers[tenant].post_try(act, key=uuid4().hex)
    except AWAY as error:
        answers[type(error).__name__] += 1
        return
    answers[str(status)] += 1
    if status == 202:
        accepted.append(Accepted(reply["id"], act.mark, seconds, tenant))
