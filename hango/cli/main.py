"""The command tree and the way out: a failure is one sentence on stderr and an exit code of the table.

A command's module is imported when the command is called, so that help and the small commands start fast.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Annotated

import typer

from hango import __version__
from hango.cli.exits import ExitCode, Failure
from hango.cli.lazy import HELP_NAMES, Entry, LazyGroup, read_plainly
from hango.cli.own_command import own_command
from hango.errors import HangoError

COMMANDS = {
    "up": Entry("hango.cli.up", "up", "Start everything on this machine, with a demo tenant."),
    "run": Entry("hango.cli.runs", "run", "Say something to an agent and let it work until it stops."),
    "chat": Entry("hango.cli.chat", "chat", "Talk to an agent in the terminal."),
    "runs": Entry("hango.cli.runs", "runs", "List the runs of a session."),
    "context": Entry(
        "hango.cli.context", "app", "See what the next model request of a session will contain, and change it."
    ),
    "import": Entry("hango.cli.imports", "import_", "Make an agent and sessions of a transcript or request body."),
    "sessions": Entry("hango.cli.sessions", "sessions", "List sessions."),
    "agents": Entry("hango.cli.agents", "agents", "List agents."),
    "config": Entry("hango.cli.config_cmd", "config", "Show the settings in force, and where each came from."),
    "serve": Entry("hango.cli.serve", "serve", "Start one API process."),
    "worker": Entry(
        "hango.cli.worker", "worker", "Start one worker process, which makes the model calls of tries and runs."
    ),
    "migrate": Entry("hango.cli.serve", "migrate_app", "Bring the database up, down, or show where it stands."),
    "tenant": Entry("hango.cli.serve", "tenant_app", "Create tenants. Needs the database, not the API."),
}


class Root(LazyGroup):
    entries = COMMANDS


app = typer.Typer(
    name="hango",
    cls=Root,
    add_completion=False,  # its options would import pydantic at every call
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    no_args_is_help=True,
    context_settings={"help_option_names": HELP_NAMES},
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"hango {__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """See, part by part, what the next model request of a session will contain.

    Commands talk to the API at HANGO_API_URL with HANGO_API_KEY, else to the one that `hango up` started.
    """


def main(words: Sequence[str] | None = None) -> None:
    """Run the command line, with the process's words when none are given. Ends with a code of `exits.py`."""
    command = typer.main.get_command(app)
    read_plainly(command)
    try:
        command(words, prog_name=own_command())
    except Failure as failure:
        _say(failure.sentence, *failure.more)
        sys.exit(failure.code)
    except HangoError as error:
        _say(str(error))
        sys.exit(ExitCode.REFUSED)
    except UnicodeEncodeError:  # Python reads other bytes of an argument as halves of surrogate pairs
        _say("an argument of this command is not UTF-8. Write it again as UTF-8.")
        sys.exit(ExitCode.REFUSED)


def _say(sentence: str, *more: str) -> None:
    from hango.cli import output  # its tables of character widths take 30 ms

    output.note(f"hango: {sentence}")
    for line in more:
        output.note(f"  {line}")
