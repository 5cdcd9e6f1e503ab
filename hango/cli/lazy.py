"""Commands that are imported when they are called, and values read without pydantic: help stays fast.

The only file that knows the inside of typer, whose version is pinned for it. typer imports pydantic to read even a
text (a fifth of a second), and carries its own click without public names for it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from importlib import import_module
from typing import Any

import typer
from typer._click import Command, Context, HelpFormatter
from typer._coercion import RuntimeParam
from typer.core import TyperArgument, TyperGroup, TyperOption

_EXAMPLE = re.compile(r"(Example: (?:[A-Z_]+=\S+ )*)hango(?= )")
HELP_NAMES = ["-h", "--help"]


@dataclass(frozen=True, slots=True)
class Entry:
    """Where a command lives: a function of a module, or a group (a Typer); and its line in the help."""

    module: str
    name: str
    help: str


class LazyGroup(TyperGroup):
    """The commands of a table; each is imported when it is asked for. Subclass it with `entries`."""

    entries: Mapping[str, Entry]

    def list_commands(self, ctx: Context) -> list[str]:
        return list(self.entries)

    def get_command(self, ctx: Context, cmd_name: str) -> Command | None:
        entry = self.entries.get(cmd_name)
        if entry is None:
            return None
        command = load(cmd_name, entry)
        call_examples(command, ctx.find_root().info_name or "hango")
        return command

    def format_commands(self, ctx: Context, formatter: HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, entry.help) for name, entry in self.entries.items()])


def load(name: str, entry: Entry) -> Command:
    """The command of an entry, its module imported now."""
    found = getattr(import_module(entry.module), entry.name)
    if not isinstance(found, typer.Typer):
        alone = typer.Typer(add_completion=False, rich_markup_mode=None)
        alone.command(name)(found)
        found = alone
    command = typer.main.get_command(found)
    command.name = name
    read_plainly(command)
    return command


def call_examples(command: Command, called: str) -> None:
    """Let the examples in the help, of the commands below it too, begin as the person calls hango."""
    command.help = _EXAMPLE.sub(lambda found: found[1] + called, command.help or "")
    for below in getattr(command, "commands", {}).values():
        call_examples(below, called)


def read_plainly(command: Command) -> None:
    """Give the options of a command, and of the commands below it, plain readers where there are some."""
    asks_for_help = command.get_help_option(Context(command, help_option_names=HELP_NAMES))
    for param in (asks_for_help, *command.params):
        if isinstance(param, (TyperArgument, TyperOption)):
            descriptor = param.type_descriptor
            kind = descriptor.annotation
            if isinstance(kind, type) and (kind in {str, int, bool} or issubclass(kind, Enum)):
                param._runtime_param = PlainParam(descriptor.parameter_info, kind)  # noqa: SLF001  no public way
            elif kind == list[str]:
                param._runtime_param = PlainTexts(descriptor.parameter_info, kind)  # noqa: SLF001  as above
    for below in getattr(command, "commands", {}).values():
        read_plainly(below)


@dataclass(frozen=True)
class PlainTexts(RuntimeParam):
    """Takes texts as they are."""

    def _coerce_value(self, value: Any, param: Any, ctx: Context) -> Any:
        return list(value)


@dataclass(frozen=True)
class PlainParam(RuntimeParam):
    """Reads one value: a text, a flag, a member of an enum, or a whole number in its range."""

    def _coerce_value(self, value: Any, param: Any, ctx: Context) -> Any:
        kind = self.annotation
        try:
            read = kind(value)
        except ValueError:
            raise typer.BadParameter(f"{value!r} is not {self._wanted()}.", ctx=ctx, param=param) from None
        if kind is int and not self._in_range(read):
            raise typer.BadParameter(f"{value!r} is not {self._wanted()}.", ctx=ctx, param=param)
        return read

    def _in_range(self, read: int) -> bool:
        least, most = self.parameter_info.min, self.parameter_info.max
        return (least is None or least <= read) and (most is None or read <= most)

    def _wanted(self) -> str:
        if issubclass(self.annotation, Enum):
            return f"one of {', '.join(str(member.value) for member in self.annotation)}"
        least, most = self.parameter_info.min, self.parameter_info.max
        return "a whole number" if least is None or most is None else f"a whole number from {least} to {most}"
