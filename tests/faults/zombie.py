"""F13: a worker is frozen in the middle of its calls for longer than its lease, and comes back with their answers."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Sequence
from typing import Final

from tests.faults.invariants import check, rows, until, until_over
from tests.faults.programs import becomes
from tests.faults.provider import Act
from tests.faults.report import Figure, exactly, told
from tests.faults.run import Run
from tests.faults.stage import Shape, staged
from tests.faults.summary import summary

TRIES: Final = 10
CALL_SECONDS: Final = 2.0
PATIENCE_SECONDS: Final = 40.0
BILLS: Final = "select count(*), count(*) filter (where estimated) from usage_records"


async def zombie(run: Run) -> Sequence[Figure]:
    # The limit of a call is longer than the freeze: the answers that wait in the frozen worker are still good.
    shape = Shape(workers=1, settings={"HANGO_CONTEXT_TRY_TIMEOUT": "60s"})
    async with staged(shape, run.folder) as stage:
        (worker,) = stage.workers
        started = await asyncio.gather(
            *(stage.callers[number % 3].start(Act(seconds=CALL_SECONDS)) for number in range(TRIES))
        )
        accepted = [one for one in started if one is not None]
        await becomes(lambda: len(stage.provider.called()) == TRIES)
        worker.send(signal.SIGSTOP)
        await until_over(stage, PATIENCE_SECONDS)
        (statuses,) = rows(stage, "select count(*) filter (where status = 'lost'), count(*) from tries")
        (frozen,) = rows(stage, BILLS)
        worker.send(signal.SIGCONT)
        corrected = await until(stage, "select from usage_records where estimated", PATIENCE_SECONDS)
        (later,) = rows(stage, BILLS)
        return [
            *summary(stage),
            exactly("given up as lost while it was frozen", statuses, (TRIES, TRIES)),
            exactly("bills, and of these estimated, while it was frozen", frozen, (TRIES, TRIES)),
            exactly("bills, and of these estimated, after its answers came", later, (TRIES, 0)),
            told("from its return to the corrected bills", f"{corrected:.1f} s"),
            *check(stage, accepted),
        ]
