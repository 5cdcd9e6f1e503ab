"""A plain table for lists: the columns of names give way until a line fits, the others are never cut."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from hango.cli.output import Line, Span, Style
from hango.cli.text import cells, cut, cut_middle, one_line, pad

GAP = "  "
LEAST = 4  # columns of a name; where there is less left, the line goes on


def lines(
    heads: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    width: int | None,
    right: Collection[int] = (),
    names: Collection[int] = (),
    both_ends: Collection[int] = (),
) -> Iterator[Line]:
    """A faint line of heads, then a line a row. `right` names the columns that are flush right.

    `names` are the columns that may be cut, those of `both_ends` in their middle. Without a width all are whole.
    """
    shown = [heads, *([one_line(cell) for cell in row] for row in rows)]
    widths = [max(cells(row[at]) for row in shown) for at in range(len(heads))]
    if width is not None:
        widths = _fit(widths, width, names)
    for i, row in enumerate(shown):
        text = GAP.join(
            _cell(cut_middle(cell, widths[at]) if at in both_ends else cell, widths[at], flush_right=at in right)
            for at, cell in enumerate(row)
        )
        yield Line.of(Span(text.rstrip(" "), Style.FAINT if i == 0 else Style.PLAIN))


def _fit(widths: Sequence[int], width: int, names: Collection[int]) -> list[int]:
    """The widths that fit: the shortest names stay whole, the others share what is left alike."""
    fitted = list(widths)
    room = width - len(GAP) * (len(widths) - 1) - sum(one for at, one in enumerate(widths) if at not in names)
    for done, at in enumerate(sorted(names, key=lambda at: widths[at])):
        fitted[at] = min(widths[at], max(LEAST, room // (len(names) - done)))
        room -= fitted[at]
    return fitted


def _cell(text: str, width: int, *, flush_right: bool) -> str:
    text = cut(text, width)
    return " " * (width - cells(text)) + text if flush_right else pad(text, width)
