"""`hango context exclude, include, replace, clear, overrides`: saved overrides of a session and of its agent."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated
from urllib.parse import quote

import typer

from hango.cli.exits import Failure
from hango.cli.own_command import line, own_command

if TYPE_CHECKING:
    from hango.cli.client import Client
    from hango.cli.override_sets import Change, Place, Saved

Parts = Annotated[list[str], typer.Argument(metavar="PART...", help="Ids of parts, as `hango context show` has them.")]
SessionID = Annotated[str, typer.Option("--session", metavar="ID", help="The session's id.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Show what would change, and save nothing.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print the API's replies as they came, one a line.")]


def exclude(parts: Parts, *, session: SessionID, dry_run: DryRun = False, as_json: AsJson = False) -> None:
    """Leave parts out of later calls. The history stays as it is.

    Parts of the agent (system:..., tool:...) are left out in all its sessions. A tool call leaves with its results.

    Example: hango context exclude --session ID message:41 tool:search
    """
    from hango.cli.override_sets import Change

    again = line("context", "include", "--session", session, *parts)
    _change(session, Change(exclude=tuple(parts)), dry_run=dry_run, as_json=as_json, undo=again)


def include(parts: Parts, *, session: SessionID, dry_run: DryRun = False, as_json: AsJson = False) -> None:
    """Take overrides back: the parts are sent as they are.

    Example: hango context include --session ID message:41
    """
    from hango.cli.override_sets import Change

    _change(session, Change(include=tuple(parts)), dry_run=dry_run, as_json=as_json)


def replace(
    part: Annotated[str, typer.Argument(metavar="PART", help="The part's id.")],
    *,
    session: SessionID,
    text: Annotated[str | None, typer.Option("--text", metavar="TEXT", help="The text to send instead.")] = None,
    file: Annotated[str | None, typer.Option("--file", metavar="FILE", help="A file with it, or - for stdin.")] = None,
    editor: Annotated[bool, typer.Option("--editor", help="Write it in your editor.")] = False,
    dry_run: DryRun = False,
    as_json: AsJson = False,
) -> None:
    """Send another text for a part in later calls. The history stays as it is.

    Example: hango context replace --session ID message:42 --text "Four boxes."
    """
    if (text is not None) + (file is not None) + editor != 1:
        raise typer.BadParameter("Give the text by one of --text, --file and --editor.")
    from hango.cli.override_sets import Change

    wanted = text if text is not None else _read(file) if file is not None else _edited(session, part)
    again = line("context", "include", "--session", session, part)
    _change(session, Change(replace={part: wanted}), dry_run=dry_run, as_json=as_json, undo=again)


def clear(
    *,
    session: SessionID,
    keep_agent: Annotated[
        bool, typer.Option("--keep-agent", help="Clear the session's overrides only, not the agent's.")
    ] = False,
    dry_run: DryRun = False,
    as_json: AsJson = False,
) -> None:
    """Take back all overrides of a session and of its agent.

    The agent's are then gone in all its sessions; --keep-agent leaves them.

    Example: hango context clear --session ID
    """
    from hango.cli.override_sets import Change, Level

    levels = (Level.SESSION,) if keep_agent else tuple(Level)
    _change(session, Change(clear=levels), dry_run=dry_run, as_json=as_json)


def overrides(*, session: SessionID, as_json: AsJson = False) -> None:
    """List the saved overrides of a session and of its agent.

    With --json: the agent's set on the first line, the session's on the second.

    Example: hango context overrides --session ID
    """
    from hango.cli import output, override_report, override_sets, replies
    from hango.cli.client import Client

    with Client.from_environment() as client:
        place = override_sets.find(client, session)
        found = dict(override_sets.read(client, place))
        if as_json:
            _emit_replies([body for body in found.values() if body is not None])
            return
        sets = {level: replies.read(body, replies.Overrides) for level, body in found.items() if body is not None}
        snapshot = override_sets.look(client, place)
    if any(one.overrides for one in sets.values()):
        output.emit(override_report.saved_lines(sets, snapshot, output.width()))
    elif len(sets) == len(found):
        output.note(f"no overrides. `{own_command()} context exclude` leaves a part out.")
    if len(sets) < len(found):
        effect = f"`{own_command()} context show` has their effect."
        output.note(f"the overrides of agent {place.agent_id} are not yours to read; {effect}")


def _change(session: str, change: Change, *, dry_run: bool, as_json: bool, undo: str | None = None) -> None:
    """Save a change, or only look at it; then say what it does."""
    from hango.cli import output, override_report, override_sets
    from hango.cli.client import Client

    with Client.from_environment() as client:
        place = override_sets.find(client, session)
        before = None if as_json else override_sets.look(client, place)
        save = _cleared if change.clear else override_sets.save
        saved = save(client, place, change, check=dry_run)
        if before is None:
            _emit_replies([one.body for one in saved])
            return
        done = any(one.changed for one in saved)
        if not done:
            after = before
        elif dry_run:
            after = override_sets.preview(client, place, saved, change)
        else:
            after = override_sets.look(client, place)
    if done:
        output.emit(override_report.lines(before, after, output.width()))
    if change.clear:
        for note in override_report.cleared(before, saved, dry_run=dry_run):
            output.note(note)
    for note in override_report.notes(before, after, saved, change):
        output.note(note)
    if done and dry_run:
        output.note("nothing was saved. Without --dry-run it is.")
    elif done and undo is not None:
        output.note(f"take it back: {undo}")
    elif change.clear and not done:
        output.note("no overrides: there is nothing to clear.")


def _cleared(client: Client, place: Place, change: Change, *, check: bool) -> list[Saved]:
    """Each set by itself: that the agent's is not the caller's to change keeps nobody from clearing the session's."""
    from hango.cli import output, override_sets
    from hango.cli.client import Missing
    from hango.cli.override_sets import Change, Level

    made: list[Saved] = []
    for level in change.clear:
        try:
            made += override_sets.save(client, place, Change(clear=(level,)), check=check)
        except Missing:
            if level is Level.SESSION:
                raise
            output.note(f"the overrides of agent {place.agent_id} stay: only who made it and admins may change them.")
    return made


def _emit_replies(bodies: Sequence[bytes]) -> None:
    from hango.cli import output

    for body in bodies:
        output.emit_reply(body)


def _read(file: str) -> str:
    from hango.cli.editor import decoded
    from hango.cli.imports import opened

    with opened(file) as (stream, _):
        return decoded(stream.read(), "the standard input" if file == "-" else file)


def _edited(session: str, part: str) -> str:
    """The text that is sent now, as a person changed it."""
    from hango.cli import editor, replies
    from hango.cli.client import Client

    with Client.from_environment() as client:
        missing = f"no part {part} in session {session}, or no such session that you may read."
        body = client.get(f"/v1/sessions/{quote(session, safe='')}/context", {"full": part}, missing=missing)
    now = replies.read(body, replies.FullPart).text
    if now is None:
        raise Failure(f"{part} cannot be replaced. Exclude it instead.")
    wanted = editor.edit(now)
    if wanted == now:
        raise Failure("the text was not changed, so nothing was saved.")
    return wanted
