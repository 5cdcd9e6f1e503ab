"""The commands for overrides from end to end: the command in a process of its own, a live API, a real database."""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from hango.cli.own_command import own_command
from hango.config import Settings
from hango.store import system
from hango.store.connection import Store
from tests import live
from tests.command_line import Hango
from tests.desks import COUNT, HISTORY, LOOK

TEXT = "Forty of them."


@dataclass(frozen=True)
class Shell:
    """A session with one tool call, and the commands on it."""

    hango: Hango
    agent_id: str
    session_id: str

    def __call__(self, command: str, *words: str, given: bytes = b"") -> tuple[int, list[str], str]:
        """Exit code, lines of stdout, stderr."""
        code, out, err = self.hango("context", command, "--session", self.session_id, *words, given=given)
        return code, out.splitlines(), err

    def context(self) -> dict[str, Any]:
        return dict(json.loads(self.hango.get(f"/v1/sessions/{self.session_id}/context")))

    def saved(self) -> dict[str, list[tuple[str, str, str | None]]]:
        """The rows of both sets."""
        paths = {"agent": f"/v1/agents/{self.agent_id}", "session": f"/v1/sessions/{self.session_id}"}
        return {
            level: [
                (one["part"], one["action"], one["replacement"])
                for one in json.loads(self.hango.get(f"{path}/context-overrides"))["overrides"]
            ]
            for level, path in paths.items()
        }

    def take_back(self, *parts: str) -> str:
        return f"take it back: {own_command()} context include --session {self.session_id} {' '.join(parts)}\n"


@pytest.fixture
async def hango(settings: Settings, store: Store, tmp_path: Path) -> AsyncIterator[Hango]:
    async with store.system() as scope:
        made = await system.create_tenant(scope, f"tenant {uuid4().hex[:8]}", quota_tokens=None)
    with live.serving(settings) as url:
        yield Hango(url, made.api_key, tmp_path)


@pytest.fixture
def shell(hango: Hango) -> Shell:
    return make_shell(hango)


def make_shell(hango: Hango, **agent: Any) -> Shell:
    wanted = {"name": "desk", "model": "offline/extract", "builtin": [], "system_prompt": "You keep the stock."}
    agent_id = hango.make("/v1/agents", **{**wanted, "tools": [LOOK, COUNT], **agent})
    return Shell(hango, agent_id, hango.make("/v1/sessions", agent_id=agent_id, messages=HISTORY))


def tokens(shot: dict[str, Any], *ids: str) -> list[int]:
    parts = {part["id"]: part["tokens"] for group in ("system", "tools", "messages") for part in shot[group]}
    return [parts[id] for id in ids]


def test_exclude_says_what_leaves_and_what_it_saves(shell: Shell) -> None:
    """exclude saves agent parts with the agent and session parts with the session; it names partners and tokens."""
    before = shell.context()
    look, call, result = tokens(before, "tool:look", "message:2", "message:3")
    total = before["total_after"]

    code, out, err = shell("exclude", "message:2", "tool:look")

    assert (code, out, err) == (
        0,
        [
            f" [ ] tool:look  {look}  excluded",
            f" [ ] message:2  {call:>2}  excluded",
            f" [ ] message:3  {result:>2}  left out with message:2",
            f"total {total} → {total - look - call - result} tokens, {look + call + result} saved (estimated)",
        ],
        shell.take_back("message:2", "tool:look"),
    )
    assert shell.saved() == {
        "agent": [("tool:look", "exclude", None)],
        "session": [("message:2", "exclude", None)],
    }


def test_exclude_keeps_what_was_saved(shell: Shell) -> None:
    """The set is read, changed and put back: what was saved before stays."""
    assert shell("exclude", "message:2")[0] == 0
    assert shell("replace", "message:4", "--text", TEXT)[0] == 0
    assert shell("exclude", "message:5")[0] == 0

    assert shell.saved()["session"] == [
        ("message:2", "exclude", None),
        ("message:4", "replace", TEXT),
        ("message:5", "exclude", None),
    ]


def test_include_takes_an_override_back(shell: Shell) -> None:
    """include takes overrides back; of a part that has none it says so, and exits 0."""
    first = shell.context()
    assert shell("exclude", "message:2", "tool:look")[0] == 0

    code, _, err = shell("include", "message:3")
    said = "message:3 has no override of its own: it is left out with message:2. Include that one.\n"
    assert (code, err) == (0, said)
    code, out, err = shell("include", "message:2", "tool:look", "message:1")

    assert (code, err) == (0, "message:1 has no override: there is nothing to take back.\n")
    assert [line.split()[:3] for line in out[:-1]] == [
        ["[x]", id, out[i].split()[2]] for i, id in enumerate(("tool:look", "message:2", "message:3"))
    ]
    assert shell.context() == first
    assert shell("include", "message:2") == (0, [], "message:2 has no override: there is nothing to take back.\n")


def test_dry_run_saves_nothing(shell: Shell) -> None:
    """--dry-run shows before and after, and saves nothing; what is then saved shows the same."""
    commands: list[tuple[str, ...]] = [
        ("exclude", "message:2", "tool:look"),
        ("replace", "message:4", "--text", TEXT),
        ("include", "message:2"),
        ("clear",),
    ]
    for command, *words in commands:
        before, audit = shell.saved(), shell.hango.get("/v1/audit")
        code, looked, err = shell(command, *words, "--dry-run")
        assert (code, err.splitlines()[-1]) == (0, "nothing was saved. Without --dry-run it is.")
        assert (shell.saved(), shell.hango.get("/v1/audit")) == (before, audit)

        assert shell(command, *words)[1] == looked


def test_replace_by_text_file_stdin_and_editor(shell: Shell, tmp_path: Path) -> None:
    """replace takes its text from --text, a file, stdin, or an editor that starts with the text that is sent."""
    file = tmp_path / "text.txt"
    file.write_text("From a file.\n", encoding="utf-8")
    program = "import sys, pathlib; p = pathlib.Path(sys.argv[1]); p.write_text(p.read_text().upper())"
    script = tmp_path / "editor.py"
    script.write_text(program, encoding="utf-8")

    def replaced(*words: str, given: bytes = b"", **env: str) -> str | None:
        words = ("context", "replace", "--session", shell.session_id, "message:4", *words)
        code, _, err = shell.hango(*words, given=given, env=env)
        assert code == 0, err
        return shell.saved()["session"][0][2]

    assert replaced("--text", TEXT) == TEXT
    assert replaced("--file", str(file)) == "From a file.\n"
    assert replaced("--file", "-", given="Aus dem Rohr: ü.".encode()) == "Aus dem Rohr: ü."
    assert replaced("--editor", EDITOR=f"{sys.executable} {script}") == "AUS DEM ROHR: Ü."


def test_clear_gives_the_first_request_back(shell: Shell) -> None:
    """clear takes back the overrides of the session and of its agent; --keep-agent leaves the agent's."""
    path = f"/v1/sessions/{shell.session_id}/context?format=provider"
    first = shell.hango.get(path)
    assert shell("exclude", "message:2", "tool:look")[0] == 0

    assert shell("clear", "--keep-agent")[0] == 0
    assert shell.saved() == {"agent": [("tool:look", "exclude", None)], "session": []}
    assert shell("clear")[0] == 0
    assert shell.hango.get(path) == first
    assert shell("clear") == (0, [], "no overrides: there is nothing to clear.\n")


def test_overrides_lists_both_sets(shell: Shell) -> None:
    """overrides lists both sets with what becomes of them; --json prints the API's replies as they came."""
    assert shell("overrides") == (0, [], f"no overrides. `{own_command()} context exclude` leaves a part out.\n")
    assert shell("exclude", "message:2", "tool:gone")[0] == 0
    assert shell("replace", "message:4", "--text", "Forty\x1b[2J of them.")[0] == 0

    assert shell("overrides") == (
        0,
        [
            f"agent {shell.agent_id}, in every session of it",
            " tool:gone  excluded, stale",
            f"session {shell.session_id}",
            " message:2  excluded, with message:3",
            " message:4  replaced  Forty⟨U+001B⟩[2J of them.",
        ],
        "",
    )
    replies = [
        shell.hango.get(f"/v1/{path}/context-overrides").decode()
        for path in (f"agents/{shell.agent_id}", f"sessions/{shell.session_id}")
    ]
    assert shell("overrides", "--json") == (0, replies, "")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["exclude", "message:1", "message:5"], "no message of the user would be left"),
        (["exclude", "message:6"], "'message:6' does not exist"),
        (["exclude", "messages"], "'messages' is no part id"),
        (["replace", "tool:look", "--text", "x"], "'tool:look' cannot be replaced"),
        (["replace", "message:4", "--text", " "], "is empty or white space"),
        (["exclude", "tool:look", "message:6"], "'message:6' does not exist"),
    ],
)
def test_a_refused_set_changes_nothing(words: list[str], said: str, shell: Shell) -> None:
    """A broken rule is one sentence on stderr and exit 1, and neither set is changed."""
    code, out, err = shell(*words)

    assert (code, out) == (1, [])
    assert said in err
    assert shell.saved() == {"agent": [], "session": []}


def test_a_part_of_anothers_agent(hango: Hango) -> None:
    """A part of another person's agent gives a clear error; the own session's parts can be changed all the same."""
    theirs = make_shell(hango, shared=True)
    member = hango.member()
    shell = Shell(member, theirs.agent_id, member.make("/v1/sessions", agent_id=theirs.agent_id, messages=HISTORY))

    code, out, err = shell("exclude", "message:2", "tool:look")

    who = "only who made it and admins may. Ask one of them."
    assert (code, out) == (1, [])
    assert err == f"hango: tool:look belongs to agent {theirs.agent_id}, which you may not change: {who}\n"
    assert shell.saved() == {"agent": [], "session": []}

    assert theirs("exclude", "tool:count")[0] == 0
    assert shell("exclude", "message:2")[0] == 0
    code, out, err = shell("clear")
    assert (code, err) == (
        0,
        (
            f"the overrides of agent {theirs.agent_id} stay: only who made it and admins may change them.\n"
            f"taken back: 1 override of session {shell.session_id}.\n"
        ),
    )
    assert shell.saved() == {"agent": [("tool:count", "exclude", None)], "session": []}


def test_nobodys_session(hango: Hango) -> None:
    """A session that is not there or not the caller's is one sentence, and exit 1."""
    shell = make_shell(hango)
    stranger = Shell(hango.member(), shell.agent_id, shell.session_id)
    said = f"hango: no session {shell.session_id} that you may read. `{own_command()} sessions` lists them.\n"

    for words in (["exclude", "message:2"], ["include", "message:2"], ["clear"], ["overrides"]):
        assert stranger(*words) == (1, [], said)
