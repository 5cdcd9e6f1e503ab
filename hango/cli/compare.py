"""`hango context compare`: the same question with other contexts, side by side, in one batch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer

from hango.cli.tries import Message, Timeout, Until

MOST_REPEATS = 30  # the API's own limit
LEAST_MODELS = 2  # are something to compare by themselves


def compare(
    file: Annotated[
        str | None,
        typer.Argument(metavar="FILE.jsonl", help="One variant a line, as JSON; - for stdin.", show_default=False),
    ] = None,
    *,
    session: Annotated[str | None, typer.Option("--session", metavar="ID", help="The session's id.")] = None,
    without: Annotated[
        list[str] | None, typer.Option("--without", metavar="PART", help="A variant without this part. Repeatable.")
    ] = None,
    repeats: Annotated[
        int, typer.Option("--repeats", metavar="N", min=1, max=MOST_REPEATS, help="Ask each variant so many times.")
    ] = 1,
    message: Message = None,
    until: Until = None,
    model: Annotated[
        list[str] | None,
        typer.Option("--model", metavar="PROVIDER/MODEL", help="Ask this model, not the agent's. Repeatable."),
    ] = None,
    label: Annotated[str | None, typer.Option("--label", metavar="TEXT", help="A name to find it by.")] = None,
    show: Annotated[str | None, typer.Option("--show", metavar="ID", help="Look at an earlier batch.")] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Send it without asking.")] = False,
    timeout: Timeout = None,
    diff: Annotated[bool, typer.Option("--diff", help="Show how each answer differs from the base's.")] = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print full columns for programs, cells as they came.")] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the API's replies as they came: {batch, tries}.")
    ] = False,
) -> None:
    """Ask the same with other contexts, and print one row a variant.

    The unchanged context is always the first variant: the base. Several models without other variants are compared on
    it. A line of FILE holds some of: label, exclude, include, replace, message, until, model. Before anything is sent,
    the number of calls and their estimated cost are shown.

    Example: hango context compare --session ID --without system:skills --repeats 5 --message "How many bolts?"
    """
    _check_words(file, session, without, show, model or (), only_one=(diff, as_csv, as_json))
    from hango.cli import (
        absent,
        batches,
        compare_csv,
        compare_rows,
        compare_table,
        compare_variants,
        looked_up,
        output,
        pending,
        replies,
        try_report,
    )
    from hango.cli.client import Client
    from hango.cli.pending import Outcome
    from hango.cli.try_replies import Batch, Try

    with Client.from_environment() as client:
        if session is None:
            body = looked_up.a_batch(client, str(show))
        else:
            absent.refuse(client, session, without or ())
            found = compare_variants.without(without or ()) if file is None else compare_variants.read(file)
            variants = compare_variants.asked(found, message=message, until=until, models=model or [])
            body = batches.send(client, session, variants, repeats=repeats, label=label, yes=yes)
        work = batches.work_of(replies.read(body, Batch).id)
        outcome, body = pending.wait(client, work, body, seconds=timeout)
        if outcome is not Outcome.ENDED:
            if as_json:
                output.emit_reply(body)
            raise work.failure(outcome)
        batch = replies.read(body, Batch)
        tries = batches.tries(client, batch)
    rows = compare_rows.rows(batch, [replies.read(one, Try) for one in tries])
    if as_json:
        output.emit_reply(batches.as_json(body, tries))
    elif as_csv:
        output.emit_csv(compare_csv.rows(rows))
    else:
        output.emit(compare_table.lines(rows, output.width()))
        output.emit(compare_table.diffs(rows) if diff else ())
    if (fault := try_report.batch_fault(batch, compare_rows.failures(rows))) is not None:
        raise fault


def _check_words(
    file: str | None,
    session: str | None,
    without: Sequence[str] | None,
    show: str | None,
    models: Sequence[str],
    *,
    only_one: Sequence[bool],
) -> None:
    if (show is None) == (session is None):
        raise typer.BadParameter("Name a session by --session, or an earlier batch by --show.")
    if show is not None and (file or without):
        raise typer.BadParameter("--show looks at an earlier batch: it takes no variants.")
    if file is not None and without:
        raise typer.BadParameter("Give the variants by a file or by --without, not by both.")
    if show is None and file is None and not without and len(set(models)) < LEAST_MODELS:
        raise typer.BadParameter("Give the variants by a file, by --without, or by several --model.")
    if sum(only_one) > 1:
        raise typer.BadParameter("--diff, --csv and --json exclude each other.")
