"""The file that is imported: one document, or JSON Lines read one line at a time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO

import msgspec

from hango.errors import TooLarge

# A document is read whole, and takes several times its size in memory.
MAX_DOCUMENT = 64 * 1024 * 1024
_BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class Line:
    number: int  # the first is 1
    offset: int  # bytes from the start of the file
    text: bytes


class Source:
    """A file that can be read from any place. Closed by the one who opened it."""

    def __init__(self, file: BinaryIO, size: int) -> None:
        self._file = file
        self.size = size  # bytes

    def document(self) -> bytes:
        """The whole file. Raises TooLarge over 64 MiB."""
        if self.size > MAX_DOCUMENT:
            raise TooLarge("The file is over 64 MiB, and only JSON Lines may be. Split it, or write one item a line.")
        self._file.seek(0)
        return self._file.read(self.size).removeprefix(_BOM)

    def lines(self) -> Iterator[Line]:
        """Every line that is not blank. Raises TooLarge for a line over 64 MiB."""
        offset = number = 0
        while True:
            line = self.line_at(offset, number + 1)
            if not line.text:
                return
            number += 1
            text = line.text.removeprefix(_BOM) if number == 1 else line.text
            if text.strip():
                yield Line(number, offset, text)
            offset += len(line.text)

    def line_at(self, offset: int, number: int) -> Line:
        """The line that starts at the offset; its text is empty at the end of the file."""
        self._file.seek(offset)
        text = self._file.readline(MAX_DOCUMENT + 1)
        if len(text) > MAX_DOCUMENT:
            raise TooLarge(f"Line {number} is over 64 MiB.")
        return Line(number, offset, text)

    def is_lines(self) -> bool:
        """True for JSON Lines: more than one line, and the first is a JSON value by itself."""
        lines = self.lines()
        first = next(lines, None)
        if first is None or first.offset + len(first.text) >= self.size:
            return False
        try:
            msgspec.json.decode(first.text, type=msgspec.Raw)
        except (msgspec.DecodeError, RecursionError):
            # Half of a surrogate pair and deep nesting are no reason to take JSON Lines for one document.
            return first.text.rstrip()[-1:] == b"}" and first.text.lstrip()[:1] == b"{"
        return next(lines, None) is not None
