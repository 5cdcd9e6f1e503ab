"""What a fault is told when it is run: for how long, by which seed, in which folder."""

from __future__ import annotations

import random
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.faults.report import Figure


@dataclass(frozen=True, slots=True)
class Run:
    """`minutes` None: as long as the fault takes by itself. `slowness` is how busy the machine is with other things."""

    folder: Path
    seed: int
    minutes: float | None = None
    slowness: float = 1.0

    def seconds(self, default: float) -> float:
        return default if self.minutes is None else self.minutes * 60

    def within(self, seconds: float) -> float:
        """What takes so long on an idle machine."""
        return seconds * self.slowness

    def random(self, what: str) -> random.Random:
        return random.Random(f"{self.seed} {what}")


Show = Callable[[Run], Coroutine[None, None, Sequence[Figure]]]
