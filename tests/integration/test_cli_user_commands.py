"""The user commands from end to end: the command in a process of its own, a live API, a real database."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from uuid import uuid4

import pytest
from wcwidth import wcswidth

from hango.cli.own_command import own_command
from hango.config import Settings
from hango.store import system
from hango.store.connection import Store
from tests import live
from tests.command_line import Hango

BIDI = set("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
FAMILY = "\U0001f468\u200d\U0001f469\u200d\U0001f467"
TOOL = {"name": "read_file", "description": "Reads one file.", "input_schema": {"type": "object"}}


@pytest.fixture
async def hango(settings: Settings, store: Store, tmp_path: Path) -> AsyncIterator[Hango]:
    async with store.system() as scope:
        made = await system.create_tenant(scope, f"tenant {uuid4().hex[:8]}", quota_tokens=None)
    with live.serving(settings) as url:
        yield Hango(url, made.api_key, tmp_path)


def rows(out: str) -> list[str]:
    return [line for line in out.splitlines() if line.startswith(" [")]


def acting(text: str) -> list[str]:
    """Characters that a terminal carries out, line ends apart."""
    return [c for c in text if (ord(c) < 0x20 and c != "\n") or 0x7F <= ord(c) < 0xA0 or c in BIDI]


def test_square_brackets_are_text(hango: Hango) -> None:
    """Square brackets are shown, not read as markup."""
    text = "[INST] count [/INST] [/] [bold]x[/bold] [link=http://a]y[/link]"
    session = hango.session(text, "Done [/red].", system_prompt="You keep the stock list.", tools=[TOOL])

    code, out, _ = hango("context", "show", "--session", session)

    assert code == 0
    assert "[INST] count [/INST] [/] [bold]x[/bold]" in out
    assert [row.split()[1] for row in rows(out)] == ["system:agent", "tool:read_file", "message:1", "message:2"]


@pytest.mark.parametrize("columns", [80, 100])
def test_wide_and_invisible_characters(hango: Hango, columns: int) -> None:
    """No line is wider than COLUMNS; one line a part; no raw direction control."""
    session = hango.session(
        f"wide 漢字 and {FAMILY}",
        "zero\u2060width\u200b and e\u0301",
        "\u202eright to left override\u202c plain",
        system=[{"name": "agent", "text": "中文内容"}],
        memory=["/memories/材料.md"],
        builtin=["memory"],
    )

    code, out, _ = hango("context", "show", "--session", session, columns=columns)

    assert code == 0
    assert [line for line in out.splitlines() if not 0 <= wcswidth(line) <= columns] == []
    assert BIDI.isdisjoint(out)
    assert len([row for row in rows(out) if "message:" in row]) == 3


def test_hostile_previews(hango: Hango) -> None:
    """Previews with escape codes, markup and controls: exit 0 and nothing that acts in the output."""
    acts = [
        *("\x1b[2J", "\x1b]0;title\x07", "\x1b]8;;http://a\x1b\\link\x1b]8;;\x1b\\", "\x1b]52;c;aGVsbG8=\x07"),
        *("\x9b31m", "\x9d0;t\x9c", "\x90q\x9c", "\x85next", "\r overwrites", "\x08\x08back", "\x7f", "\x0b\x0c"),
        *("\u202eevil", "\u2066iso\u2069", "\u200frtl", "\u061carabic", "\u2028line", "\u2029para", "\ufeffbom"),
        *("[/bold]", "[bold", "[red]x", "[link=http://a]y[/link]", "\\[", "[@click=app.quit]q", "{0.__class__}"),
        *("%s %n", "{{7*7}}", "${HOME}", "`id`", "$(id)", "a\nb\n\nc", "\t\ttabs", "\U000e0041tags", "\u034fcgj"),
        *("e" + "\u0301" * 50, FAMILY * 30, "漢" * 300, "👩\u200d", "\u200d\u200d", "🇩🇪🇩"),
    ]
    session = hango.session(*acts)

    code, out, err = hango("context", "show", "--session", session)

    assert (code, len(rows(out))) == (0, len(acts))
    assert acting(out + err) == []


def test_a_hostile_message_in_full(hango: Hango) -> None:
    """The whole content of a message cannot act either, and its lines stay lines."""
    session = hango.session("one\x1b[2J\ntwo\u202e\x9b31m [/bold]")

    code, out, err = hango("context", "show", "--session", session, "--full", "message:1")

    assert (code, acting(out + err)) == (0, [])
    assert out.splitlines()[2:] == ["text", "  one⟨U+001B⟩[2J", "  two⟨U+202E⟩⟨U+009B⟩31m [/bold]"]


def test_json_is_the_reply(hango: Hango) -> None:
    """--json prints the response as it came, --provider the body as the provider would get it."""
    session = hango.session("Where are the bolts?", system_prompt="You keep the stock list.", tools=[TOOL])
    path = f"/v1/sessions/{session}/context"

    assert hango("context", "show", "--session", session, "--json") == (0, hango.get(path).decode() + "\n", "")
    assert hango("context", "show", "--session", session, "--json", "--group", "tools") == (
        0,
        hango.get(f"{path}?group=tools").decode() + "\n",
        "",
    )
    assert hango("context", "show", "--session", session, "--provider") == (
        0,
        hango.get(f"{path}?format=provider").decode() + "\n",
        "",
    )
    assert hango("context", "show", "--session", session, "--full", "tool:read_file", "--json") == (
        0,
        hango.get(f"{path}?full=tool:read_file").decode() + "\n",
        "",
    )


def test_full_parts(hango: Hango) -> None:
    """--full prints a part's whole content: text, blocks, definition."""
    session = hango.session("Where are\nthe bolts?", system_prompt="You keep\nthe stock list.", tools=[TOOL])

    def full(part: str) -> list[str]:
        code, out, err = hango("context", "show", "--session", session, "--full", part)
        assert (code, err) == (0, "")
        return out.splitlines()[2:]

    assert full("system:agent") == ["You keep", "the stock list."]
    assert full("message:1") == ["text", "  Where are", "  the bolts?"]
    assert json.loads("\n".join(full("tool:read_file")))["name"] == "read_file"
    assert hango("context", "show", "--session", session, "--full", "message:9") == (
        1,
        "",
        f"hango: no part message:9 in session {session}, or no such session that you may read.\n",
    )


def test_import_then_show(hango: Hango) -> None:
    """hango import takes a request body from stdin, says what is odd, and the session can be shown and listed."""
    call = {"type": "tool_use", "id": "t1", "name": "count", "input": {"n": 1}}
    body = {
        "model": "claude-sonnet-4-5",
        "max_tokens": 100,
        "system": "You count bolts.",
        "messages": [
            {"role": "user", "content": "Count."},
            {"role": "assistant", "content": [call]},
            {"role": "user", "content": "And the nuts?"},
        ],
    }

    code, out, err = hango("import", "-", "--format", "anthropic", "--title", "Bolts", given=json.dumps(body).encode())

    agent, session, flag = out.splitlines()
    session_id = session.split()[1]
    assert (code, err) == (0, f"look at it: {own_command()} context show --session {session_id}\n")
    assert agent.endswith(" · anthropic")
    assert session == f"session {session_id} · 3 messages · Bolts"
    assert flag == "  message:2: a call without a result (unpaired_tool_use)"
    shown = hango("context", "show", "--session", session_id)
    assert [row.split()[1] for row in rows(shown[1])] == ["system:agent", "message:1", "message:2", "message:3"]
    assert "anthropic/claude-sonnet-4-5" in shown[1]
    assert shown[2] == f"look at it: {own_command()} context show --session {session_id} --full message:2\n"
    assert [line.split()[0] for line in hango("sessions", "--q", "olt")[1].splitlines()] == ["id", session_id]
    assert [line.split()[0] for line in hango("agents")[1].splitlines()] == ["id", agent.split()[1]]


def test_import_is_refused_with_the_line(hango: Hango) -> None:
    """What cannot be imported is refused with the line; nothing is left behind."""
    file = hango.home / "chat.jsonl"
    file.write_bytes(b'{"messages": []}\nnot json\n')

    takes = f"Import takes a transcript or a request body as JSON; `{own_command()} import -h` names the formats."
    assert hango("import", "-", given=file.read_bytes()) == (
        1,
        "",
        f"hango: the standard input is not valid JSON (line 2). {takes}\n",
    )
    assert hango("import", str(file)) == (
        1,
        "",
        f"hango: the file {file} is not valid JSON (line 2, column 1). {takes}\n",
    )
    assert hango("sessions") == (0, "", f"no sessions. `{own_command()} import FILE` makes one.\n")


async def test_import_over_the_limit(settings: Settings, store: Store, tmp_path: Path) -> None:
    """A file over the limit is refused while it is being sent, with the API's sentence."""
    async with store.system() as scope:
        made = await system.create_tenant(scope, f"tenant {uuid4().hex[:8]}", quota_tokens=None)
    file = tmp_path / "chat.jsonl"
    file.write_bytes(b'{"role": "user", "content": "Hello."}\n' * 400_000)  # 15 MB, more than sockets hold

    with live.serving(replace(settings, import_max=1024 * 1024)) as url:
        code, out, err = Hango(url, made.api_key, tmp_path)("import", str(file))

    assert (code, out) == (1, "")
    assert err.startswith("hango: ")
    assert "1 MiB" in err or "1MiB" in err


def test_not_there(hango: Hango) -> None:
    """A session that is not there, or not yours, is one sentence and exit 1; a wrong key too."""
    nowhere = "01a22dfd-b204-7685-9ad3-9b0d8b2170bd"

    assert hango("context", "show", "--session", nowhere) == (
        1,
        "",
        f"hango: no session {nowhere} that you may read. `{own_command()} sessions` lists them.\n",
    )
    assert Hango(hango.url, "hango_wrong", hango.home)("sessions") == (
        1,
        "",
        f"hango: the API at {hango.url} refuses the key from HANGO_API_KEY. Set HANGO_API_KEY to a valid one.\n",
    )
