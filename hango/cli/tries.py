"""`hango context try, tries, cancel`: one model call with overrides of its own, which leaves the session as it is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated
from urllib.parse import quote

import typer

from hango.cli.own_command import line, own_command

if TYPE_CHECKING:
    from hango.cli.client import Client
    from hango.cli.pending import Work
    from hango.cli.try_replies import Batch, Try

Wait = Annotated[bool, typer.Option("--wait/--no-wait", help="Wait for the answer, or print the id and end.")]
Timeout = Annotated[
    int | None, typer.Option("--timeout", metavar="SECONDS", min=1, help="Wait no longer. Default: until it ends.")
]
Message = Annotated[
    str | None, typer.Option("--message", metavar="TEXT", help="A message of the user at the end of the history.")
]
Until = Annotated[
    int | None, typer.Option("--until", metavar="N", min=1, help="Cut the history after message N: ask it again.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print the API's reply as it came.")]
SessionID = Annotated[str, typer.Option("--session", metavar="ID", help="The session's id.")]

MOST = 500  # the API's own limit


def try_(
    *,
    session: Annotated[str | None, typer.Option("--session", metavar="ID", help="The session's id.")] = None,
    exclude: Annotated[
        list[str] | None, typer.Option("--exclude", metavar="PART", help="Leave this part out. Repeatable.")
    ] = None,
    replace: Annotated[
        list[str] | None,
        typer.Option(
            "--replace",
            metavar="PART=TEXT",
            help="Send this text for the part; @FILE reads it from a file, @@ is a leading @. Repeatable.",
        ),
    ] = None,
    include: Annotated[
        list[str] | None,
        typer.Option("--include", metavar="PART", help="Send this part as if no override of it were saved; * for all."),
    ] = None,
    message: Message = None,
    until: Until = None,
    model: Annotated[
        str | None, typer.Option("--model", metavar="PROVIDER/MODEL", help="Ask this model, not the agent's.")
    ] = None,
    label: Annotated[str | None, typer.Option("--label", metavar="TEXT", help="A name to find it by.")] = None,
    show: Annotated[str | None, typer.Option("--show", metavar="ID", help="Look at an earlier try.")] = None,
    wait: Wait = True,
    timeout: Timeout = None,
    as_json: AsJson = False,
) -> None:
    """Ask the model once with other parts, and print its answer.

    The session gets no message; tools that the model calls are shown and never run. Saved overrides hold; what is given
    here comes on top. Ctrl-C asks whether to cancel the call.

    Example: hango context try --session ID --exclude message:41 --message "How many bolts?"
    """
    if (show is None) == (session is None):
        raise typer.BadParameter("Name a session by --session, or an earlier try by --show.")
    if show is not None and (exclude or replace or include or message or until or model or label):
        raise typer.BadParameter("--show looks at an earlier try: it takes no overrides, message, model or label.")
    from hango.cli.client import Client

    with Client.from_environment() as client:
        if session is None:
            from hango.cli import looked_up

            body = looked_up.a_try(client, str(show))
        else:
            from hango.cli import absent, ad_hoc, output, pending
            from hango.cli.override_sets import no_session

            wanted = ad_hoc.body(client, session, exclude=exclude or [], replace=replace or [], include=include or [])
            more = {"message": message, "until": until, "model": model, "label": label}
            wanted |= {name: value for name, value in more.items() if value is not None}
            # Looked up first: once a try is sent, nothing may keep its id from the person.
            notes = list(absent.notes(client, session, [*wanted["exclude"], *wanted["replace"], *wanted["include"]]))
            path = f"/v1/sessions/{quote(session, safe='')}/context/try"
            body = pending.send(client, path, wanted, word="try", listing=listing(session), missing=no_session(session))
            for note in notes:
                output.note(note)
        _told(client, body, wait=wait, timeout=timeout, as_json=as_json, queued=show is None)


def tries(
    *,
    session: SessionID,
    batches: Annotated[bool, typer.Option("--batches", help="List the batches of `hango context compare`.")] = False,
    limit: Annotated[int, typer.Option("--limit", metavar="N", min=1, max=MOST, help="How many at most.")] = 50,
    as_json: AsJson = False,
) -> None:
    """List the tries of a session, the latest first.

    Example: hango context tries --session ID
    """
    from hango.cli import output
    from hango.cli.client import Client
    from hango.cli.override_sets import no_session

    name = "try-batches" if batches else "tries"
    with Client.from_environment() as client:
        path = f"/v1/sessions/{quote(session, safe='')}/{name}"
        body = client.get(path, {"limit": limit}, missing=no_session(session))
    if as_json:
        output.emit_reply(body)
        return
    more = _print_batches(body) if batches else _print_tries(body)
    if more and limit < MOST:
        output.note(f"there are more: {listing(session, '--limit', str(MOST), batches=batches)}")


def cancel(
    id_: Annotated[str, typer.Argument(metavar="ID", help="The id of a try or of a batch.")],
    *,
    as_json: AsJson = False,
) -> None:
    """Cancel a try, or every try of a batch that has not ended.

    A call that is under way ends within ten seconds; its provider may have charged for it.

    Example: hango context cancel ID
    """
    from hango.cli import output, replies
    from hango.cli.client import Client, Missing
    from hango.cli.try_replies import Batch, Try

    with Client.from_environment() as client:
        try:
            body = client.post(f"{_path(id_)}/cancel", missing="no such try")
            seen: Try | Batch = replies.read(body, Try)
        except Missing:
            path = f"/v1/try-batches/{quote(id_, safe='')}/cancel"
            listed = f"`{own_command()} context tries --session ID` lists them."
            body = client.post(path, missing=f"no try or batch {id_} that you may cancel. {listed}")
            seen = replies.read(body, Batch)
    if as_json:
        output.emit_reply(body)
        return
    output.note(_cancelled(seen))


def listing(session: str, *words: str, batches: bool = False) -> str:
    """The command that lists the tries of a session, to be pasted."""
    return line("context", "tries", "--session", session, *(["--batches"] if batches else []), *words)


def work_of(id_: str) -> Work[Try]:
    """A try as something to wait for."""
    from hango.cli.pending import Work, hint
    from hango.cli.try_replies import Try

    return Work(
        word="try",
        path=_path(id_),
        kind=Try,
        look=line("context", "try", "--show", id_),
        state=lambda seen, seconds: (
            f"{seen.status} {seconds:.1f} s{hint(queued=seen.status == 'queued', seconds=seconds)}"
        ),
    )


def _told(client: Client, body: bytes, *, wait: bool, timeout: int | None, as_json: bool, queued: bool) -> None:
    """Wait where that is wanted, then print the try. Raises Failure when it has no answer."""
    from hango.cli import output, pending, replies, try_report
    from hango.cli.output import Line
    from hango.cli.pending import Outcome
    from hango.cli.text import one_line
    from hango.cli.try_replies import Try

    work = work_of(replies.read(body, Try).id)
    outcome = Outcome.ENDED
    if wait:
        outcome, body = pending.wait(client, work, body, seconds=timeout)
    seen = replies.read(body, Try)
    if as_json:
        output.emit_reply(body)
    elif queued and not wait:
        output.emit([Line.of(one_line(seen.id))])
        output.note(f"look at it: {work.look}")
    elif outcome is Outcome.ENDED:
        output.emit(try_report.lines(seen, output.width()))
    if outcome is not Outcome.ENDED:
        raise work.failure(outcome)
    if (fault := try_report.fault(seen)) is not None:
        raise fault


def _print_tries(body: bytes) -> bool:
    """Print a page of tries; whether there are more."""
    from hango.cli import output, replies, try_lists
    from hango.cli.try_replies import TryPage

    page = replies.read(body, TryPage)
    if page.data:
        output.emit(try_lists.of_tries(page.data, output.width()))
    else:
        output.note(f"no tries. `{own_command()} context try` makes one.")
    return page.next_cursor is not None


def _print_batches(body: bytes) -> bool:
    """Print a page of batches; whether there are more."""
    from hango.cli import output, replies, try_lists
    from hango.cli.try_replies import BatchPage

    page = replies.read(body, BatchPage)
    if page.data:
        output.emit(try_lists.of_batches(page.data, output.width()))
    else:
        output.note(f"no batches. `{own_command()} context compare` makes one.")
    return page.next_cursor is not None


def _cancelled(seen: Try | Batch) -> str:
    """What a cancel did, in words."""
    from hango.cli.try_replies import Batch

    if isinstance(seen, Batch):
        if seen.unfinished:
            return f"batch {seen.id}: {seen.unfinished} of {seen.calls} calls are under way and end in a moment."
        return f"batch {seen.id} has ended: {seen.counts.get('cancelled', 0)} of {seen.calls} calls were cancelled."
    if not seen.ended:
        return f"try {seen.id} is under way and ends in a moment."
    return f"try {seen.id} is cancelled." if seen.status == "cancelled" else f"try {seen.id} had ended: {seen.status}."


def _path(id_: str) -> str:
    return f"/v1/tries/{quote(id_, safe='')}"
