"""Every fault that `./dev faults` can show, by name: one literal table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from tests.faults.control import control
from tests.faults.kill_loop import kill_loop
from tests.faults.lost_replies import lost_replies
from tests.faults.run import Show


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
}
