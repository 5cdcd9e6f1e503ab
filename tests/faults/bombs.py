"""Security row 16: bodies that are made to cost much. Each is refused, memory stays, and others do not wait."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from typing import Final

import aiohttp

from tests.faults.callers import Caller
from tests.faults.report import Figure, at_most, none_of, percentile, told
from tests.faults.run import Run
from tests.faults.stage import Shape, Stage, staged

MIB: Final = 2**20
MOST_MIB: Final = 20.0
MOST_SECONDS: Final = 0.1
REFUSED: Final = {400, 413, 422}
PATCHED: Final = 20_000


def _bombs() -> dict[str, bytes]:
    big = 8 * MIB - 1000
    return {
        "150 MB of spaces": b" " * (150 * MIB),
        "15 MB of empty lists": b"[" + b"[]," * (5 * MIB) + b"[]]",
        "8 MiB of empty lists": b"[" + b"[]," * (big // 3) + b"[]]",
        "8 MiB of opened lists": b"[" * big,
        "a list in a list, 100,000 times": b"[" * 100_000 + b"]" * 100_000,
        "8 MiB of one number": b'{"message": ' + b"9" * big + b"}",
        "8 MiB of escapes": b'{"message": "' + b"\\u0000" * (big // 6) + b'"}',
        "a million names": json.dumps({f"n{number}": 0 for number in range(500_000)}).encode(),
        "one name a million times": b"{" + b'"a":0,' * 1_000_000 + b'"a":0}',
        "20,000 parts": json.dumps({"exclude": [f"message:{number}" for number in range(1, PATCHED)]}).encode(),
        "20,000 replacements": json.dumps({"replace": {f"message:{n}": "x" for n in range(1, PATCHED)}}).encode(),
        "8 MiB of bad UTF-8": b'{"message": "' + b"\xff" * big + b'"}',
    }


async def bombs(run: Run) -> Sequence[Figure]:
    async with staged(Shape(workers=0, tenants=2), run.folder) as stage:
        thrower, other = stage.callers
        # Once before it counts: the largest body that is taken makes room for itself, which stays for the next.
        await _throw(thrower, stage, b'{"message": "' + b"x" * (7 * MIB) + b'"}')
        answers: dict[str, tuple[int, float]] = {}
        figures: list[Figure] = []
        for name, body in _bombs().items():
            before, peak = stage.apis[0].rss_mib(), asyncio.create_task(_peak(stage))
            asking = asyncio.create_task(_ask(other))
            answers[name] = await _throw(thrower, stage, body)
            asking.cancel()
            peak.cancel()
            took = await asking
            figures += [
                told(f"{name}: answered", f"{answers[name][0]} in {answers[name][1]:.2f} s"),
                at_most(f"{name}: memory grows", await peak - before, MOST_MIB, "MiB"),
                at_most(f"{name}: 95th of others", percentile(took, 0.95) or 0.0, MOST_SECONDS),
            ]
        return [
            *figures,
            none_of("bombs that were not refused", [n for n, (s, _) in answers.items() if s not in REFUSED]),
        ]


async def _throw(caller: Caller, stage: Stage, body: bytes) -> tuple[int, float]:
    """Status and seconds; 0 where the connection was closed before an answer could be read."""
    began = time.perf_counter()

    async def pieces() -> AsyncIterator[bytes]:
        for at in range(0, len(body), 65_536):
            yield body[at : at + 65_536]

    url = f"{stage.urls[0]}/v1/sessions/{caller.session_id}/context/try"
    headers = {"authorization": f"Bearer {caller.key}", "content-type": "application/json"}
    status = 0
    async with aiohttp.ClientSession(headers=headers) as client:
        with suppress(aiohttp.ClientError):
            async with client.post(url, data=pieces()) as reply:
                status = reply.status
    return status, time.perf_counter() - began


async def _ask(caller: Caller) -> list[float]:
    took: list[float] = []
    with suppress(asyncio.CancelledError):
        while True:
            _, _, seconds = await caller.ask("GET", f"/v1/sessions/{caller.session_id}")
            took.append(seconds)
            await asyncio.sleep(0.01)
    return took


async def _peak(stage: Stage) -> float:
    most = 0.0
    with suppress(asyncio.CancelledError):
        while True:
            most = max(most, stage.apis[0].rss_mib())
            await asyncio.sleep(0.02)
    return most
