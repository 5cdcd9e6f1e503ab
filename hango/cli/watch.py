"""Keeps the parts of `hango up` running: one that ended by itself is started again, within reason."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

from hango.cli import output
from hango.errors import Unavailable

LOOK_SECONDS = 0.2
# A part that ends this often has a fault that a further start will not mend.
MOST_RESTARTS = 5
WITHIN_SECONDS = 60.0


class Part(Protocol):
    """A process of ours."""

    @property
    def name(self) -> str: ...
    @property
    def word(self) -> str: ...
    @property
    def pid(self) -> int | None: ...
    @property
    def log_file(self) -> Path: ...
    def alive(self) -> bool: ...
    def start(self) -> object: ...
    def stop(self) -> None: ...


def watch(parts: Sequence[Part], changed: Callable[[], None]) -> None:
    """Goes on until interrupted. `changed` is called after a restart. Raises Unavailable when it gives up."""
    restarts: dict[str, deque[float]] = {part.word: deque(maxlen=MOST_RESTARTS) for part in parts}
    while True:
        time.sleep(LOOK_SECONDS)
        for part in parts:
            if part.alive():
                continue
            seen = restarts[part.word]
            now = time.monotonic()
            if len(seen) == MOST_RESTARTS and now - seen[0] < WITHIN_SECONDS:
                raise Unavailable(f"{part.name} ends again and again; its log is {part.log_file}.")
            seen.append(now)
            output.note(f"hango: {part.name} ended and is started again; its log is {part.log_file}")
            part.stop()
            part.start()
            changed()
