"""The generated blocks of docs/cli.md: the help of every command, the tables that they print, the exit codes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import typer
from typer._click import Command, Context

from hango.cli.exits import ExitCode
from hango.cli.lazy import HELP_NAMES
from hango.cli.main import app

WIDTH = 80
GOLDEN = Path(__file__).resolve().parent.parent / "tests" / "unit" / "cli" / "golden"


def commands() -> str:
    """A heading and the help for every command that does something; groups are only walked through."""
    root = typer.main.get_command(app)
    context = Context(root, info_name="hango", terminal_width=WIDTH, help_option_names=HELP_NAMES)
    return "\n".join(f"### {name}\n\n```\n{text}\n```\n" for name, text in _below(root, context))


def exit_codes() -> str:
    rows = [f"| {code.value} | {code.meaning} |" for code in ExitCode]
    return "\n".join(["| exit code | meaning |", "|---|---|", *rows, ""])


def context_table() -> str:
    """The table that the tests of `hango context show` hold to the letter."""
    return _table("context_100.txt")


def compare_table() -> str:
    """The table that the tests of `hango context compare` hold to the letter."""
    return _table("compare_80.txt")


def _table(name: str) -> str:
    return f"```\n{(GOLDEN / name).read_text(encoding='utf-8')}```\n"


def _below(group: Command, context: Context) -> Iterator[tuple[str, str]]:
    for name in group.list_commands(context):  # type: ignore[attr-defined]  # groups have it, their base has not
        command = group.get_command(context, name)  # type: ignore[attr-defined]  # as above
        inner = Context(command, info_name=name, parent=context)
        if hasattr(command, "list_commands"):
            yield from _below(command, inner)
        else:
            yield inner.command_path, command.get_help(inner)
