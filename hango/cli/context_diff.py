"""`hango context diff`: what changed from one model call to another, and where the cached prefix broke."""

from __future__ import annotations

from typing import Annotated

import typer

from hango.cli.own_command import line
from hango.cli.past_calls import RunID, path_of
from hango.cli.tries import AsJson

NEXT = "next"


def diff(
    *,
    run: RunID,
    call: Annotated[int, typer.Option("--call", metavar="N", min=1, help="The number of the call.")],
    against: Annotated[
        str, typer.Option("--against", metavar="next|RUN:N", help="The call after it, or another one.")
    ] = NEXT,
    as_json: AsJson = False,
) -> None:
    """Show what a later call sent more, less or otherwise, and why a cache could not serve all of it.

    + is sent only by the other call, - only by this one, ~ by both, with another content.

    Example: hango context diff --run ID --call 1
    """
    from hango.cli import diff_table, output, replies
    from hango.cli.client import Client
    from hango.cli.run_replies import Diff

    listed = f"`{line('context', 'calls', '--run', run)}` lists them."
    other = "none after it in the same conversation" if against == NEXT else f"no call {against}"
    missing = f"there is no call {call} of run {run} that you may read, or {other}. {listed}"
    with Client.from_environment() as client:
        body = client.get(f"{path_of(run)}/calls/{call}/context", {"against": against}, missing=missing)
    if as_json:
        output.emit_reply(body)
        return
    to = "the next call" if against == NEXT else f"call {against}"
    output.emit(diff_table.lines(replies.read(body, Diff), f"call {call} of run {run} → {to}", output.width()))
