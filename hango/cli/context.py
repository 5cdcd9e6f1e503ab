"""`hango context`: what the next model request of a session will contain, and the commands that change it."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated
from urllib.parse import quote

import typer

from hango.cli import compare, context_compact, context_diff, context_overrides, past_calls, tries
from hango.cli.own_command import line

if TYPE_CHECKING:
    from hango.cli.client import Client
    from hango.cli.replies import Snapshot

app = typer.Typer(
    help="See what the next model request of a session will contain, and change it.",
    no_args_is_help=True,
    rich_markup_mode=None,
    add_completion=False,
)


@app.callback()
def context() -> None:
    """See what the next model request of a session will contain, and change it."""


class Group(StrEnum):
    SYSTEM = "system"
    TOOLS = "tools"
    MESSAGES = "messages"


class Sort(StrEnum):
    ORDER = "order"
    TOKENS = "tokens"


@app.command()
def show(
    *,
    session: Annotated[str | None, typer.Option("--session", metavar="ID", help="The session's id.")] = None,
    run: Annotated[str | None, typer.Option("--run", metavar="ID", help="What the model saw in this run.")] = None,
    call: Annotated[int | None, typer.Option("--call", metavar="N", min=1, help="In this call of the run.")] = None,
    full: Annotated[str | None, typer.Option("--full", metavar="PART", help="Print one part's whole content.")] = None,
    group: Annotated[Group | None, typer.Option("--group", help="Show this group only.")] = None,
    sort: Annotated[Sort, typer.Option("--sort", help="Order of the parts.")] = Sort.ORDER,
    provider: Annotated[
        bool, typer.Option("--provider", help="Print the body as the provider would get it, as JSON.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the API's reply as it came.")] = False,
) -> None:
    """Show what the next model request will contain, part by part; or what a past one of a run did.

    [x] is sent, [ ] left out, [~] sent with a replaced text, [!] wanted but not sent.

    Example: hango context show --session ID --sort tokens
    """
    if (session is None) == (run is None):
        raise typer.BadParameter("Name a session by --session, or a run by --run and --call.")
    if (run is None) != (call is None):
        raise typer.BadParameter("--run and --call go together: `hango context calls --run ID` lists the calls.")
    if run is not None and (full is not None or provider):
        raise typer.BadParameter("--full and --provider are of the next request: they take no --run.")
    if full is not None and provider:
        raise typer.BadParameter("--full and --provider exclude each other: a part is no request.")
    from hango.cli import output
    from hango.cli.client import Client
    from hango.cli.override_sets import no_session

    if run is not None and call is not None:
        _show_past(run, call, group, sort, as_json=as_json)
        return
    assert session is not None, "it is the one that is left"
    path = f"/v1/sessions/{quote(session, safe='')}/context"
    missing = no_session(session)
    with Client.from_environment() as client:
        if full is not None:
            missing = f"no part {full} in session {session}, or no such session that you may read."
            body = client.get(path, {"full": full}, missing=missing)
        elif provider:
            body = client.get(path, {"format": "provider"}, missing=missing)
        else:
            body = client.get(path, {"group": group if as_json else None}, missing=missing)
        if as_json or provider:
            output.emit_reply(body)
        elif full is not None:
            _emit_part(body)
        else:
            _emit_table(client, body, group, sort)


for command in (
    context_overrides.exclude,
    context_overrides.include,
    context_overrides.replace,
    context_overrides.clear,
    context_overrides.overrides,
):
    app.command()(command)
app.command("try")(tries.try_)
app.command()(compare.compare)
app.command()(tries.tries)
app.command()(tries.cancel)
app.command()(past_calls.calls)
app.command()(context_diff.diff)
app.command()(context_compact.compact)


def _emit_part(body: bytes) -> None:
    from hango.cli import context_part, output, replies

    output.emit(context_part.lines(replies.read(body, replies.FullPart)))


def _emit_table(client: Client, body: bytes, group: Group | None, sort: Sort) -> None:
    from hango.cli import context_table, output, replies

    shot = replies.read(body, replies.Snapshot)
    lines = context_table.lines(
        shot,
        agent=_agent_name(client, shot.agent_id),
        width=output.width(),
        groups=replies.GROUPS if group is None else (group.value,),
        by_tokens=sort is Sort.TOKENS,
    )
    output.emit(lines)
    if (part := _worth_a_look(shot)) is not None:
        output.note(f"look at it: {line('context', 'show', '--session', shot.session_id, '--full', part)}")


def _show_past(run: str, call: int, group: Group | None, sort: Sort, *, as_json: bool) -> None:
    from msgspec.structs import replace

    from hango.cli import context_table, output, past_calls, replies
    from hango.cli.client import Client
    from hango.cli.run_replies import PastSnapshot

    with Client.from_environment() as client:
        body = past_calls.read(client, run, call)
        if as_json:
            output.emit_reply(body)
            return
        shot = replies.read(body, PastSnapshot)
        heading = past_calls.heading(run, call, past_calls.purpose(client, run, call))
        lines = context_table.lines(
            replace(shot, would_compact=False),  # it was sent as it is
            agent=_agent_name(client, shot.agent_id),
            width=output.width(),
            groups=replies.GROUPS if group is None else (group.value,),
            by_tokens=sort is Sort.TOKENS,
        )
    output.emit([*past_calls.heading_lines(heading, shot, output.width()), *lines])


def _agent_name(client: Client, agent_id: str) -> str:
    """The name, or the id where the agent may not be read."""
    import json

    from hango.cli.exits import Failure

    try:
        return str(json.loads(client.get(f"/v1/agents/{quote(agent_id, safe='')}"))["name"])
    except (Failure, ValueError, KeyError):
        return f"agent {agent_id}"


def _worth_a_look(shot: Snapshot) -> str | None:
    """The first part with a problem."""
    return next((problem.part for problem in shot.problems if problem.part is not None), None)
