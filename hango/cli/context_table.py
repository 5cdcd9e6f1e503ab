"""A snapshot as a grouped table of one line a part. Pure: a snapshot and a width in, lines out.

The preview gives way first, then the notes; an id is never cut. Nothing is said by colour alone.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass, replace

from hango.cli import context_bar, reasons
from hango.cli.output import Line, Span, Style
from hango.cli.replies import GROUPS, Part, Problem, Snapshot, Totals
from hango.cli.text import cells, cut, number, one_line, pad, wrap

GAP = "  "
BOX = 5  # " [x] "
GROUP = 9  # "messages "
LEAST = 8  # columns; a shorter preview or note says nothing
MOST_ROLE = 16
NOTES = 17  # "replaced, drifted"
MOST_PARTS = 12  # named with one problem; a broken import may have thousands, and --json has them all


@dataclass(frozen=True, slots=True)
class Row:
    """A part as text, before it is laid out."""

    box: str
    name: str
    role: str
    preview: str
    tokens: str
    notes: tuple[Span, ...]
    style: Style

    @property
    def head(self) -> str:
        return f"{self.name}{GAP}{self.role}" if self.role else self.name

    @property
    def notes_width(self) -> int:
        return sum(cells(note.text) for note in self.notes) + 2 * (len(self.notes) - 1) if self.notes else 0


@dataclass(frozen=True, slots=True)
class Columns:
    """Widths in columns of a terminal; `preview` is 0 when there is no room for one."""

    width: int
    head: int
    preview: int
    tokens: int

    @property
    def left(self) -> int:
        """Head and preview together."""
        return self.head + (len(GAP) + self.preview if self.preview else 0)

    @property
    def tokens_end(self) -> int:
        return BOX + self.left + len(GAP) + self.tokens


def lines(
    snapshot: Snapshot, *, agent: str, width: int, groups: Sequence[str] = GROUPS, by_tokens: bool = False
) -> Iterator[Line]:
    """The whole report: heading, bar, the groups, totals, and what needs attention."""
    yield from _heading(snapshot, agent, width)
    yield from context_bar.lines(snapshot, width)
    at_fault = {problem.part for problem in snapshot.problems}
    tables = {group: _rows(snapshot.parts(group), at_fault, by_tokens) for group in groups}
    columns = _fit([row for rows in tables.values() for row in rows], width)
    for group, rows in tables.items():
        yield Line()
        yield _group_line(group, snapshot.groups.get(group, Totals(0, 0)), columns)
        for row in rows:
            yield _row_line(row, columns)
    yield Line()
    yield from _totals(snapshot, width)
    yield from _problems(snapshot.problems, width)


def _heading(snapshot: Snapshot, agent: str, width: int) -> Iterator[Line]:
    """Agent, session, model: as many on a line as fit."""
    held = cut(one_line(agent), width)
    for word in (f"session {one_line(snapshot.session_id)}", one_line(snapshot.model)):
        joined = f"{held} · {word}"
        if cells(joined) > width:
            yield Line.of(Span(held, Style.STRONG))
            joined = word
        held = joined
    yield Line.of(Span(held, Style.STRONG))


def _rows(parts: Sequence[Part], at_fault: Set[str | None], by_tokens: bool) -> list[Row]:
    if by_tokens:
        parts = sorted(parts, key=lambda part: -part.tokens)
    rows = [_row(part, part.id in at_fault) for part in parts]
    # The ids of messages differ little in length: their roles stand below each other.
    longest = max((cells(row.name) for row in rows if row.role), default=0)
    return [replace(row, name=pad(row.name, longest)) if row.role else row for row in rows]


def _row(part: Part, at_fault: bool) -> Row:
    if not part.included:
        box, style = "[ ]", Style.FAINT
    elif not part.sent:
        box, style = "[!]", Style.FAULT
    elif part.override == "replace":
        box, style = "[~]", Style.CHANGED
    else:
        box, style = "[x]", Style.PLAIN
    return Row(
        box=box,
        name=one_line(part.id),
        role=_role(part),
        preview=one_line(part.preview),
        tokens=number(part.tokens),
        notes=tuple(_notes(part, at_fault)),
        style=style,
    )


def _role(part: Part) -> str:
    """What the label adds to the id: a message's role; nothing where the label is the id's own end."""
    if part.role and part.kind == "message":
        return cut(one_line(part.role), MOST_ROLE)
    return "" if part.id.endswith(part.label) else cut(one_line(part.label), MOST_ROLE)


def _notes(part: Part, at_fault: bool) -> Iterator[Span]:
    if part.paired:
        yield Span("paired", Style.CHANGED)
    elif not part.included:
        yield Span("excluded", Style.CHANGED)
    elif part.override == "replace":
        yield Span("replaced", Style.CHANGED)
    if part.drifted:
        yield Span("drifted", Style.WARNING)
    if part.included and not part.sent:
        yield Span("not sent", Style.FAULT)
    elif at_fault:
        yield Span("problem", Style.WARNING)
    if part.cached_prefix and part.sent:
        yield Span("cached", Style.CACHED)


def _fit(rows: Sequence[Row], width: int) -> Columns:
    """One set of columns for all groups. A head over a third goes on into the room of its preview."""
    tokens = max((len(row.tokens) for row in rows), default=1)
    notes = min(max(NOTES, width // 6), max((row.notes_width for row in rows), default=0))
    left = width - BOX - len(GAP) - tokens - (len(GAP) + notes if notes else 0)
    heads = max((cells(row.head) for row in rows), default=0)
    head = min(heads, width // 3)
    room = left - head - len(GAP)
    preview = max((cells(row.preview) for row in rows), default=0)
    if room < min(LEAST, preview):
        return Columns(width, min(heads, max(0, left)), 0, tokens)
    return Columns(width, head, min(room, preview), tokens)


def _row_line(row: Row, columns: Columns) -> Line:
    head = pad(row.head, columns.head)
    preview = GAP + cut(row.preview, columns.left - cells(head) - len(GAP))
    if not columns.preview or cells(preview) > columns.left - cells(head):
        preview = ""
    left = cells(head) + cells(preview)
    # A head that went on past its room takes the space before its number first.
    space = max(0, columns.left - left) + max(0, columns.tokens - len(row.tokens) - max(0, left - columns.left))
    tokens = " " * space + GAP + row.tokens
    used = BOX + left + len(tokens)
    return Line.of(
        Span(f" {row.box} ", row.style),
        Span(head, row.style),
        Span(preview, Style.FAINT if row.style is Style.PLAIN else row.style),
        Span(tokens, row.style),
        *_notes_in(row.notes, columns.width - used),
    )


def _notes_in(notes: Sequence[Span], room: int) -> Iterator[Span]:
    """The notes that fit; the one at the edge is cut, since the problems stand below the table in full."""
    for before, note in zip((GAP, *[", "] * len(notes)), notes, strict=False):
        room -= len(before)
        shown = cut(note.text, room)
        if shown != note.text and room < LEAST:
            return
        room -= cells(shown)
        yield Span(before)
        yield replace(note, text=shown)


def _group_line(group: str, totals: Totals, columns: Columns) -> Line:
    """The total ends where the numbers below it end, or earlier where its word would leave the line."""
    amount = _change(totals.before, totals.after)
    end = min(columns.tokens_end, columns.width - len(" tokens"))
    return Line.of(Span(pad(group, max(GROUP, end - cells(amount))), Style.STRONG), f"{amount} tokens")


def _change(before: int, after: int) -> str:
    return number(after) if before == after else f"{number(before)} → {number(after)}"


def _totals(snapshot: Snapshot, width: int) -> Iterator[Line]:
    counted = "estimated"
    if snapshot.counted == "provider":
        by_us = "" if snapshot.estimate_after is None else f"; estimate {number(snapshot.estimate_after)}"
        counted = f"counted by the provider{by_us}"
    change = _change(snapshot.total_before, snapshot.total_after)
    yield Line.of(Span(f"total {change} tokens", Style.STRONG), f" ({counted})")
    for stale in snapshot.stale:
        why = f": {reasons.OF_STALE.get(stale.reason, stale.reason)}" if stale.reason else ""
        for line in wrap(f"stale: {stale.part} ({stale.action}, {stale.scope}{why})", width):
            yield Line.of(Span(line, Style.WARNING))


def _problems(problems: Sequence[Problem], width: int) -> Iterator[Line]:
    """One entry for each kind of problem, with the parts that have it."""
    if not problems:
        return
    kinds: dict[tuple[str, str], list[str]] = defaultdict(list)
    for problem in problems:
        kinds[problem.reason, problem.message].extend([] if problem.part is None else [problem.part])
    yield Line()
    yield Line.of(Span(f"{number(len(problems))} problem{'s' * (len(problems) > 1)}", Style.STRONG))
    for (reason, message), parts in kinds.items():
        for line in wrap(f"{_named(parts)}{message} ({reason})", width - len(GAP)):
            yield Line.of(Span(GAP + line, Style.WARNING))


def _named(parts: Sequence[str]) -> str:
    if not parts:
        return ""
    more = f" and {number(len(parts) - MOST_PARTS)} more" if len(parts) > MOST_PARTS else ""
    return f"{', '.join(parts[:MOST_PARTS])}{more}: "
