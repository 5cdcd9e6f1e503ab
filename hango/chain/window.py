"""A stretch of one group: which parts a reader wants to see. Totals are always of the whole."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

from hango.digests import MessageDigest


@dataclass(frozen=True, slots=True)
class Window:
    """`group` None: all groups. `after` and `limit` are of the messages: those with a seq over `after`."""

    group: str | None = None
    after: int | None = None
    limit: int | None = None

    def shows(self, group: str) -> bool:
        return self.group is None or self.group == group

    def of_messages(self, items: Sequence[MessageDigest]) -> tuple[int, int, int | None]:
        """First and last index (exclusive) of the items shown, and the `after` of the next stretch."""
        start = 0 if self.after is None else bisect_right(_Seqs(items), self.after)
        stop = len(items) if self.limit is None else min(start + self.limit, len(items))
        shown = items[stop - 1].seq if stop > start else None
        return start, stop, shown if stop < len(items) else None


class _Seqs(Sequence[int]):
    """The items' places in order: the summary first, the extra text (seq -1) after all."""

    def __init__(self, items: Sequence[MessageDigest]) -> None:
        self._items = items

    def __len__(self) -> int:
        return len(self._items)

    def __getitem__(self, at: int) -> int:  # type: ignore[override]  # bisect asks for single places only
        seq = self._items[at].seq
        return seq if seq >= 0 else 2**63


WHOLE = Window()
HEAD = Window(limit=0)  # no message
