"""`hango chat`: a line is said, the agent answers, and so on. Each line is a run of the session."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from hango.cli.runs import answer, start, work_of
from hango.cli.tries import SessionID

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hango.cli.client import Client
    from hango.cli.run_replies import Run
    from hango.cli.run_report import Asked

PROMPT = "> "
EXIT = "/exit"


def chat(*, session: SessionID) -> None:
    """Talk to the agent of a session, line by line. What is said stays in the session.

    /exit or Ctrl-D ends it; Ctrl-C cancels the answer under way and stays. Lines may come from a pipe.

    Example: hango chat --session ID
    """
    from hango.cli import asking, output, run_messages
    from hango.cli.client import Client

    with Client.from_environment() as client:
        there = run_messages.session(client, session)
        if asking.someone_there():
            named = f"{there.title} · " if there.title else ""
            output.note(f"{named}session {there.id} · {EXIT} ends, Ctrl-C cancels an answer")
            _go_on(client, session, None if there.last_run is None else there.last_run.id)
            while (said := _read(PROMPT)) is not None:
                if said.strip() == EXIT:
                    return
                if said.strip():
                    _kindly(client, session, said)
            return
        for said in iter(lambda: _read(""), None):
            if said.strip() == EXIT:
                return
            if said.strip():
                _converse(client, session, said)


def _go_on(client: Client, session: str, last_run: str | None) -> None:
    """Where the last run waits for results of the client's tools, they are asked for first."""
    from hango.cli import output, replies, run_messages, run_report
    from hango.cli.run_replies import Run

    if last_run is None:
        return
    seen = replies.read(client.get(work_of(last_run).path), Run)
    if not seen.waits_for_client:
        return
    written = run_messages.of_run(client, seen)
    calls = run_report.asked(seen, written.messages, written.end)
    if calls:
        output.emit(run_report.lines(seen, written.messages, calls, output.width(), with_question=True))
        if (results := _results(calls)) is not None:
            _kindly(client, session, answer(results))


def _kindly(client: Client, session: str, said: str | list[dict[str, Any]]) -> None:
    """A failure is told, and the conversation goes on."""
    from hango.cli import output
    from hango.cli.exits import Failure

    try:
        _converse(client, session, said)
    except Failure as failure:
        output.note(f"hango: {failure.sentence}")
        for words in failure.more:
            output.note(f"  {words}")


def _converse(client: Client, session: str, said: str | list[dict[str, Any]]) -> None:
    """Say it, print what comes, and give the results that the agent asks for. Raises Failure."""
    from hango.cli import asking, output, run_messages, run_report
    from hango.cli.exits import Failure
    from hango.cli.output import Line, Style

    while True:
        seen = _run(client, session, said)
        written = run_messages.of_run(client, seen)
        calls = run_report.asked(seen, written.messages, written.end)
        shown = run_report.lines(seen, written.messages, calls, output.width(), with_question=False, facts=Style.FAINT)
        output.emit([*shown, Line()])
        if (fault := run_report.fault(seen)) is not None:
            raise fault
        if not calls:
            return
        if not asking.someone_there():
            sentence, *more = run_report.how_to_answer(seen, calls)
            raise Failure(sentence, more=more)
        results = _results(calls)
        if results is None:
            return
        said = answer(results)


def _run(client: Client, session: str, said: str | list[dict[str, Any]]) -> Run:
    """One run, waited for; Ctrl-C cancels it. Raises Failure where it goes on without us."""
    from hango.cli import pending, replies
    from hango.cli.pending import CtrlC, Outcome
    from hango.cli.run_replies import Run

    body = start(client, session, said)
    work = work_of(replies.read(body, Run).id)
    outcome, body = pending.wait(client, work, body, seconds=None, ctrl_c=CtrlC.CANCELS)
    if outcome is not Outcome.ENDED:
        raise work.failure(outcome)
    return replies.read(body, Run)


def _results(calls: Sequence[Asked]) -> dict[str, str] | None:
    """What the person says that the tools gave; None when one is left out."""
    from hango.cli import output
    from hango.cli.text import one_line

    given: dict[str, str] = {}
    for call in calls:
        text = _read(f"result of {one_line(call.name)}: ")
        if not text:
            output.note("not answered: what you say next goes on without it.")
            return None
        given[call.id] = text
    return given


def _read(prompt: str) -> str | None:
    """A line, without its end; None when there are no more. Ctrl-C empties the line. Raises Failure for bad bytes."""
    from hango.cli import output
    from hango.cli.exits import Failure

    try:
        if prompt and sys.stdout.isatty():
            import readline  # noqa: F401  its import gives input() a history and keys to edit with

            said: str | None = input(prompt)
        else:
            said = _plain_line(prompt)
    except EOFError:
        said = None
    except KeyboardInterrupt:
        output.note("")
        return ""
    if said is None:
        if prompt:
            output.note("")
        return None
    if not said.isascii() and any("\ud800" <= letter <= "\udfff" for letter in said):
        raise Failure("a line of the standard input is not UTF-8. Write it again as UTF-8.")
    return said


def _plain_line(prompt: str) -> str | None:
    if prompt:
        sys.stderr.write(prompt)
        sys.stderr.flush()
    said = sys.stdin.readline()
    return said.rstrip("\r\n") if said else None
