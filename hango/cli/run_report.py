"""A run as a person reads it: its messages, what it took, what it waits for. Pure: replies and a width in, lines out.

What people and models say is shown whole; thinking, calls and results are folded to a few lines.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

import msgspec

from hango.cli import answers, context_part
from hango.cli.exits import Failure
from hango.cli.output import Line, Span, Style
from hango.cli.own_command import line
from hango.cli.run_replies import Message, Run
from hango.cli.text import cells, cut, fold, number, one_line
from hango.cli.text import lines as text_lines
from hango.cli.try_report import cost, joined, tokens

INDENT = "  "
SAID = "> "  # before each line of the user
RESULT = "←"
MOST_LINES = 8  # of a result, a call or a thought; `hango context show --full` has all of it

_ENDED = {"timed_out": "timed out", "cancelled": "was cancelled"}


@dataclass(frozen=True, slots=True)
class Asked:
    """A call that the client has to answer."""

    id: str
    name: str


def lines(
    run: Run,
    messages: Sequence[Message],
    calls: Sequence[Asked],
    width: int,
    *,
    with_question: bool,
    facts: Style = Style.STRONG,
) -> Iterator[Line]:
    """The run's messages, then the facts. A run that has not ended is its state alone.

    `calls` are those that wait for the client. `with_question`: what the user said to start it is shown too.
    """
    if not run.ended:
        yield Line.of(Span(f"run {one_line(run.id)} is {one_line(run.status)}", Style.STRONG))
        return
    ids = {one.id for one in calls}
    empty = True
    for above, message, block in _blocks(messages if with_question else _without_question(messages)):
        if above is not None and not (_is_tool(above) and _is_tool(block)):
            yield Line()
        yield from _block(message, block, ids, width)
        empty = False
    if not empty:
        yield Line()
    for words in joined(_facts(run), width):
        yield Line.of(Span(words, facts))


def asked(run: Run, messages: Sequence[Message], end: int) -> list[Asked]:
    """The calls of its last answer that have no result: the client's. `end` is the last message of the session.

    Where the session went on without them, nobody waits any longer.
    """
    if not run.waits_for_client or not messages or messages[-1].seq != end:
        return []
    last = max((i for i, message in enumerate(messages) if message.role == "assistant"), default=None)
    if last is None:
        return []
    answered = {_field(block, "tool_use_id") for message in messages[last:] for block in message.content}
    calls = (block for block in messages[last].content if answers.kind(block) == "tool_use")
    found = [Asked(_field(block, "id"), _field(block, "name")) for block in calls]
    return [one for one in found if one.id not in answered]


def how_to_answer(run: Run, calls: Sequence[Asked]) -> Iterator[str]:
    """For a run that waits for its client, one sentence and the command; nothing for another one."""
    if not calls:
        return
    results = [word for one in calls for word in ("--result", f"{one.id}=TEXT")]
    what = "a tool of yours" if len(calls) == 1 else f"{number(len(calls))} tools of yours"
    yield f"the run waits for {what}. Run it, then answer:"
    yield line("run", "--session", run.session_id, *results)


def fault(run: Run) -> Failure | None:
    """Why a run that ended came to no answer, as the end of a command."""
    if not run.ended or run.status == "succeeded" or run.waits_for_client:
        return None
    said = f"the run {_ENDED.get(run.status, run.status)}"
    if run.error is None:
        return Failure(f"{said}.")
    if run.status == "cancelled":  # the API's sentence says it
        return Failure(f"{run.error.message} ({run.error.code})")
    return Failure(f"{said}: {run.error.message} ({run.error.code})")


def _without_question(messages: Sequence[Message]) -> Sequence[Message]:
    """Without what the user said to start the run."""
    return messages[1:] if messages and messages[0].role == "user" else messages


def _blocks(messages: Sequence[Message]) -> Iterator[tuple[msgspec.Raw | None, Message, msgspec.Raw]]:
    """Every block with its message and the block above it."""
    above = None
    for message in messages:
        for block in message.content:
            yield above, message, block
            above = block


def _block(message: Message, block: msgspec.Raw, asked: Collection[str], width: int) -> Iterator[Line]:
    kind = answers.kind(block)
    if kind == "text":
        mark = SAID if message.role == "user" else ""
        style = Style.FAINT if mark else Style.PLAIN
        yield from (Line.of(Span(mark + text, style)) for text in text_lines(_field(block, "text")))
    elif kind == "tool_use":
        yield from _call(block, asked, width)
    elif kind == "tool_result":
        yield from _result(block, width)
    elif kind == "thinking":
        yield Line.of(Span("thinking", Style.FAINT))
        yield from _folded(INDENT, _field(block, "thinking"), width, Style.FAINT)
    else:
        for found in context_part.block_lines(block):
            yield Line.of(Span(cut(found.text, width)))


def _call(block: msgspec.Raw, asked: Collection[str], width: int) -> Iterator[Line]:
    (call,) = answers.calls_of([block])
    first, *rest = _folded(f"{answers.ARROW} ", f"{call.name}({call.input})", width, Style.CHANGED)
    yield first
    yield from rest
    if (id := _field(block, "id")) in asked:
        yield Line.of(Span(f"{INDENT}yours to run and to answer: {one_line(id)}", Style.WARNING))


def _result(block: msgspec.Raw, width: int) -> Iterator[Line]:
    is_error = bytes(context_part.fields(block).get("is_error", msgspec.Raw(b""))) == b"true"
    mark = f"{RESULT} (error) " if is_error else f"{RESULT} "
    yield from _folded(mark, _result_text(block), width, Style.FAULT if is_error else Style.FAINT)


def _result_text(block: msgspec.Raw) -> str:
    """The text of a result; what is no text is named."""
    content = context_part.fields(block).get("content", msgspec.Raw(b'""'))
    if bytes(content).lstrip()[:1] != b"[":
        return context_part.string(content)
    inner = msgspec.json.decode(content, type=list[msgspec.Raw])
    return "\n".join(_field(one, "text") if answers.kind(one) == "text" else f"({answers.kind(one)})" for one in inner)


def _folded(mark: str, text: str, width: int, style: Style) -> Iterator[Line]:
    """The beginning of a text, behind a mark. What is left out is said."""
    room = width - cells(mark)
    shown = fold(text, room, MOST_LINES)
    indent = " " * cells(mark) if cells(mark) <= len(INDENT) else INDENT
    for i, part in enumerate(shown.lines or ("(nothing)",)):
        yield Line.of(Span((indent if i else mark) + part, style))
    if not shown.whole:
        yield Line.of(Span(f"{indent}… {number(len(text))} characters in all", Style.FAINT))


def _facts(run: Run) -> Iterator[str]:
    yield one_line(run.status)
    if run.stop_reason is not None:
        yield one_line(run.stop_reason)
    yield f"{number(run.turns)} turn{'s' * (run.turns != 1)}"
    if run.seconds is not None:
        yield f"{run.seconds:.1f} s"
    if run.usage is not None:
        yield tokens(run.usage)
        yield cost(run.usage.cost_usd)
    if run.overrides:
        yield f"{number(run.overrides)} override{'s' * (run.overrides != 1)}"
    yield one_line(run.model)


def _is_tool(block: msgspec.Raw) -> bool:
    return answers.kind(block) in {"tool_use", "tool_result"}


def _field(block: msgspec.Raw, name: str) -> str:
    """A text of a block; empty where it has none."""
    return context_part.string(context_part.fields(block).get(name)) if answers.kind(block) else ""
