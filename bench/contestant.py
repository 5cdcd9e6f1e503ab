"""The contestant's side of a bench: a process that opens and times its cases as the runner asks, one JSON line each.

Standard library only, because the peers' environments read it too.
"""

from __future__ import annotations

import gc
import json
import os
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PLACE = "HANGO_BENCH_PLACE"

Facts = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Work:
    """What is timed. `facts` tells of its result what has to be right before any time counts."""

    run: Callable[[], Any]
    facts: Callable[[Any], Facts]


Opener = Callable[[int], Work]  # takes the number of messages


def place() -> dict[str, Any]:
    """Where the services and the sessions of this bench are, as the runner wrote it down."""
    found: dict[str, Any] = json.loads(Path(os.environ[PLACE]).read_text())
    return found


def serve(cases: Mapping[str, Opener]) -> None:
    """Answer the runner until it closes our standard input. Whatever else prints goes to standard error."""
    replies = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    opened: dict[tuple[str, int], Work] = {}
    for line in sys.stdin:
        asked = json.loads(line)
        key = asked["case"], asked["size"]
        if asked["do"] == "open":
            work = opened[key] = cases[key[0]](key[1])
            reply: dict[str, Any] = {"facts": work.facts(work.run())}
            settle()
        else:
            reply = {"ms": repeat(opened[key].run, seconds=asked["seconds"])}
        print(json.dumps(reply), file=replies, flush=True)


def settle() -> None:
    """What is there by now is not walked through by the collector in the middle of a measurement."""
    gc.collect()
    gc.freeze()


def repeat(run: Callable[[], Any], *, seconds: float, least: int = 3) -> list[float]:
    """Milliseconds of each run, for about `seconds`. One run before does not count: it wakes caches up."""
    run()
    times: list[float] = []
    end = time.perf_counter() + seconds
    while len(times) < least or time.perf_counter() < end:
        before = time.perf_counter()
        made = run()
        times.append((time.perf_counter() - before) * 1000)
        del made
    return times
