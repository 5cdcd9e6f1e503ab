"""Prints the MiB that one inspect adds to a process that has done small ones before. Takes the number of messages."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from bench.contestant import settle
from bench.product.caller import Caller
from bench.product.contestant import inspect
from hango.api.app import open_runtime

MIB = 1024


async def measure(size: int) -> float:
    caller = Caller.of_place()
    sessions = caller.sessions
    async with open_runtime(caller.settings) as runtime:
        await inspect(runtime.deps, caller.principal, sessions[min(sessions)], 0)
        settle()
        _forget_peak()
        before = _kib("VmRSS")
        await inspect(runtime.deps, caller.principal, sessions[size], 0)
        return (_kib("VmHWM") - before) / MIB


def _forget_peak() -> None:
    Path("/proc/self/clear_refs").write_text("5")


def _kib(name: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith(f"{name}:")).split()[1])


if __name__ == "__main__":
    print(asyncio.run(measure(int(sys.argv[1]))))
