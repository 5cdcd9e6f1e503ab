"""Work that goes on after a short absence of PostgreSQL, instead of when its lease is over and another worker comes."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeVar

from hango.errors import Unavailable
from hango.workers.held import Held

FIRST_PAUSE_SECONDS: Final = 0.1
LONGEST_PAUSE_SECONDS: Final = 1.0

T = TypeVar("T")


async def again(held: Held[Any], seconds: float, act: Callable[[], Awaitable[T]]) -> T:
    """`act`, again each time that PostgreSQL is away; it has to find out by itself what is done already.

    Raises Unavailable when the claim is no longer in force or shall end, and after `seconds` of nothing but failures.
    """
    loop = asyncio.get_running_loop()
    failing_since, pause = None, FIRST_PAUSE_SECONDS
    while True:
        began = loop.time()
        try:
            return await act()
        except Unavailable:
            now = loop.time()
            if failing_since is None or now - began > 2 * seconds:  # it had worked meanwhile
                failing_since, pause = now, FIRST_PAUSE_SECONDS
            if held.ending.done() or now - failing_since > seconds:
                raise
        ends: set[asyncio.Future[Any]] = {held.ending, held.leaving}
        await asyncio.wait(ends, timeout=pause, return_when=asyncio.FIRST_COMPLETED)
        pause = min(2 * pause, LONGEST_PAUSE_SECONDS)
