"""A try as a person reads it: the answer, what it took, what was left out. Pure: a reply and a width in, lines out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import msgspec

from hango.cli import answers, context_part, override_report
from hango.cli.exits import Failure
from hango.cli.output import Line, Span, Style
from hango.cli.text import cells, number, one_line, wrap
from hango.cli.text import lines as text_lines
from hango.cli.try_replies import Answer, Batch, Try, Usage

BETWEEN = " · "
INDENT = "  "
MOST_PARTS = 30  # named as left out; --json has them all
LEAST_COST = 0.0001  # dollars; a smaller cost is shown as less than this

_ENDED = {"timed_out": "timed out", "lost": "is lost", "cancelled": "was cancelled"}


def lines(one: Try, width: int) -> Iterator[Line]:
    """The answer, then the facts. A try that has not ended is its state alone."""
    if not one.ended:
        yield Line.of(Span(f"try {one_line(one.id)} is {one_line(one.status)}", Style.STRONG))
        return
    if one.answer is not None:
        yield from _answer(one.answer)
        yield Line()
    elif one.succeeded:
        yield Line.of(Span("(the answer is no longer kept)" if one.purged else "(no answer)", Style.FAINT))
        yield Line()
    for words in joined(_facts(one), width):
        yield Line.of(Span(words, Style.STRONG))
    yield from _context(one, width)


def fault(one: Try) -> Failure | None:
    """Why a try that ended has no answer, as the end of a command."""
    if not one.ended or one.succeeded:
        return None
    said = f"the try {_ENDED.get(one.status, one.status)}"
    if one.error is None:
        return Failure(f"{said}.")
    if one.status == "cancelled":  # the API's sentence says it, and whether the call may cost
        return Failure(f"{one.error.message} ({one.error.code})")
    return Failure(f"{said}: {one.error.message} ({one.error.code})")


def batch_fault(batch: Batch, codes: Mapping[str, int]) -> Failure | None:
    """That not every call of a batch that ended brought an answer. `codes` counts the reasons."""
    if not batch.ended or batch.succeeded:
        return None
    without = batch.calls - batch.counts.get("succeeded", 0)
    why = counted(codes, alone=without)
    return Failure(f"{number(without)} of {number(batch.calls)} calls brought no answer: {why}.")


def counted(names: Mapping[str, int], *, alone: int = 1) -> str:
    """Names with their numbers, the most frequent first; a single name with the number `alone` stands alone."""
    most_first = sorted(names.items(), key=lambda one: -one[1])
    if [count for _, count in most_first] == [alone]:
        return one_line(most_first[0][0])
    return ", ".join(f"{one_line(name)} {number(count)}" for name, count in most_first)


def cost(dollars: float | None) -> str:
    """An amount in as many digits as say something."""
    if dollars is None:
        return "cost unknown"
    if 0 < dollars < LEAST_COST:
        return f"<${LEAST_COST}"
    return f"${dollars:,.2f}" if dollars >= 1 else f"${dollars:.4f}".rstrip("0").rstrip(".")


def joined(words: Iterable[str], width: int) -> Iterator[str]:
    """Facts side by side, as many on a line as fit."""
    held = ""
    for word in words:
        longer = f"{held}{BETWEEN}{word}" if held else word
        if held and cells(longer) > width:
            yield held
            longer = word
        held = longer
    if held:
        yield held


def _answer(answer: Answer) -> Iterator[Line]:
    """Its text as it is; every other block under a line that says what it is."""
    if not answer.content:
        yield Line.of(Span("(an empty answer)", Style.FAINT))
    for i, block in enumerate(answer.content):
        if i:
            yield Line()
        yield from _block(block)


def _block(block: msgspec.Raw) -> Iterator[Line]:
    kind = answers.kind(block)
    if kind == "text":
        text = context_part.string(context_part.fields(block).get("text"))
        yield from (Line.of(line) for line in text_lines(text))
        return
    head, *rest = context_part.block_lines(block)
    if kind == "tool_use":
        head = Line.of(*head.spans, Span(", never run", Style.WARNING))
    style = Style.FAINT if "thinking" in kind else Style.PLAIN
    yield head
    yield from (Line.of(Span(line.text, style)) for line in rest)


def _facts(one: Try) -> Iterator[str]:
    if one.stop_reason is not None:
        yield one_line(one.stop_reason)
    if one.seconds is not None:
        yield f"{one.seconds:.1f} s"
    if one.usage is not None:
        yield tokens(one.usage)
        yield cost(one.usage.cost_usd)
    yield one_line(one.request.model)


def tokens(usage: Usage) -> str:
    cached = f" ({number(usage.cache_read_tokens)} cached)" if usage.cache_read_tokens else ""
    estimated = " (estimated)" if usage.estimated else ""
    return f"{number(usage.all_input)} in{cached}, {number(usage.output_tokens)} out{estimated}"


def _context(one: Try, width: int) -> Iterator[Line]:
    """What the request held and what it did not."""
    if one.tokens_before is not None and one.tokens_after is not None:
        changed = one.excluded or one.request.replace or one.request.include or one.tokens_before != one.tokens_after
        # No word of before: with another message or an earlier end, this is not the context of the next call.
        unchanged = f"{number(one.tokens_after)} tokens, no part changed"
        effect = override_report.effect(one.tokens_before, one.tokens_after) if changed else unchanged
        yield Line.of(f"context {effect} (estimated)")
    for word, parts in (
        ("left out", one.excluded or ()),
        ("replaced", tuple(one.request.replace or ())),
        ("taken back", one.request.include),
    ):
        if parts:
            named = ", ".join(parts[:MOST_PARTS])
            more = f" and {number(len(parts) - MOST_PARTS)} more" if len(parts) > MOST_PARTS else ""
            first, *rest = wrap(f"{word}: {named}{more}", width - len(INDENT))
            yield Line.of(Span(first, Style.CHANGED))
            yield from (Line.of(INDENT, Span(line, Style.CHANGED)) for line in rest)
