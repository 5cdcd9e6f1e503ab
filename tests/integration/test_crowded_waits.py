"""Whoever waits for an end holds no place to work in: any number of them leaves the API free for others."""

from __future__ import annotations

import asyncio

import pytest

from hango.api.places import MOST_AT_WORK
from hango.config import Settings
from tests.desks import make_desk
from tests.people import a_batch, a_preview, a_run, a_try, serve

STEP_SECONDS = 20
WAITERS = MOST_AT_WORK + 6


@pytest.mark.parametrize("kind", ["runs", "tries", "try-batches", "summary-previews"])
async def test_those_who_wait_hold_nobody_up(kind: str, settings: Settings) -> None:
    """More wait than may work at once; another request is answered, and each of them is when the wait is over."""
    async with serve(settings) as api:
        desk = await make_desk(await api.admin())
        if kind == "runs":
            made = await a_run(desk.owner, desk.session_id, message="Where?")
        elif kind == "tries":
            made = await a_try(desk.owner, desk.session_id)
        elif kind == "try-batches":
            made = await a_batch(desk.owner, desk.session_id)
        else:
            await desk.change(compaction={"keep_messages": 1})
            made = await a_preview(desk.owner, desk.session_id)
        path = f"/v1/{kind}/{made['id']}?wait=50"
        waits = [asyncio.ensure_future(desk.owner.get(path)) for _ in range(WAITERS)]
        async with asyncio.timeout(STEP_SECONDS):
            while len(api.runtime.waiters) < WAITERS:
                assert not any(wait.done() for wait in waits)
                await asyncio.sleep(0.01)
            other = await desk.owner.get("/v1/me")
            api.runtime.waiters.release()
            answers = await asyncio.gather(*waits)

    assert other.status_code == 200
    assert [answer.status_code for answer in answers] == [200] * WAITERS
