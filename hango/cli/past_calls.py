"""`hango context calls`, and `show` of a past call: what the model saw then."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated
from urllib.parse import quote

import typer

from hango.cli.own_command import line, own_command
from hango.cli.tries import AsJson

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from hango.cli.client import Client
    from hango.cli.output import Line
    from hango.cli.run_replies import Call, PastSnapshot

MOST = 500  # the API's own limit
INEXACT = (
    "not exact: another release of hango made this request, in another way than this one does, so what is shown may"
    " differ from what was sent."
)
RunID = Annotated[str, typer.Option("--run", metavar="ID", help="The run's id.")]


def calls(
    *,
    run: RunID,
    limit: Annotated[int, typer.Option("--limit", metavar="N", min=1, max=MOST, help="How many at most.")] = MOST,
    as_json: AsJson = False,
) -> None:
    """List the model calls of a run, those of its subagents and summaries too.

    Example: hango context calls --run ID
    """
    from hango.cli import output, replies, run_lists
    from hango.cli.client import Client
    from hango.cli.run_replies import CallPage

    with Client.from_environment() as client:
        body = client.get(f"{path_of(run)}/calls", {"limit": limit}, missing=no_run(run))
    if as_json:
        output.emit_reply(body)
        return
    page = replies.read(body, CallPage)
    if not page.data:
        output.note("the run has made no call.")
        return
    output.emit(run_lists.of_calls(page.data, output.width()))
    if inexact := [one for one in page.data if not one.exact]:
        output.note(_of_another_release(inexact))
    if page.next_cursor is not None and limit < MOST:
        output.note(f"there are more: {line('context', 'calls', '--run', run, '--limit', str(MOST))}")


def read(client: Client, run: str, n: int) -> bytes:
    """The context of a call, made again: the API's reply."""
    listed = f"`{line('context', 'calls', '--run', run)}` lists them."
    missing = f"no call {n} of run {run} that you may read. {listed}"
    return client.get(f"{path_of(run)}/calls/{n}/context", missing=missing)


def purpose(client: Client, run: str, n: int) -> str:
    """What a call was made for: run, subagent or summary; empty where the list does not say."""
    from hango.cli.exits import Failure

    try:
        page = json.loads(client.get(f"{path_of(run)}/calls", {"limit": MOST}))
        return next((str(one["purpose"]) for one in page["data"] if one["n"] == n), "")
    except (Failure, ValueError, KeyError, TypeError):
        return ""


def heading(run: str, n: int, purpose: str) -> str:
    """Which call it is."""
    of = f" ({purpose})" if purpose not in {"", "run"} else ""
    return f"call {n}{of} of run {run}"


def heading_lines(heading: str, shot: PastSnapshot, width: int) -> Iterator[Line]:
    """Which call it is, and why what is shown may not be what was sent."""
    from hango.cli.output import Line, Span, Style
    from hango.cli.text import wrap

    said = f"{heading}: the request as it was sent" if shot.exact else heading
    yield from (Line.of(Span(words, Style.STRONG)) for words in wrap(said, width))
    if not shot.exact:
        yield from (Line.of(Span(words, Style.WARNING)) for words in wrap(INEXACT, width))


def no_run(run: str) -> str:
    return f"no run {run} that you may read. `{own_command()} runs --session ID` lists them."


def path_of(run: str) -> str:
    return f"/v1/runs/{quote(run, safe='')}"


def _of_another_release(found: Sequence[Call]) -> str:
    numbers = ", ".join(str(one.n) for one in found)
    whose = f"call {numbers} was" if len(found) == 1 else f"calls {numbers} were"
    return f"{whose} made by another release of hango: `show` says whether it is rebuilt exactly."
