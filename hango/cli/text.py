"""Text of others on a terminal: nothing in it can act, and its width is known. No colours, no layout.

A message may hold escape codes that clear a screen or fill the clipboard, direction controls that make a line
read as another, and letters that nobody sees. All of them are shown by their number, so that what is in the
context is what is read.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from wcwidth import iter_graphemes, wcswidth, wcwidth

ELLIPSIS = "…"
NEWLINE = "⏎"
DOTTED_CIRCLE = "◌"

# Everything that acts or hides: C0 and C1 controls, direction controls, line and paragraph separators, halves
# of surrogate pairs, and the characters of Unicode that are drawn as nothing. The joiners U+200C and U+200D and
# the selectors U+FE0E and U+FE0F stay: several scripts, and emoji of several people, are written with them.
_UNSAFE = re.compile(
    "["
    "\x00-\x1f\x7f-\x9f"
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f"
    "\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\u3164"
    "\ud800-\udfff\ufe00-\ufe0d\ufeff\uffa0\ufff0-\ufffb"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
    "]"
)
_LINE_ENDS = re.compile(r"\r\n|[\r\n\x0b\x0c\x85\u2028\u2029]")
_BREAK = re.compile(r"[ \t]*(?:\n[ \t]*)+")
TAB_WIDTH = 4
READ_OF_LINE = 1000  # characters: more than a line of a terminal has columns


def one_line(text: str) -> str:
    """The text on one line: a run of line ends is one `⏎`, what acts or hides is shown by its number."""
    if text.isascii() and text.isprintable():
        return text
    text = _BREAK.sub(f" {NEWLINE} ", _LINE_ENDS.sub("\n", text)).replace("\t", " ")
    text = _UNSAFE.sub(_by_number, text)
    # A mark with no letter before it would stand on whatever the line holds to its left.
    return DOTTED_CIRCLE + text if text and wcwidth(text[0]) == 0 else text


def lines(text: str) -> list[str]:
    """The text line by line, uncut, with everything that acts or hides shown by its number."""
    return [_UNSAFE.sub(_by_number, line.expandtabs(TAB_WIDTH)) for line in _LINE_ENDS.sub("\n", text).split("\n")]


def cells(text: str) -> int:
    """How many columns of a terminal the text takes, once it went through `one_line` or `lines`."""
    return len(text) if text.isascii() else max(0, wcswidth(text))


def cut(text: str, room: int) -> str:
    """The text in at most `room` columns: whole when it fits, else whole letters and an ellipsis."""
    if cells(text) <= room:
        return text
    if room < 1:
        return ""
    if text.isascii():
        return text[: room - 1].rstrip(" ") + ELLIPSIS
    kept: list[str] = []
    left = room - 1
    for letter in iter_graphemes(text):
        left -= cells(letter)
        if left < 0:
            break
        kept.append(letter)
    # Some letters are wider beside others than alone; the whole counts.
    while cells(short := "".join(kept).rstrip(" ") + ELLIPSIS) > room:
        kept.pop()
    return short


def cut_middle(text: str, room: int) -> str:
    """The text in at most `room` columns: whole when it fits, else its two ends with an ellipsis between them."""
    if cells(text) <= room:
        return text
    head = cut(text, (room + 1) // 2)
    tail: list[str] = []
    for letter in reversed(list(iter_graphemes(text))):
        if cells(head + "".join((letter, *tail))) > room:
            break
        tail.insert(0, letter)
    return head + "".join(tail)


def pad(text: str, width: int) -> str:
    """The text with spaces up to `width` columns; a longer one stays as it is."""
    return text + " " * (width - cells(text))


def wrap(text: str, width: int) -> list[str]:
    """The words of a sentence on lines of at most `width` columns; a longer word has a line of its own."""
    made: list[str] = []
    for word in one_line(text).split(" "):
        if made and cells(made[-1]) + 1 + cells(word) <= width:
            made[-1] += f" {word}"
        else:
            made.append(word)
    return made


@dataclass(frozen=True, slots=True)
class Folded:
    """The beginning of a text. `whole`: it is all of it."""

    lines: tuple[str, ...]
    whole: bool


def fold(text: str, width: int, most: int) -> Folded:
    """At most so many lines of at most `width` columns. Of several lines each is cut; a single one goes on below.

    What acts or hides is shown by its number. White space at the end of the text does not count.
    """
    text = text.rstrip()
    begun = text[: most * READ_OF_LINE]  # a text of megabytes is not read for its first lines
    found = lines(begun) if begun else []
    shown = (
        [cut(line, width) for line in found]
        if len(found) > 1
        else [piece for line in found for piece in _broken(line, width)]
    )
    whole = len(begun) == len(text) and len(shown) <= most and (len(found) <= 1 or shown == found)
    return Folded(tuple(shown[:most]), whole)


def _broken(line: str, width: int) -> list[str]:
    """Pieces of a line that went through `lines`; a line of nothing is one piece."""
    if line.isascii():
        return [line[at : at + width] for at in range(0, len(line), width)] or [""]
    pieces = [""]
    for letter in iter_graphemes(line):
        if pieces[-1] and cells(pieces[-1] + letter) > width:
            pieces.append("")
        pieces[-1] += letter
    return pieces


def number(value: int) -> str:
    return f"{value:,}"


def _by_number(match: re.Match[str]) -> str:
    return f"⟨U+{ord(match.group()):04X}⟩"
