"""Patterns of paths: `*` is any text within a name, `?` one letter of it, `**` any number of folders. Pure.

Everything else is itself. A pattern is matched in one pass over the path, with all places where it may stand at once as
the bits of a number: no pattern takes longer than another of its length.
"""

from __future__ import annotations

import re

_PIECE = re.compile(r"(?<=/)(?:\*\*/)+|(?<=/)\*\*\Z|\*+|[^*]", re.DOTALL)


class Glob:
    """One pattern, ready to be matched. `prefix` is the folder that every matching path begins with."""

    def __init__(self, pattern: str) -> None:
        pattern = "/" + pattern.lstrip("/")
        self.prefix = re.split(r"[*?]", pattern, maxsplit=1)[0].rpartition("/")[0] + "/"
        self._letters: dict[str, int] = {}
        self._names = self._one = self._folders = self._rest = 0
        pieces: list[str] = _PIECE.findall(pattern)
        for at, piece in enumerate(pieces):
            bit = 1 << at
            if piece.startswith("**/"):
                self._folders |= bit
            elif piece == "**" and pieces[at - 1] == "/" and at == len(pieces) - 1:
                self._rest |= bit
            elif piece.startswith("*"):
                self._names |= bit
            elif piece == "?":
                self._one |= bit
            else:
                self._letters[piece] = self._letters.get(piece, 0) | bit
        self._end = 1 << len(pieces)

    def matches(self, path: str) -> bool:
        """Whether the whole path fits."""
        skipped = self._names | self._rest
        every = skipped | self._folders
        here = _reach(1, every)
        for letter in path:
            goes, stays = self._letters.get(letter, 0), self._folders | self._rest
            if letter == "/":
                goes |= self._folders
            else:
                goes, stays = goes | self._one, stays | self._names
            # Folders may be none at all, but once begun they end with a slash.
            here = _reach((here & goes) << 1, every) | _reach(here & stays, skipped)
            if not here:
                return False
        return bool(here & self._end)


def _reach(here: int, skipped: int) -> int:
    """The places, and those after what may stand for nothing."""
    while (more := here | (here & skipped) << 1) != here:
        here = more
    return here
