"""Commands that a page shows with what they print, run as a reader runs them: in a clone, after `./dev up --fresh`.

A block is shown as it comes from a terminal: `$ ./dev ...` and what it printed. A line `...` stands for any lines. `ID`
is the demo's session, `RUN` its last run, `EARLIER` the run before.
"""

from __future__ import annotations

import re
import shlex
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tests.live import client
from tests.upping import LAUNCHER, ROOT, SECONDS, Up, environment

ANY_LINES = "..."
COLUMNS = "100"


@dataclass(frozen=True, slots=True)
class Shown:
    """A command as the page has it, and the lines that it shows below."""

    command: str
    lines: tuple[str, ...]


def shown(text: str) -> list[Shown]:
    """The commands of a page's blocks, in order."""
    found = []
    for block in re.findall(r"^```\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
        for command in re.findall(r"^\$ .*\n(?:(?!\$ ).*\n)*", block, re.MULTILINE):
            first, *lines = command.splitlines()
            found.append(Shown(first.removeprefix("$ "), tuple(lines)))
    return found


def section(text: str, heading: str) -> str:
    """What stands below a heading of the second level, up to the next one."""
    _, found, rest = text.partition(f"\n## {heading}\n")
    assert found, f"the page has no section '{heading}'"
    return rest.partition("\n## ")[0]


@dataclass(frozen=True, slots=True)
class Reader:
    """Somebody who types the commands of a page in the clone, with a demo of his own."""

    up: Up
    session_id: str

    def types(self, command: str) -> tuple[int, list[str]]:
        """The exit code, and all that a terminal would show, in the page's words."""
        names = self._names()
        words = [_replaced(word, {name: id for id, name in names.items()}) for word in shlex.split(command)]
        assert words[0] == "./dev", command
        done = subprocess.run(
            [*LAUNCHER, *words[1:]],
            check=False,
            cwd=ROOT,
            env=environment(self.up.home, {"COLUMNS": COLUMNS}),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=SECONDS,
        )
        # What a run of this command has made is `RUN` below it.
        return done.returncode, [*_plain(done.stdout, {**names, **self._names()})]

    def _names(self) -> dict[str, str]:
        with client(self.up.url, str(self.up.written["api_key"])) as api:
            runs = api.get(f"/v1/sessions/{self.session_id}/runs?limit=2").raise_for_status().json()["data"]
        last = zip((run["id"] for run in runs), ("RUN", "EARLIER"), strict=False)
        return {self.session_id: "ID", **dict(last)}


def matches(lines: Sequence[str], wanted: Sequence[str]) -> bool:
    """Whether the lines are the wanted ones, where `...` stands for any number of them."""
    if not wanted:
        return not lines
    if wanted[0] != ANY_LINES:
        return bool(lines) and lines[0] == wanted[0] and matches(lines[1:], wanted[1:])
    return any(matches(lines[at:], wanted[1:]) for at in range(len(lines) + 1))


def _replaced(word: str, values: dict[str, str]) -> str:
    return re.sub(r"\b(?:ID|RUN|EARLIER)\b", lambda found: values.get(found[0], found[0]), word)


def _plain(text: str, names: dict[str, str]) -> Iterator[str]:
    """Line by line, without what differs from one time to the next: ids and seconds."""
    for line in text.splitlines():
        for id, name in names.items():
            line = line.replace(id, name)
        yield re.sub(r"\b\d+\.\d(?= s\b|  end_turn)", "0.1", line).rstrip()
