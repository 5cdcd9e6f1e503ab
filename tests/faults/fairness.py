"""L4: one tenant has ten thousand tries waiting; three others send ten each and get their answers at once."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Final
from uuid import uuid4

import psycopg

from tests.faults.callers import Caller
from tests.faults.invariants import check, rows, until
from tests.faults.provider import Act
from tests.faults.report import Figure, at_least, at_most, exactly, percentile
from tests.faults.run import Run
from tests.faults.stage import Shape, Stage, staged

QUEUED: Final = 10_000
BATCH: Final = 1000
CALL_SECONDS: Final = 0.02
OTHERS: Final = 10
CAP: Final = 16
MOST_SECONDS: Final = 2.0
MOST_PICK_SECONDS: Final = 0.06
PICKS: Final = 100
RUNNING: Final = "select count(*) from tries where status = 'running' and tenant_id = %s"


async def fairness(run: Run) -> Sequence[Figure]:
    settings = {"HANGO_CONTEXT_TRY_TENANT_OUTSTANDING": "100000", "HANGO_CONTEXT_TRY_TENANT_RUNNING": str(CAP)}
    async with staged(Shape(tenants=4, settings=settings), run.folder) as stage:
        big, *others = stage.callers
        for _ in range(QUEUED // BATCH):
            await _batch(big)
        watching = asyncio.create_task(_most_running(stage, big))
        waiting = rows(stage, "select count(*) from tries where status = 'queued'")[0][0]
        took = await asyncio.gather(*(_ten(caller) for caller in others))
        picks = await asyncio.to_thread(_picks, stage)
        still = rows(stage, "select count(*) from tries where status = 'queued'")[0][0]
        watching.cancel()
        most = await watching
        for batch in (await big.call("GET", f"/v1/sessions/{big.session_id}/try-batches"))["data"]:
            await big.call("POST", f"/v1/try-batches/{batch['id']}/cancel")
        await until(stage, "select from tries where finished_at is null", 60)
        return [
            at_least("waiting tries of A when the others come", waiting, 0.7 * QUEUED),
            at_least("waiting tries of A when they are done", still, 0.5 * QUEUED),
            at_most("the slowest of B, C and D had all ten answers after", max(took), MOST_SECONDS),
            exactly("A ran more than its cap", most > CAP, False),
            at_most("99th percentile of a pick", percentile(picks, 0.99), MOST_PICK_SECONDS),
            *check(stage, []),
        ]


async def _batch(caller: Caller) -> None:
    variants = [{"message": Act(seconds=CALL_SECONDS).text} for _ in range(BATCH)]
    status, reply, _ = await caller.ask(
        "POST",
        f"/v1/sessions/{caller.session_id}/context/try-batches",
        {"variants": variants, "repeats": 1},
        key=uuid4().hex,
        seconds=60,
    )
    assert status == 202, reply


async def _ten(caller: Caller) -> float:
    """Seconds from the first POST to the last answer."""
    began = time.monotonic()

    async def one() -> None:
        accepted = await caller.start(Act(seconds=CALL_SECONDS))
        assert accepted is not None
        while (await caller.read(accepted, wait=20))["finished_at"] is None:
            pass

    await asyncio.gather(*(one() for _ in range(OTHERS)))
    return time.monotonic() - began


async def _most_running(stage: Stage, caller: Caller) -> int:
    most = 0
    with suppress(asyncio.CancelledError):
        while True:
            most = max(most, (await asyncio.to_thread(rows, stage, RUNNING, caller.tenant_id))[0][0])
            await asyncio.sleep(0.05)
    return most


def _picks(stage: Stage) -> list[float]:
    """Seconds of picks like a worker's, beside those of the workers; each is taken back."""
    took = []
    with psycopg.connect(stage.database_url) as connection:
        for _ in range(PICKS):
            began = time.perf_counter()
            connection.execute("select claim_tries(%s, '1 minute', 100, 8)", [uuid4()])
            took.append(time.perf_counter() - began)
            connection.rollback()
            time.sleep(0.02)
    return took
