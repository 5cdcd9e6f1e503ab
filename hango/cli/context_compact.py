"""`hango context compact`: the summary that a run would make, looked at, put in force, and taken back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated
from urllib.parse import quote

import typer

from hango.cli.own_command import line
from hango.cli.tries import AsJson, SessionID, Timeout

if TYPE_CHECKING:
    from hango.cli.client import Client
    from hango.cli.pending import Work
    from hango.cli.run_replies import SummaryPreview


def compact(
    *,
    session: SessionID,
    preview: Annotated[bool, typer.Option("--preview", help="Ask for a summary, show it, save nothing.")] = False,
    apply: Annotated[bool, typer.Option("--apply", help="Show it, ask, and put it in force.")] = False,
    undo: Annotated[bool, typer.Option("--undo", help="Take the last summary back.")] = False,
    show: Annotated[
        str | None, typer.Option("--show", metavar="ID", help="Take this earlier preview, and call no model.")
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Put it in force without asking.")] = False,
    timeout: Timeout = None,
    as_json: AsJson = False,
) -> None:
    """Put a summary in the place of the older messages of a session, as a run does when the context grows long.

    The messages stay in the session. A preview lists what the summary no longer mentions: paths, numbers, URLs,
    identifiers and commands.

    Example: hango context compact --session ID --preview
    """
    if preview + apply + undo != 1:
        raise typer.BadParameter("Say one of --preview, --apply and --undo.")
    if undo and show is not None:
        raise typer.BadParameter("--undo takes back what is in force: it takes no --show.")
    if apply and as_json and not yes:
        raise typer.BadParameter("--json shows nothing to agree to: --apply takes it together with --yes.")
    from hango.cli.client import Client

    with Client.from_environment() as client:
        if undo:
            _undo(client, session, as_json=as_json)
            return
        body = _previewed(client, session, show, timeout, as_json=as_json)
        if as_json:
            from hango.cli import output

            output.emit_reply(_applied(client, session, body) if apply else body)
            return
        _show(client, session, body)
        if apply:
            _apply(client, session, body, yes=yes)
        else:
            _say_next(session, body)


def work_of(id_: str, session: str) -> Work[SummaryPreview]:
    """A preview as something to wait for."""
    from hango.cli.pending import Work, hint
    from hango.cli.run_replies import SummaryPreview

    return Work(
        word="preview",
        path=f"/v1/summary-previews/{quote(id_, safe='')}",
        kind=SummaryPreview,
        look=line("context", "compact", "--session", session, "--preview", "--show", id_),
        state=lambda seen, seconds: (
            f"{seen.status} {seconds:.1f} s{hint(queued=seen.status == 'queued', seconds=seconds)}"
        ),
    )


def _previewed(client: Client, session: str, show: str | None, timeout: int | None, *, as_json: bool) -> bytes:
    """The API's reply about a preview that has a text. Raises Failure."""
    from hango.cli import compact_report, output, pending, replies
    from hango.cli.override_sets import no_session
    from hango.cli.pending import CtrlC, Outcome
    from hango.cli.run_replies import SummaryPreview

    if show is None:
        path = f"/v1/sessions/{quote(session, safe='')}/summary/preview"
        again = line("context", "compact", "--session", session, "--preview")
        body = pending.send(client, path, None, word="preview", listing=again, missing=no_session(session))
    else:
        body = client.get(work_of(show, session).path, missing=f"no preview {show} that you may read.")
    work = work_of(replies.read(body, SummaryPreview).id, session)
    outcome, body = pending.wait(client, work, body, seconds=timeout, ctrl_c=CtrlC.LEAVES)
    seen = replies.read(body, SummaryPreview)
    fault = compact_report.fault(seen) if outcome is Outcome.ENDED else work.failure(outcome)
    if fault is not None:
        if as_json:
            output.emit_reply(body)
        raise fault
    return body


def _show(client: Client, session: str, body: bytes) -> None:
    from hango.cli import compact_report, output, replies
    from hango.cli.override_sets import no_session
    from hango.cli.run_replies import SummaryPreview

    path = f"/v1/sessions/{quote(session, safe='')}/context"
    shot = replies.read(client.get(path, {"count": "estimate"}, missing=no_session(session)), replies.Snapshot)
    output.emit(compact_report.lines(replies.read(body, SummaryPreview), shot, output.width()))


def _say_next(session: str, body: bytes) -> None:
    from hango.cli import output, replies
    from hango.cli.run_replies import SummaryPreview

    seen = replies.read(body, SummaryPreview)
    output.note(f"put it in force: {line('context', 'compact', '--session', session, '--apply', '--show', seen.id)}")


def _apply(client: Client, session: str, body: bytes, *, yes: bool) -> None:
    from hango.cli import output, replies
    from hango.cli.run_replies import SummaryPreview

    if not yes:
        _ask(session, body)
    _applied(client, session, body)
    through = replies.read(body, SummaryPreview).through_seq
    output.note(f"in force: the summary of the messages up to message:{through}, which stay in the session.")
    output.note(f"take it back: {line('context', 'compact', '--session', session, '--undo')}")


def _ask(session: str, body: bytes) -> None:
    from hango.cli import asking, output
    from hango.cli.exits import ExitCode, Failure

    if not asking.someone_there():
        _say_next(session, body)
        said = "there is no terminal to ask on, so nothing was saved. --yes saves without asking."
        raise Failure(said, code=ExitCode.USAGE)
    try:
        agreed = asking.agreed("put it in force?")
    except KeyboardInterrupt:
        output.note("")
        agreed = False
    if not agreed:
        _say_next(session, body)
        raise Failure("nothing was saved.")


def _applied(client: Client, session: str, body: bytes) -> bytes:
    """Put the preview's text in force; the API's replies to both in one object, each as it came."""
    import msgspec

    from hango.cli import replies
    from hango.cli.override_sets import no_session
    from hango.cli.run_replies import SummaryPreview

    seen = replies.read(body, SummaryPreview)
    wanted = {"text": seen.text, "through_seq": seen.through_seq}
    saved = client.put(f"/v1/sessions/{quote(session, safe='')}/summary", wanted, missing=no_session(session))
    return msgspec.json.encode({"preview": msgspec.Raw(body), "summary": msgspec.Raw(saved)})


def _undo(client: Client, session: str, *, as_json: bool) -> None:
    from hango.cli import output, replies, run_messages
    from hango.cli.override_sets import no_session
    from hango.cli.run_replies import Session

    was = run_messages.session(client, session).summary
    path = f"/v1/sessions/{quote(session, safe='')}"
    client.delete(f"{path}/summary", missing=f"session {session} has no summary to take back.")
    body = client.get(path, missing=no_session(session))
    if as_json:
        output.emit_reply(body)
        return
    now = replies.read(body, Session).summary
    through = "" if was is None else f" of the messages up to message:{was.through_seq}"
    output.note(f"taken back: the summary{through}.")
    if now is None:
        output.note("its messages are sent again.")
    else:
        output.note(f"the one before it, up to message:{now.through_seq}, is in force again.")
