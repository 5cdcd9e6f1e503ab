"""`hango run, runs`: the agent goes on with a session, with tools, until it stops; and what its runs came to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import quote

import typer

from hango.cli.own_command import line, own_command
from hango.cli.tries import AsJson, SessionID, Timeout

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hango.cli.client import Client
    from hango.cli.pending import Work
    from hango.cli.run_replies import Run

MOST = 500  # the API's own limit
STDIN = "-"


def run(
    text: Annotated[
        str | None,
        typer.Argument(
            metavar="TEXT", help="What you say; - for stdin. Without it the agent goes on.", show_default=False
        ),
    ] = None,
    *,
    session: Annotated[str | None, typer.Option("--session", metavar="ID", help="The session's id.")] = None,
    result: Annotated[
        list[str] | None,
        typer.Option(
            "--result",
            metavar="CALL=TEXT",
            help="The result of a tool of yours; @FILE reads it from a file, @@ is a leading @. Repeatable.",
        ),
    ] = None,
    show: Annotated[str | None, typer.Option("--show", metavar="ID", help="Look at an earlier run.")] = None,
    cancel: Annotated[str | None, typer.Option("--cancel", metavar="ID", help="Cancel a run.")] = None,
    wait: Annotated[bool, typer.Option("--wait/--no-wait", help="Wait for its end, or print the id and end.")] = True,
    timeout: Timeout = None,
    as_json: AsJson = False,
) -> None:
    """Say something to the agent and let it work until it stops; print what it said and did.

    Its messages stay in the session. A run that calls tools of yours stops and waits for their results. Ctrl-C asks
    whether to cancel.

    Example: hango run --session ID "How many bolts are there?"
    """
    if sum(word is not None for word in (session, show, cancel)) != 1:
        raise typer.BadParameter("Name a session by --session, or an earlier run by --show or --cancel.")
    if session is None and (text is not None or result):
        raise typer.BadParameter("--show and --cancel take no text and no results: name a session to start a run.")
    from hango.cli.client import Client

    with Client.from_environment() as client:
        if cancel is not None:
            _cancel(client, cancel, as_json=as_json)
            return
        if session is None:
            id_ = str(show)
            listed = f"`{own_command()} runs --session ID` lists them."
            body = client.get(path_of(id_), missing=f"no run {id_} that you may read. {listed}")
        else:
            body = start(client, session, message(text, result or []))
        _told(client, body, wait=wait, timeout=timeout, as_json=as_json, started=session is not None)


def runs(
    *,
    session: SessionID,
    limit: Annotated[int, typer.Option("--limit", metavar="N", min=1, max=MOST, help="How many at most.")] = 50,
    as_json: AsJson = False,
) -> None:
    """List the runs of a session, the latest first.

    Example: hango runs --session ID
    """
    from hango.cli import output, replies, run_lists
    from hango.cli.client import Client
    from hango.cli.override_sets import no_session
    from hango.cli.run_replies import RunPage

    with Client.from_environment() as client:
        path = f"/v1/sessions/{quote(session, safe='')}/runs"
        body = client.get(path, {"limit": limit}, missing=no_session(session))
    if as_json:
        output.emit_reply(body)
        return
    page = replies.read(body, RunPage)
    if not page.data:
        output.note(f"no runs. `{own_command()} run` makes one.")
        return
    output.emit(run_lists.of_runs(page.data, output.width()))
    if page.next_cursor is not None and limit < MOST:
        output.note(f"there are more: {line('runs', '--session', session, '--limit', str(MOST))}")


def message(text: str | None, results: Sequence[str]) -> str | list[dict[str, Any]] | None:
    """What starts a run, as the API takes it. Raises typer.BadParameter for words that say nothing."""
    from hango.cli import ad_hoc

    said = ad_hoc.text_of("@-") if text == STDIN else text
    if not results:
        return said
    given: dict[str, str] = {}
    for word in results:
        call, mark, shown = word.partition("=")
        if not mark or not call:
            raise typer.BadParameter(f"--result {word!r} is not CALL=TEXT. Write it like toolu_1='Four boxes.'")
        if call in given:
            raise typer.BadParameter(f"--result names {call} twice. Give one text for it.")
        given[call] = ad_hoc.text_of(shown)
    return answer(given) + ([] if said is None else [{"type": "text", "text": said}])


def answer(results: dict[str, str]) -> list[dict[str, Any]]:
    """The message that carries results of the client's tools, by the ids of their calls."""
    return [{"type": "tool_result", "tool_use_id": call, "content": text} for call, text in results.items()]


def start(client: Client, session: str, said: str | list[dict[str, Any]] | None) -> bytes:
    """Start a run, once whatever the connection does. Gives its first reply. Raises Failure."""
    from hango.cli import pending
    from hango.cli.override_sets import no_session

    wanted = {} if said is None else {"message": said}
    path = f"/v1/sessions/{quote(session, safe='')}/runs"
    listing = line("runs", "--session", session)
    return pending.send(client, path, wanted, word="run", listing=listing, missing=no_session(session))


def work_of(id_: str) -> Work[Run]:
    """A run as something to wait for."""
    from hango.cli.pending import Work
    from hango.cli.run_replies import Run

    return Work(word="run", path=path_of(id_), kind=Run, look=line("run", "--show", id_), state=_state)


def path_of(id_: str) -> str:
    return f"/v1/runs/{quote(id_, safe='')}"


def _state(seen: Run, seconds: float) -> str:
    from hango.cli.pending import hint

    turns = f"  {seen.turns} turn{'s' * (seen.turns != 1)}" if seen.turns else ""
    return f"{seen.status}{turns}  {seconds:.1f} s{hint(queued=seen.status == 'queued', seconds=seconds)}"


def _told(client: Client, body: bytes, *, wait: bool, timeout: int | None, as_json: bool, started: bool) -> None:
    """Wait where that is wanted, then print the run. Raises Failure when it came to no answer."""
    from hango.cli import output, pending, replies, run_messages, run_report
    from hango.cli.output import Line
    from hango.cli.pending import Outcome
    from hango.cli.run_replies import Run
    from hango.cli.text import one_line

    work = work_of(replies.read(body, Run).id)
    outcome = Outcome.ENDED
    if wait:
        outcome, body = pending.wait(client, work, body, seconds=timeout)
    seen = replies.read(body, Run)
    if as_json:
        output.emit_reply(body)
    elif started and not wait:
        output.emit([Line.of(one_line(seen.id))])
        output.note(f"look at it: {work.look}")
    elif outcome is Outcome.ENDED:
        written = run_messages.of_run(client, seen)
        calls = run_report.asked(seen, written.messages, written.end)
        output.emit(run_report.lines(seen, written.messages, calls, output.width(), with_question=not started))
        for words in run_report.how_to_answer(seen, calls):
            output.note(words)
    if outcome is not Outcome.ENDED:
        raise work.failure(outcome)
    if (fault := run_report.fault(seen)) is not None:
        raise fault


def _cancel(client: Client, id_: str, *, as_json: bool) -> None:
    from hango.cli import output, replies
    from hango.cli.run_replies import Run

    listed = f"`{own_command()} runs --session ID` lists them."
    body = client.post(f"{path_of(id_)}/cancel", missing=f"no run {id_} that you may cancel. {listed}")
    if as_json:
        output.emit_reply(body)
        return
    seen = replies.read(body, Run)
    if not seen.ended:
        output.note(f"run {seen.id} is under way and ends in a moment.")
    elif seen.status == "cancelled":
        output.note(f"run {seen.id} is cancelled.")
    else:
        output.note(f"run {seen.id} had ended: {seen.status}.")
