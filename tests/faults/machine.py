"""How busy the machine is with other things. What a fault run may take is for an idle one."""

from __future__ import annotations

import time
from typing import Final

SECONDS: Final = 1.0


def slowness(seconds: float = SECONDS) -> float:
    """How many times as long as its work takes a processor this process waits for it: 1.0 when nobody else works."""
    began, worked = time.perf_counter(), time.process_time()
    while time.process_time() - worked < seconds / 2 and time.perf_counter() - began < 10 * seconds:
        sum(range(10_000))
    return (time.perf_counter() - began) / (time.process_time() - worked)
