"""What a client of PostgreSQL has said in the transaction that is open, read from the bytes of its connection.

Statements are prepared, so their text passes once and only a name afterwards; a proxy that is to lose the reply to the
COMMIT of a certain transaction has to remember which name is which statement.
"""

from __future__ import annotations

import re
from typing import Final

PARSE: Final = re.compile(rb"P.{4}([^\0]*)\0([^\0]*)\0", re.DOTALL)
BIND: Final = re.compile(rb"B.{4}[^\0]*\0(_pg3_[0-9]+)\0", re.DOTALL)
IDLE: Final = b"Z\0\0\0\x05I"  # ReadyForQuery: no transaction is open


class Conversation:
    """One connection. `asked` is the text of all statements since it was idle last, as far as it was understood."""

    def __init__(self) -> None:
        self.asked = b""
        self._prepared: dict[bytes, bytes] = {}
        self._over = False

    def says(self, piece: bytes) -> None:
        if self._over:
            self.asked, self._over = b"", False
        self._prepared.update(PARSE.findall(piece))
        named = b" ".join(self._prepared.get(name, b"") for name in BIND.findall(piece))
        self.asked += piece + named

    def hears(self, piece: bytes) -> None:
        """A reply went through. What was asked stands until something new is."""
        self._over = piece.endswith(IDLE)
