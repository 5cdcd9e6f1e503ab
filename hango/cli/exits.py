"""How a command ends: the one table of exit codes, and the failure that carries one of them."""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum


class ExitCode(IntEnum):
    """What a program may rely on. The table in docs/cli.md is made from it."""

    OK = 0
    REFUSED = 1
    USAGE = 2
    WAIT_RAN_OUT = 3
    NO_API = 4

    @property
    def meaning(self) -> str:
        return _MEANINGS[self]


_MEANINGS = {
    ExitCode.OK: "Done.",
    ExitCode.REFUSED: "Refused or failed. One sentence on stderr says what, which and what to do.",
    ExitCode.USAGE: "The command was called with words or options that it does not take.",
    ExitCode.WAIT_RAN_OUT: "The answer did not come in time.",
    ExitCode.NO_API: "The API cannot be reached.",
}


class Failure(Exception):
    """A command cannot go on. `sentence` is for people; `more` holds further faults, one line each.

    `pause` is set where the same question may be answered after so many seconds.
    """

    def __init__(
        self,
        sentence: str,
        *,
        code: ExitCode = ExitCode.REFUSED,
        more: Sequence[str] = (),
        pause: float | None = None,
    ) -> None:
        super().__init__(sentence)
        self.sentence = sentence
        self.code = code
        self.more = tuple(more)
        self.pause = pause
