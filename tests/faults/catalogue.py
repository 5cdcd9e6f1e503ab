"""Every fault that `./dev faults` can show, by name: one literal table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from tests.faults.cancels import cancels
from tests.faults.clocks import clocks
from tests.faults.control import control
from tests.faults.kill_loop import kill_loop
from tests.faults.lost_replies import lost_replies
from tests.faults.postgres_away import postgres_away
from tests.faults.redis_away import redis_away
from tests.faults.run import Show
from tests.faults.stops import at_once, orderly
from tests.faults.zombie import zombie


@dataclass(frozen=True, slots=True)
class Fault:
    """`row` is its place in docs/faults.md."""

    row: str
    title: str
    show: Show


FAULTS: Final[Mapping[str, Fault]] = {
    "kill-loop": Fault("F1", "everything killed again and again under load", kill_loop),
    "control": Fault("F2", "the checks find out a naive worker", control),
    "lost-replies": Fault("F5", "replies of Valkey and PostgreSQL that never arrive", lost_replies),
    "redis-away": Fault("F6", "Valkey killed, wiped, silent, full, read-only, slow", redis_away),
    "postgres-away": Fault(
        "F7", "PostgreSQL crashed, restarted, silent, locked, full; sessions dropped", postgres_away
    ),
    "orderly-stop": Fault("F10", "workers told to end while they work", orderly),
    "sudden-stop": Fault("F11", "workers told twice", at_once),
    "clocks": Fault("F12", "processes whose clocks are wrong", clocks),
    "zombie": Fault("F13", "a worker frozen for longer than its lease", zombie),
    "cancels": Fault("F14", "cancels at any moment, workers killed meanwhile", cancels),
}
