"""How long the event loop of a test is held by one step, in its own work alone: a busy machine changes nothing."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass


@dataclass
class LoopWork:
    """CPU seconds of the loop's thread: all of them, and those of the longest round of it."""

    total: float = 0.0
    longest: float = 0.0


@asynccontextmanager
async def watched_loop() -> AsyncIterator[LoopWork]:
    """What the loop works within the block. Whatever else is to be done waits for one round at most."""
    work = LoopWork()

    async def turn() -> None:
        before = time.thread_time()
        while True:
            await asyncio.sleep(0)
            now = time.thread_time()
            work.total += now - before
            work.longest = max(work.longest, now - before)
            before = now

    turning = asyncio.create_task(turn())
    await asyncio.sleep(0)
    try:
        yield work
        await asyncio.sleep(0)  # the last round counts too
    finally:
        turning.cancel()
        with suppress(asyncio.CancelledError):
            await turning
