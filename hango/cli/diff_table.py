"""Two model calls compared, one line a part. Pure: a reply and a width in, lines out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from hango.cli import override_report, reasons
from hango.cli.output import Line, Span, Style
from hango.cli.replies import Part
from hango.cli.run_replies import ChangedPart, Diff
from hango.cli.text import cells, cut, number, one_line, pad, wrap

GAP = "  "
LEAST = 8  # columns; a shorter preview says nothing
AROUND = 12  # characters before the place where two texts part


@dataclass(frozen=True, slots=True)
class Row:
    sign: str
    name: str
    tokens: str
    preview: str
    style: Style
    was: str = ""  # of a changed part, the preview before; `preview` is then the one after


def lines(diff: Diff, heading: str, width: int) -> Iterator[Line]:
    """A heading, a row for each part that differs, the totals, and what became of the cached prefix."""
    for words in wrap(heading, width):
        yield Line.of(Span(words, Style.STRONG))
    yield Line()
    rows = [
        *(_row("-", part, Style.FAULT) for part in diff.removed),
        *(_changed(one) for one in diff.changed),
        *(_row("+", part, Style.CACHED) for part in diff.added),
    ]
    yield from _rows(rows, width)
    if not rows:
        yield Line.of("no part differs")
    yield Line()
    yield Line.of(
        Span(f"total {override_report.effect(diff.tokens_before, diff.tokens_after)}", Style.STRONG), " (estimated)"
    )
    style = Style.PLAIN if diff.cache_reason is None else Style.WARNING
    yield from (Line.of(Span(words, style)) for words in wrap(_cache(diff), width))


def _row(sign: str, part: Part, style: Style) -> Row:
    return Row(sign, _name(part), number(part.tokens), one_line(part.preview), style)


def _changed(one: ChangedPart) -> Row:
    before, after = one.before.tokens, one.after.tokens
    tokens = number(after) if before == after else f"{number(before)} → {number(after)}"
    was, now = _parting(one.before.preview, one.after.preview)
    return Row("~", _name(one.after), tokens, now, Style.CHANGED, was)


def _name(part: Part) -> str:
    return one_line(f"{part.id} {part.role}" if part.role else part.id)


def _parting(before: str, after: str) -> tuple[str, str]:
    """Two texts from shortly before the first place where they part; empty when they do not."""
    if before == after:
        return "", ""
    same = next(
        (i for i, (a, b) in enumerate(zip(before, after, strict=False)) if a != b), min(len(before), len(after))
    )
    start = max(0, same - AROUND)
    mark = "…" if start else ""
    return mark + one_line(before[start:]), mark + one_line(after[start:])


def _rows(rows: Sequence[Row], width: int) -> Iterator[Line]:
    names = max((cells(row.name) for row in rows), default=0)
    tokens = max((cells(row.tokens) for row in rows), default=0)
    names = min(names, max(width // 2, width - 2 - len(GAP) - tokens - len(GAP) - LEAST))
    for row in rows:
        head = f"{row.sign} {pad(row.name, names)}"
        # A name that went on past its room takes the space before its number.
        space = max(0, names + 2 - cells(head) + tokens - cells(row.tokens))
        head += GAP + " " * space + row.tokens
        room = width - cells(head) - len(GAP)
        texts = [row.preview] if row.sign != "~" else []
        if texts and room >= LEAST:
            yield Line.of(Span(head, row.style), Span(GAP + cut(texts[0], room), Style.FAINT))
        else:
            yield Line.of(Span(head, row.style))
        if row.sign == "~":
            yield from _was_and_now(row, width)


def _was_and_now(row: Row, width: int) -> Iterator[Line]:
    if row.was == row.preview == "":
        yield Line.of(Span("    its beginning is the same", Style.FAINT))
        return
    for word, text in (("was", row.was), ("now", row.preview)):
        yield Line.of(f"    {word} ", Span(cut(text, width - 8), Style.FAINT))


def _cache(diff: Diff) -> str:
    """What a provider that had cached the first call could do for the other one."""
    if diff.cache_reason is None:
        return "cached prefix: holds; the other call goes on where this one ends"
    why = reasons.OF_CACHE.get(diff.cache_reason, diff.cache_reason)
    at = "" if diff.cache_broken_at is None else f" at {diff.cache_broken_at}"
    return f"cached prefix: broken{at}: {why}"
