"""The bar of the window: how much of it each group takes, where the cached prefix ends, where compaction is.

The groups stand in the order in which a provider reads them (tools, system, messages), so that the cached
prefix is one piece from the left.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from hango.cli.output import Line, Span, Style
from hango.cli.replies import Snapshot
from hango.cli.text import number, wrap

READING_ORDER = ("tools", "system", "messages")
FILL = {"tools": "▓", "system": "▒", "messages": "█"}
FREE = "░"
ARROW = "↑"
LEAST_BAR = 10
GAP = 2


@dataclass(frozen=True, slots=True)
class Mark:
    """Words with an arrow to a cell of the bar."""

    cell: int
    words: str
    style: Style


@dataclass(frozen=True, slots=True)
class Bar:
    """Tokens on a scale of cells. `edges` are the ends of the groups in tokens and in cells."""

    cells: int
    scale: int
    edges: tuple[tuple[int, int], ...]

    @classmethod
    def of(cls, amounts: tuple[int, ...], scale: int, cells: int) -> Bar:
        """Every group that has tokens gets a cell, however small its share is."""
        edges: list[tuple[int, int]] = []
        tokens = cell = 0
        for amount in amounts:
            tokens += amount
            if amount:
                cell = min(cells, max(cell + 1, round(tokens * cells / scale)))
            edges.append((tokens, cell))
        return cls(cells, scale, tuple(edges))

    def cell(self, tokens: int) -> int:
        """The cell that the last of so many tokens falls in, 0 for the first."""
        from_tokens, from_cell = 0, 0
        for to_tokens, to_cell in (*self.edges, (self.scale, self.cells)):
            if tokens <= to_tokens and to_tokens > from_tokens:
                part = (tokens - from_tokens) / (to_tokens - from_tokens)
                return max(0, from_cell + round(part * (to_cell - from_cell)) - 1)
            from_tokens, from_cell = to_tokens, to_cell
        return self.cells - 1


def lines(snapshot: Snapshot, width: int) -> Iterator[Line]:
    """The bar, its marks and its legend; without a known window the legend alone."""
    amounts = tuple(snapshot.groups[group].after if group in snapshot.groups else 0 for group in READING_ORDER)
    if snapshot.window:
        yield from _bar(snapshot, snapshot.window, amounts, width)
    legend = [f"{FILL[group]} {group} {number(amount)}" for group, amount in zip(READING_ORDER, amounts, strict=True)]
    if snapshot.window and snapshot.window > snapshot.total_after:
        legend.append(f"{FREE} free {number(snapshot.window - snapshot.total_after)}")
    yield from _joined(legend, width)
    yield from _warnings(snapshot, width)


def _bar(snapshot: Snapshot, window: int, amounts: tuple[int, ...], width: int) -> Iterator[Line]:
    share = 100 * snapshot.total_after / window
    percent = "<1" if 0 < share < 1 else f"{share:.0f}"
    amount = f"{number(snapshot.total_after)} of {number(window)} ({percent} %)"
    scale = max(window, sum(amounts), snapshot.compact_at or 0)
    bar = Bar.of(amounts, scale, max(LEAST_BAR, width - len(amount) - GAP))
    spans: list[Span] = []
    start = 0
    for group, (_, end) in zip(READING_ORDER, bar.edges, strict=True):
        spans.append(Span(FILL[group] * (end - start)))
        start = end
    spans.append(Span(FREE * (bar.cells - start), Style.FAINT))
    yield Line.of(*spans, Span(" " * GAP + amount, Style.STRONG))
    yield from _marks(_marks_of(snapshot, bar), width)


def _marks_of(snapshot: Snapshot, bar: Bar) -> list[Mark]:
    cached = sum(
        part.tokens for group in READING_ORDER for part in snapshot.parts(group) if part.cached_prefix and part.sent
    )
    marks = []
    if cached:
        marks.append(Mark(bar.cell(cached), f"cached to here ({number(cached)})", Style.CACHED))
    if snapshot.compact_at:
        words = f"compacts at {number(snapshot.compact_at)}"
        style = Style.WARNING if snapshot.would_compact else Style.PLAIN
        marks.append(Mark(bar.cell(snapshot.compact_at), words, style))
    return sorted(marks, key=lambda mark: mark.cell)


def _marks(marks: list[Mark], width: int) -> Iterator[Line]:
    """The marks on one line where they do not touch, else on a line each."""
    spans: list[Span] = []
    used = 0
    for mark in marks:
        after = mark.cell + len(f"{ARROW} {mark.words}") <= width
        words = f"{ARROW} {mark.words}" if after else f"{mark.words} {ARROW}"
        start = mark.cell if after else max(0, mark.cell + 1 - len(words))
        if spans and start < used + GAP:
            yield Line.of(*spans)
            spans, used = [], 0
        spans.extend((Span(" " * (start - used)), Span(words, mark.style)))
        used = start + len(words)
    if spans:
        yield Line.of(*spans)


def _joined(words: list[str], width: int) -> Iterator[Line]:
    held = ""
    for word in words:
        if held and len(held) + GAP + len(word) > width:
            yield Line.of(held)
            held = ""
        held = f"{held}{' ' * GAP}{word}" if held else word
    yield Line.of(held)


def _warnings(snapshot: Snapshot, width: int) -> Iterator[Line]:
    words = []
    if snapshot.would_compact:
        over = f", over {number(snapshot.compact_at)}" if snapshot.compact_at else ""
        amount = f"{number(snapshot.total_after)} tokens{over}"
        words.append(f"would compact: {amount}; the next run first sums up older messages.")
    if snapshot.window and snapshot.total_after > snapshot.window:
        over = number(snapshot.total_after - snapshot.window)
        words.append(f"over the window by {over} tokens: the provider would refuse this request.")
    for sentence in words:
        for line in wrap(sentence, width):
            yield Line.of(Span(line, Style.WARNING))
