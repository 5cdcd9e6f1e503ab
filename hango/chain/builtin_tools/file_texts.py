"""What the file tools do with a text: some lines of it, an edit, the lines that hold something. Pure.

A line ends with a line feed and nothing else, so that numbers of lines are the same in every tool.
"""

from __future__ import annotations

from collections.abc import Iterator

from hango.files import CONTENT_CHARS

DEFAULT_LINES = 2000
# Of a line that is found: enough to see what it is about.
LINE_CHARS = 300


def part_of(text: str, offset: int, limit: int, most_chars: int) -> str | None:
    """`limit` lines from line `offset`, in at most `most_chars`, and a last line that says what is left out.

    None when the text has no such line.
    """
    lines = text.removesuffix("\n").split("\n")
    if offset >= len(lines):
        return None
    chosen, chars = [lines[offset]], len(lines[offset])
    for line in lines[offset + 1 : offset + limit]:
        chars += 1 + len(line)
        if chars > most_chars:
            break
        chosen.append(line)
    end, notes = offset + len(chosen), []
    if (beyond := len(chosen[0]) - most_chars) > 0:
        chosen = [chosen[0][:most_chars]]
        notes.append(f"line {end} is cut: {beyond:,} more characters")
    if end < len(lines):
        notes.append(f"lines {offset + 1} to {end} of {len(lines)}: go on with offset {end}")
    elif offset:
        notes.append(f"lines {offset + 1} to {end}, the last")
    if not notes:
        return text or "[the file is empty]"
    return "\n".join([*chosen, f"[{'; '.join(notes)}]"])


def edited(text: str, old: str, new: str, *, replace_all: bool) -> tuple[str, int] | str:
    """The text with `old` replaced, and how often; or why not, in a sentence. `old` is not empty."""
    first = text.find(old)
    if first < 0:
        return "The old text does not stand in the file: read it and copy the text to the letter."
    times = text.count(old)
    if not replace_all:
        # Places that overlap are two places, and only one of them is meant.
        times = max(times, 2) if text.find(old, first + 1) >= 0 else 1
    if times > 1 and not replace_all:
        return f"The old text stands {times:,} times in the file: give more of what is around it, or replace_all."
    # Before it is made: a few characters put in at a million places are more than memory holds.
    chars = len(text) + times * (len(new) - len(old))
    if chars > CONTENT_CHARS:
        return f"The file would have {chars:,} characters, and {CONTENT_CHARS:,} are the most."
    return text.replace(old, new), times


def lines_holding(text: str, wanted: str) -> Iterator[tuple[int, str]]:
    """Number, from 1, and text of each line that holds `wanted`; of a long line what is around it."""
    number, counted, at = 1, 0, text.find(wanted)
    while at >= 0:
        number += text.count("\n", counted, at)
        begin = text.rfind("\n", 0, at) + 1
        end = text.find("\n", at)
        end = len(text) if end < 0 else end
        yield number, _around(text, begin, end, at)
        counted, at = end, text.find(wanted, end)


def _around(text: str, begin: int, end: int, at: int) -> str:
    if end - begin <= LINE_CHARS:
        return text[begin:end].removesuffix("\r")
    first = max(begin, min(at - LINE_CHARS // 3, end - LINE_CHARS))
    last = min(first + LINE_CHARS, end)
    return f"{'...' * (first > begin)}{text[first:last]}{'...' * (last < end)}"
