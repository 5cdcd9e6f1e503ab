"""The command tree and the way out: a failure is one sentence on stderr and an exit code of the table.

A command's module is imported when the command is called, so that help and the small commands start fast.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from importlib import import_module
from typing import Annotated

import typer

# typer brings its own click and exports no names for these two.
from typer._click import Command, Context, HelpFormatter
from typer.core import TyperGroup

from hango import __version__
from hango.cli.exits import ExitCode, Failure
from hango.errors import HangoError


@dataclass(frozen=True, slots=True)
class Entry:
    """Where a command lives: a function of a module, or a group (a Typer); and its line in the help."""

    module: str
    name: str
    help: str


COMMANDS = {
    "up": Entry("hango.cli.up", "up", "Start everything on this machine, with a demo tenant."),
    "context": Entry("hango.cli.context", "app", "See what the next model request of a session will contain."),
    "import": Entry("hango.cli.imports", "import_", "Make an agent and sessions of a transcript or request body."),
    "sessions": Entry("hango.cli.sessions", "sessions", "List sessions."),
    "agents": Entry("hango.cli.agents", "agents", "List agents."),
    "config": Entry("hango.cli.config_cmd", "config", "Show the settings in force, and where each came from."),
    "serve": Entry("hango.cli.serve", "serve", "Start one API process."),
    "migrate": Entry("hango.cli.serve", "migrate_app", "Bring the database up, down, or show where it stands."),
    "tenant": Entry("hango.cli.serve", "tenant_app", "Create tenants. Needs the database, not the API."),
}


class LazyGroup(TyperGroup):
    """The commands of the table; each is imported when it is asked for."""

    def list_commands(self, ctx: Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: Context, cmd_name: str) -> Command | None:
        entry = COMMANDS.get(cmd_name)
        return None if entry is None else load(cmd_name, entry)

    def format_commands(self, ctx: Context, formatter: HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, entry.help) for name, entry in COMMANDS.items()])


def load(name: str, entry: Entry) -> Command:
    found = getattr(import_module(entry.module), entry.name)
    if not isinstance(found, typer.Typer):
        alone = typer.Typer(add_completion=False, rich_markup_mode=None)
        alone.command(name)(found)
        found = alone
    command = typer.main.get_command(found)
    command.name = name
    return command


app = typer.Typer(
    name="hango",
    cls=LazyGroup,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
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


def main() -> None:
    """Run the command line. Ends the process with a code of the table in `exits.py`."""
    try:
        app(prog_name="hango")
    except Failure as failure:
        _say(failure.sentence, *failure.more)
        sys.exit(failure.code)
    except HangoError as error:
        _say(str(error))
        sys.exit(ExitCode.REFUSED)


def _say(sentence: str, *more: str) -> None:
    from hango.cli import output  # its tables of character widths take 30 ms

    output.note(f"hango: {sentence}")
    for line in more:
        output.note(f"  {line}")
