"""Security row 19: hundreds of clients that send a byte now and then; others are answered as if they were not there."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Final
from urllib.parse import urlsplit

from tests.faults.callers import Caller
from tests.faults.report import Figure, at_least, at_most, percentile
from tests.faults.run import Run
from tests.faults.stage import Shape, staged

SLOW: Final = 300
OTHERS: Final = 100
SECONDS: Final = 15.0
DRIP_SECONDS: Final = 1.0
PAUSE_SECONDS: Final = 1.0  # between two requests of one of the others
MOST_SECONDS: Final = 0.3
# The limit for a request to come whole, and a second for a busy machine.
MOST_OPEN_SECONDS: Final = 16.0
GIVEN_UP_SECONDS: Final = 40.0

HEAD: Final = b"GET /v1/me HTTP/1.1\r\nhost: x\r\n"
HALF_BODY: Final = (
    b"POST /v1/agents HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: 1000\r\n"
    b"authorization: Bearer %s\r\n\r\n{"
)


async def slow_clients(run: Run) -> Sequence[Figure]:
    async with staged(Shape(workers=0, tenants=4), run.folder) as stage:
        port = urlsplit(stage.urls[0]).port
        assert port is not None
        key = stage.callers[0].key.encode()
        # Three kinds: nothing at all, a head that goes on and on, a body that does.
        begins = [(b"", b""), (HEAD, b"x-a: b\r\n"), (HALF_BODY % key, b" ")]
        slow = [asyncio.create_task(_drip(port, *begins[number % len(begins)])) for number in range(SLOW)]
        asking = [asyncio.create_task(_ask(stage.callers[number % 4])) for number in range(OTHERS)]
        took = [seconds for one in await asyncio.gather(*asking) for seconds in one]
        opened = await asyncio.gather(*slow)
        return [
            at_least("requests of the others", len(took), OTHERS * SECONDS / PAUSE_SECONDS / 3),
            at_most("95th percentile of their answers", percentile(took, 0.95), MOST_SECONDS),
            at_most("the longest that a slow client stayed", max(opened), MOST_OPEN_SECONDS),
        ]


async def _drip(port: int, begin: bytes, more: bytes) -> float:
    """How long the server put up with it."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    began = time.monotonic()
    writer.write(begin)
    with suppress(OSError):
        while time.monotonic() - began < GIVEN_UP_SECONDS:
            with suppress(TimeoutError):
                async with asyncio.timeout(DRIP_SECONDS):
                    while await reader.read(4096):
                        pass  # an answer; the end of the connection is what counts
                break
            writer.write(more)
            await writer.drain()
    writer.close()
    return time.monotonic() - began


async def _ask(caller: Caller) -> list[float]:
    took = []
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        status, _, seconds = await caller.ask("GET", f"/v1/sessions/{caller.session_id}")
        assert status == 200
        took.append(seconds)
        await asyncio.sleep(PAUSE_SECONDS)
    return took
