"""Every command that a page names is one: its words and its options are those of the command line."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator

import pytest
import typer
from typer._click import Command, Context
from typer.core import TyperGroup

from hango.cli.main import app
from tests.docs.test_docs import NAMES, page

SPAN = re.compile(r"`(?:hango|\./dev) ([^`]+)`")
LINE = re.compile(r"^(?:\$ )?(?:hango|\./dev) (.+)$", re.MULTILINE)
OF_THE_LAUNCHER = {"env", "faults", "help", "test"}  # `./dev` has these without hango
GENERATED = "docs/cli.md"


def commands(text: str) -> Iterator[list[str]]:
    """The words of each command of a page, in code spans and in blocks; without `[...]`, comments and dots."""
    blocks = "\n".join(re.findall(r"^```\w*\n(.*?)^```", text, re.MULTILINE | re.DOTALL))
    spans = SPAN.findall(re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL).replace("\n", " "))
    for found in [*spans, *LINE.findall(blocks)]:
        command = re.split(r"  |#|\[|…", found)[0].strip()
        if re.match(r"[a-z]", command):
            yield shlex.split(command)


def unknown(words: list[str]) -> str | None:
    """What of a command the command line does not have; None when it has all of it."""
    if words[0] in OF_THE_LAUNCHER:
        return None
    here: Command = typer.main.get_command(app)
    rest = list(words)
    while isinstance(here, TyperGroup) and rest and not rest[0].startswith("-"):
        below = here.get_command(Context(here), rest[0])
        if below is None:
            return f"no command {rest[0]!r} in {' '.join(words)!r}"
        here, rest = below, rest[1:]
    options = {name for parameter in here.params for name in [*parameter.opts, *parameter.secondary_opts]}
    strange = {word.partition("=")[0] for word in rest if re.fullmatch(r"--?[a-z][\w-]*(=.*)?", word)} - options
    return f"{' '.join(words)!r} has no {', '.join(sorted(strange))}" if strange - {"--help", "-h"} else None


@pytest.mark.parametrize("name", [name for name in NAMES if name != GENERATED])
def test_the_commands_of_a_page_are_there(name: str) -> None:
    """A page names no command and no option that the command line does not have."""
    assert [wrong for words in commands(page(name)) if (wrong := unknown(words)) is not None] == []


@pytest.mark.parametrize(
    "command", ["hango fly", "hango context fly", "./dev run --sesion ID", "hango context show --x"]
)
def test_a_command_that_is_not_there_is_found(command: str) -> None:
    """Also behind a group, and when only an option is wrong."""
    ((words),) = commands(f"Type `{command}`.")

    assert unknown(words) is not None
