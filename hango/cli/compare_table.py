"""A comparison as a person reads it: one row a variant, its answer below where the line is short. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import unified_diff

from hango.cli import answers, table
from hango.cli.compare_rows import Row, base_of
from hango.cli.output import Line, Span, Style
from hango.cli.text import cut, cut_middle, number, one_line
from hango.cli.text import lines as text_lines
from hango.cli.try_report import cost, counted

HEADS = ("variant", "calls", "tokens in", "cost", "seconds", "stop", "tools")
LABEL, STOP, TOOLS = 0, 5, 6  # columns that give way
NAMES = {LABEL, STOP, TOOLS}
RIGHT = {1, 2, 3, 4}
WIDE = 130  # columns; there the answer has room beside its row
# Columns of a name at most: on a wide line the answer gets the rest, on a narrow one the label does.
MOST_WIDE = 28
MOST_NARROW = 12
NONE = "–"
INDENT = "  "


def lines(rows: Sequence[Row], width: int) -> Iterator[Line]:
    """Heads, then for each variant its row, its commonest answer, and why calls failed."""
    wide = width >= WIDE
    head, *rest = _wide(rows, width) if wide else _narrow(rows, width)
    yield head
    for line, row in zip(rest, rows, strict=True):
        yield line
        if not wide:
            yield Line.of(INDENT, Span(cut(_said(row), width - len(INDENT)), Style.FAINT))
        if failed := sum(row.failures.values()):
            words = f"{number(failed)} failed: {counted(row.failures, alone=failed)}"
            yield Line.of(INDENT, Span(cut(words, width - len(INDENT)), Style.FAULT))


def _narrow(rows: Sequence[Row], width: int) -> Iterator[Line]:
    """The label has what the numbers leave: it tells one row from another."""
    made = []
    for row in rows:
        cells = _cells(row)
        made.append([*cells[:STOP], *(cut(cell, MOST_NARROW) for cell in cells[STOP:])])
    return table.lines(HEADS, made, width=width, right=RIGHT, names=NAMES, both_ends={LABEL})


def _wide(rows: Sequence[Row], width: int) -> Iterator[Line]:
    """With the answer in the row: names are cut so that it has room."""
    made = []
    for row in rows:
        cells = _cells(row)
        label, names = cut_middle(cells[LABEL], MOST_WIDE), [cut(cell, MOST_WIDE) for cell in cells[STOP:]]
        made.append([label, *cells[LABEL + 1 : STOP], *names, _said(row)])
    return table.lines((*HEADS, "answers"), made, width=width, right=RIGHT, names={len(HEADS)})


def diffs(rows: Sequence[Row]) -> Iterator[Line]:
    """How the commonest answer of each row differs from that of the one it is compared with."""
    for row in rows:
        if (base := base_of(row, rows)) is not row:
            yield Line()
            yield from _diff(base, row)


def _cells(row: Row) -> list[str]:
    return [
        one_line(row.label),
        f"{number(row.succeeded)}/{number(len(row.tries))}",
        NONE if row.input_tokens is None else number(row.input_tokens),
        NONE if row.cost is None else cost(row.cost),
        NONE if row.seconds is None else f"{row.seconds:.1f}",
        counted(row.stops, alone=row.succeeded) or NONE,
        counted(row.tools) or NONE,
    ]


def _said(row: Row) -> str:
    """How many answers there were, and how the commonest begins."""
    if row.commonest is None:
        return "no answer" if not any(one.purged for one in row.tries) else "the answers are no longer kept"
    said = answers.first_line(row.commonest) or "(empty)"
    came = sum(row.answers.values())
    if came == 1:
        return said
    return f"{number(len(row.answers))} of {number(came)} · {said}"


def _diff(base: Row, row: Row) -> Iterator[Line]:
    heading = f"{one_line(row.label)} against {one_line(base.label)}"
    if base.commonest is None or row.commonest is None:
        missing = base if base.commonest is None else row
        yield Line.of(Span(heading, Style.STRONG), f": {one_line(missing.label)} has no answer")
        return
    if base.commonest == row.commonest:
        yield Line.of(Span(heading, Style.STRONG), ": the same answer")
        return
    yield Line.of(Span(heading, Style.STRONG))
    before, after = (text_lines(one.commonest or "") for one in (base, row))
    for line in unified_diff(before, after, one_line(base.label), one_line(row.label), lineterm=""):
        yield Line.of(Span(line, _STYLES.get(line[:1], Style.PLAIN)))


_STYLES = {"+": Style.CHANGED, "-": Style.FAULT, "@": Style.FAINT}
