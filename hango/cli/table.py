"""A plain table for lists: no column is cut but the last, which takes what is left of the line."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from hango.cli.output import Line, Span, Style
from hango.cli.text import cells, cut, one_line, pad

GAP = "  "
LEAST_LAST = 12  # columns; where there is less left, the line goes on


def lines(
    heads: Sequence[str], rows: Sequence[Sequence[str]], *, width: int | None, right: Collection[int] = ()
) -> Iterator[Line]:
    """A faint line of heads, then a line a row. `right` names the columns that are flush right.

    Without a width the last column is whole too.
    """
    shown = [[one_line(cell) for cell in row] for row in rows]
    widths = [max(cells(row[i]) for row in (heads, *shown)) for i in range(len(heads) - 1)]
    taken = sum(widths) + len(GAP) * len(widths)
    for i, row in enumerate([heads, *shown]):
        fixed = [
            " " * (widths[at] - cells(cell)) + cell if at in right else pad(cell, widths[at])
            for at, cell in enumerate(row[:-1])
        ]
        text = GAP.join([*fixed, row[-1] if width is None else cut(row[-1], max(LEAST_LAST, width - taken))])
        yield Line.of(Span(text, Style.FAINT if i == 0 else Style.PLAIN))
