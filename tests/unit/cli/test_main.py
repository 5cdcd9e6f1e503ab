"""How commands start and end."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import hango
from hango.cli.exits import ExitCode
from hango.cli.main import COMMANDS
from hango.cli.own_command import own_command
from tests.unit.cli.conftest import Run
from tools import cli_help, generate_docs

HEAVY = ("aiohttp", "httpx2", "msgspec", "psycopg", "pydantic", "rich", "starlette", "wcwidth")


def test_help_imports_nothing_heavy() -> None:
    """The help of a command starts fast: it imports no server, no database, no client."""
    code = (
        "import sys; from hango.cli.main import main\n"
        "try: main(['context', 'show', '--help'])\n"
        f"except SystemExit: print([name for name in {HEAVY!r} if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)

    assert done.stdout.splitlines()[0] == f"Usage: {own_command()} context show [OPTIONS]"
    assert done.stdout.splitlines()[-1] == "[]"


def test_a_command_needs_no_server_parts() -> None:
    """A user command knows the public API only, and typer does not bring pydantic in."""
    code = (
        "import sys; from hango.cli.main import main\n"
        "try: main(['sessions', '--q', 'x'])\n"
        "except SystemExit as end: print(end.code, [name for name in sys.modules if name in "
        "('aiohttp', 'psycopg', 'pydantic', 'rich', 'starlette', 'hango.api', 'hango.chain', 'hango.store')])"
    )
    env = {"HANGO_API_URL": "http://127.0.0.1:9", "PATH": "/usr/bin:/bin"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=env, check=True, timeout=60)

    assert done.stdout == "4 []\n"


@pytest.mark.parametrize("words", [["context", "exclude"], ["sessions"], ["config"], ["migrate", "down"]])
def test_examples_can_be_pasted(words: list[str], run: Run) -> None:
    """The examples in the help begin as the person calls hango."""
    text = " ".join(run(*words, "-h").out.split())

    assert re.search(f"Example: (HANGO_PORT=9000 )?{re.escape(own_command())} {' '.join(words)}", text)


def test_version(run: Run) -> None:
    """--version prints the version."""
    ended = run("--version")

    assert (ended.code, ended.out) == (0, f"hango {hango.__version__}\n")


@pytest.mark.parametrize("name", COMMANDS)
def test_the_table_of_commands_is_true(name: str, run: Run) -> None:
    """Every command of the table is there and explains itself; its line in the help is the one of the table."""
    ended = run(name, "--help")

    assert ended.code == ExitCode.OK
    assert ended.out.startswith(f"Usage: {own_command()} {name}")
    assert COMMANDS[name].help in " ".join(run("--help").out.split())


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["nothing"], "No such command 'nothing'."),
        (["context", "show"], "Name a session by --session, or a run by --run and --call."),
        (["context", "show", "--session", "x", "--sort", "age"], "'age' is not one of order, tokens."),
        (["context", "show", "--session", "x", "--full", "summary", "--provider"], "exclude each other"),
        (["sessions", "--limit", "0"], "'0' is not a whole number from 1 to 500."),
        (["sessions", "--limit", "many"], "'many' is not a whole number from 1 to 500."),
        (["import"], "Missing argument 'FILE'."),
        (["import", "-", "--format", "pdf"], "'pdf' is not one of auto, anthropic"),
        (["context", "exclude"], f"Try '{own_command()} context exclude -h' for help."),
    ],
)
def test_wrong_words_are_usage(words: list[str], said: str, run: Run) -> None:
    """Exit 2 and a sentence on stderr for words or options that a command does not take."""
    ended = run(*words)

    assert (ended.code, ended.out) == (ExitCode.USAGE, "")
    assert said in ended.err


def test_a_wrong_setting_ends_with_its_sentence(run: Run) -> None:
    """A wrong value stops the process and names itself."""
    ended = run("config", HANGO_PORT="many")

    assert (ended.code, ended.out) == (ExitCode.REFUSED, "")
    assert ended.err.startswith("hango: HANGO_PORT ")
    assert ended.err.count("\n") == 1


def test_exit_codes_are_one_table() -> None:
    """0 ok, 1 refused, 2 usage, 3 a wait ran out, 4 no API."""
    assert {code.name: code.value for code in ExitCode} == {
        "OK": 0,
        "REFUSED": 1,
        "USAGE": 2,
        "WAIT_RAN_OUT": 3,
        "NO_API": 4,
    }


def test_the_page_holds_the_help() -> None:
    """docs/cli.md holds the help of every command and the exit codes as they are."""
    page = (Path(generate_docs.ROOT) / "docs" / "cli.md").read_text(encoding="utf-8")

    assert cli_help.commands() in page
    assert cli_help.exit_codes() in page
