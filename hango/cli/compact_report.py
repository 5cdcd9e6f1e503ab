"""The preview of a summary as a person reads it. Pure: a reply, the context of now and a width in, lines out."""

from __future__ import annotations

from collections.abc import Iterator

from hango.cli.exits import Failure
from hango.cli.output import Line, Span, Style
from hango.cli.replies import Part, Snapshot
from hango.cli.run_replies import SummaryPreview
from hango.cli.text import cut, number, one_line, wrap
from hango.cli.text import lines as text_lines
from hango.cli.try_report import cost, joined, tokens

INDENT = "  "
MOST_MISSING = 100  # --json has them all
_ENDED = {"timed_out": "timed out", "lost": "is lost", "cancelled": "was cancelled"}


def lines(seen: SummaryPreview, shot: Snapshot, width: int) -> Iterator[Line]:
    """What it covers, its text, what it no longer mentions, what it took and what it saves."""
    for words in wrap(f"summary of {_covers(seen, shot)}", width):
        yield Line.of(Span(words, Style.STRONG))
    yield Line()
    yield from (Line.of(line) for line in text_lines(seen.text or ""))
    yield Line()
    yield from _missing(seen, width)
    yield Line()
    if seen.usage is not None:
        for words in joined([tokens(seen.usage), cost(seen.usage.cost_usd)], width):
            yield Line.of(Span(words, Style.STRONG))
        yield from (Line.of(words) for words in wrap(_saves(seen.usage.output_tokens, seen, shot), width))


def fault(seen: SummaryPreview) -> Failure | None:
    """Why a preview that ended has no text, as the end of a command."""
    if not seen.ended:
        return None
    if seen.status == "succeeded":
        if seen.text is None:
            return Failure("the preview's text is no longer kept. Ask for another one.")
        return None if seen.text.strip() else Failure("the model wrote no summary. Ask once more.")
    said = f"the preview {_ENDED.get(seen.status, seen.status)}"
    return Failure(f"{said}." if seen.error is None else f"{said}: {seen.error.message} ({seen.error.code})")


def _covered(seen: SummaryPreview, shot: Snapshot) -> list[Part]:
    """The parts that it stands for: the summary before it, and messages."""
    return [part for part in shot.messages if part.sent and _seq(part) <= seen.through_seq]


def _seq(part: Part) -> int:
    """The summary stands before all messages."""
    return int(part.id.removeprefix("message:")) if part.kind == "message" and part.id != "extra" else 0


def _covers(seen: SummaryPreview, shot: Snapshot) -> str:
    parts = _covered(seen, shot)
    first = next((part.id for part in parts if part.kind == "message"), None)
    before = "the summary before it and " if any(part.kind == "summary" for part in parts) else ""
    last = f"message:{seen.through_seq}"
    if first is None:
        return f"{before}the messages up to {last}"
    return f"{before}{first}" if first == last else f"{before}{first} to {last}"


def _missing(seen: SummaryPreview, width: int) -> Iterator[Line]:
    if not seen.missing:
        all_there = "no path, number, URL, identifier or command of the messages is missing in it"
        yield from (Line.of(words) for words in wrap(all_there, width))
        return
    yield Line.of(Span(f"no longer mentioned: {number(len(seen.missing))}", Style.WARNING))
    shown = [cut(one_line(one), width - len(INDENT)) for one in seen.missing[:MOST_MISSING]]
    left = len(seen.missing) - len(shown)
    more = [f"and {number(left)} more"] if left else []
    yield from (Line.of(INDENT + words) for words in joined([*shown, *more], width - len(INDENT)))


def _saves(written: int, seen: SummaryPreview, shot: Snapshot) -> str:
    """By the estimates of now; the summary's own tokens are those that the model wrote."""
    covered = sum(part.tokens for part in _covered(seen, shot))
    before = shot.total_after
    after = before - covered + written
    return f"context {number(before)} → about {number(after)} tokens: {number(covered)} become about {number(written)}"
