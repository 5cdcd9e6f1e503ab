"""The sizes of a draft's parts, as records. They are worked out in `measure.py`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class GroupSize:
    """Tokens of one group. `parts` are of what would be sent were the part included, in the draft's order."""

    parts: list[int]
    originals: Mapping[int, int]  # of replaced parts: the original's tokens, by index
    before: int  # no override applied
    after: int  # all overrides applied


@dataclass(frozen=True, slots=True)
class Size:
    system: GroupSize
    tools: GroupSize
    messages: GroupSize

    @property
    def before(self) -> int:
        return self.system.before + self.tools.before + self.messages.before

    @property
    def after(self) -> int:
        return self.system.after + self.tools.after + self.messages.after
