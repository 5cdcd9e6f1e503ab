"""The user commands against an API that answers as scripted: what goes out, what is printed."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from wcwidth import wcswidth

from hango.cli.own_command import own_command
from hango.cli.progress import Progress
from tests.unit.cli import snapshots
from tests.unit.cli.api import KEY, Answer, Scripted, problem, reply, serving
from tests.unit.cli.conftest import Ended, Run

CONTEXT = f"GET /v1/sessions/{snapshots.SESSION}/context"
IMPORTED = {
    "agent_id": snapshots.AGENT,
    "format": "openai_chat",
    "session_id": snapshots.SESSION,
    "sessions": [
        {
            "session_id": snapshots.SESSION,
            "title": "Bolts\x1b[2J",
            "messages": 1234,
            "flagged": [
                {"part": "message:3", "reason": "unpaired_tool_use"},
                {"reason": "a_later_reason"},
                *({"part": f"message:{n}", "reason": "unknown_block"} for n in range(10, 60)),
            ],
        }
    ],
}


def ask(api: Scripted, run: Run, *words: str, **env: str) -> Ended:
    return run(*words, HANGO_API_URL=api.url, HANGO_API_KEY=KEY, **env)


def test_context_show(run: Run) -> None:
    """hango context show prints the table, and on stderr what to do next when there is something to do."""
    answers = {CONTEXT: reply(snapshots.workshop()), "GET /v1/agents/": reply({"name": "stock assistant"})}
    with serving(answers) as api:
        ended = ask(api, run, "context", "show", "--session", snapshots.SESSION)

    golden = Path(__file__).parent / "golden" / "context_100.txt"
    next_ = f"look at it: {own_command()} context show --session {snapshots.SESSION} --full message:44\n"
    assert ended == Ended(0, golden.read_text(encoding="utf-8"), next_)
    assert [one.line for one in api.asked] == [CONTEXT, f"GET /v1/agents/{snapshots.AGENT}"]


def test_context_show_says_nothing_where_nothing_is_to_do(run: Run) -> None:
    """Nothing that needs no attention is said; an agent that may not be read is named by its id."""
    answers = {
        CONTEXT: reply(snapshots.snapshot([], [], [])),
        "GET /v1/agents/": problem(404, "not_found", "There is no such thing here."),
    }
    with serving(answers) as api:
        ended = ask(api, run, "context", "show", "--session", snapshots.SESSION, COLUMNS="200")

    assert (ended.code, ended.err) == (0, "")
    assert ended.out.splitlines()[0].startswith(f"agent {snapshots.AGENT} · session {snapshots.SESSION} · ")


@pytest.mark.parametrize(
    ("words", "asked"),
    [
        (["--json"], CONTEXT),
        (["--json", "--group", "tools"], f"{CONTEXT}?group=tools"),
        (["--provider"], f"{CONTEXT}?format=provider"),
        (["--json", "--full", "tool:a b&c=d"], f"{CONTEXT}?full=tool%3Aa%20b%26c%3Dd"),
    ],
)
def test_json_is_the_reply_as_it_came(words: list[str], asked: str, run: Run) -> None:
    """--json and --provider print the API's reply to the byte, in its own spelling of numbers and escapes."""
    body = b'{"a":1.10,  "b":123456789012345678901234567890,"c":"\\u202e caf\xc3\xa9"}'
    with serving({CONTEXT: Answer(body)}) as api:
        ended = ask(api, run, "context", "show", "--session", snapshots.SESSION, *words)

    assert ended == Ended(0, body.decode() + "\n", "")
    assert [one.line.replace("+", "%20") for one in api.asked] == [asked]


def test_a_session_id_cannot_change_the_path(run: Run) -> None:
    """What a person types as an id stays one piece of the path."""
    with serving({"GET": problem(404, "not_found", "There is no such thing here.")}) as api:
        ended = ask(api, run, "context", "show", "--session", "../agents?x=1#y")

    assert [one.line for one in api.asked] == ["GET /v1/sessions/..%2Fagents%3Fx%3D1%23y/context"]
    said = f"hango: no session ../agents?x=1#y that you may read. `{own_command()} sessions` lists them.\n"
    assert ended == Ended(1, "", said)


def test_full_part(run: Run) -> None:
    """--full prints one part's content as text with its structure."""
    part = {
        "id": "message:3",
        "kind": "message",
        "label": "#3 user",
        "content": [{"type": "text", "text": "And\nthe nuts?"}],
        "text": "And\nthe nuts?",
        "tokens": 4,
        "included": True,
        "override": "none",
    }
    with serving({CONTEXT: reply(part)}) as api:
        ended = ask(api, run, "context", "show", "--session", snapshots.SESSION, "--full", "message:3")

    assert ended == Ended(0, "message:3 · #3 user · 4 tokens\n\ntext\n  And\n  the nuts?\n", "")


def test_a_part_that_is_not_there(run: Run) -> None:
    """An unknown part is said by name."""
    with serving({CONTEXT: problem(404, "not_found", "There is no such thing here.")}) as api:
        ended = ask(api, run, "context", "show", "--session", snapshots.SESSION, "--full", "message:9")

    said = f"hango: no part message:9 in session {snapshots.SESSION}, or no such session that you may read.\n"
    assert ended == Ended(1, "", said)


def test_sessions(run: Run) -> None:
    """hango sessions lists sessions on aligned lines; the title gives way at the edge."""
    data = [
        {
            "id": snapshots.SESSION,
            "messages": 12,
            "tokens": 41210,
            "created_at": "2026-11-30T08:09:10Z",
            "title": "漢" * 30,
        },
        {"id": snapshots.AGENT, "messages": 1, "tokens": 3, "created_at": "2026-11-30T08:09:10Z", "title": "a\nb"},
    ]
    with serving({"GET /v1/sessions": reply({"data": data, "next_cursor": "abc"})}) as api:
        ended = ask(api, run, "sessions", "--q", "bo lts", "--limit", "2")

    assert ended.out.splitlines() == [
        "id                                    messages  tokens  created (UTC)     title",
        f"{snapshots.SESSION}        12  41,210  2026-11-30 08:09  {'漢' * 12}…",
        f"{snapshots.AGENT}         1       3  2026-11-30 08:09  a ⏎ b",
    ]
    assert ended.err == f"there are more: {own_command()} sessions --q 'bo lts' --limit 500\n"
    assert [one.line.replace("+", "%20") for one in api.asked] == ["GET /v1/sessions?q=bo%20lts&limit=2"]


@pytest.mark.parametrize(
    ("command", "columns", "shown"),
    [
        (
            "sessions",
            80,
            [
                "id                                    messages  tokens  created     title",
                f"{snapshots.SESSION}        12  41,210  2026-11-30  漢字漢字漢…",
            ],
        ),
        (
            "sessions",
            100,
            [
                "id                                    messages  tokens  created (UTC)     title",
                f"{snapshots.SESSION}        12  41,210  2026-11-30 08:09  漢字漢字漢字漢字漢字漢字…",
            ],
        ),
        (
            "agents",
            80,
            [
                "id                                    model           updated     name",
                f"{snapshots.SESSION}  anthropic/cla…  2026-11-30  漢字漢字漢字…",
            ],
        ),
        (
            "agents",
            100,
            [
                "id                                    model                  updated (UTC)     name",
                f"{snapshots.SESSION}  anthropic/claude-son…  2026-11-30 08:09  漢字漢字漢字漢字漢字…",
            ],
        ),
    ],
)
def test_lists_obey_columns(command: str, columns: int, shown: list[str], run: Run) -> None:
    """No line is wider than COLUMNS: names are cut by their width on a screen; ids and numbers are whole."""
    when = "2026-11-30T08:09:10Z"
    item = {"id": snapshots.SESSION, "messages": 12, "tokens": 41210, "created_at": when, "updated_at": when}
    names = {"model": "anthropic/claude-sonnet-4-5", "title": "漢字" * 20, "name": "漢字" * 20}
    with serving({f"GET /v1/{command}": reply({"data": [item | names], "next_cursor": None})}) as api:
        lines = ask(api, run, command, COLUMNS=str(columns)).out.splitlines()

    assert lines == shown
    assert max(wcswidth(line) for line in lines) in {columns - 1, columns}


def test_agents(run: Run) -> None:
    """hango agents lists agents."""
    data = [{"id": snapshots.AGENT, "model": "offline/extract", "updated_at": "2026-11-30T08:09:10Z", "name": "stock"}]
    with serving({"GET /v1/agents": reply({"data": data, "next_cursor": None})}) as api:
        ended = ask(api, run, "agents")

    assert ended.out.splitlines() == [
        "id                                    model            updated (UTC)     name",
        f"{snapshots.AGENT}  offline/extract  2026-11-30 08:09  stock",
    ]
    assert ended.err == ""


def test_a_search_without_a_find(run: Run) -> None:
    """An empty list is said on stderr; stdout stays empty."""
    with serving({"GET /v1/agents": reply({"data": [], "next_cursor": None})}) as api:
        assert ask(api, run, "agents", "--q", "x") == Ended(0, "", "nothing holds the text 'x'.\n")


def test_import_file(run: Run, tmp_path: Path) -> None:
    """hango import sends the file as it is, prints sessions, and what is odd by part and reason."""
    file = tmp_path / "chat.json"
    file.write_bytes(b'{"messages": []}' * 100_000)
    with serving({"POST /v1/imports": reply(IMPORTED)}) as api:
        ended = ask(api, run, "import", str(file), "--format", "openai_chat", "--model", "openai/x", "--title", "T")

    assert [one.line for one in api.asked] == ["POST /v1/imports?format=openai_chat&model=openai%2Fx&title=T"]
    assert api.asked[0].body == file.read_bytes()
    assert ended.out.splitlines() == [
        f"agent {snapshots.AGENT} · openai_chat",
        f"session {snapshots.SESSION} · 1,234 messages · Bolts⟨U+001B⟩[2J",
        "  message:3: a call without a result (unpaired_tool_use)",
        "  a_later_reason",
        *(f"  message:{n}: a block that hango does not know (unknown_block)" for n in range(10, 58)),
        "  … and 2 more; --json has them all",
    ]
    assert ended.err == f"look at it: {own_command()} context show --session {snapshots.SESSION}\n"


def test_import_stdin(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """`-` reads stdin; --json prints the reply as it came."""
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(b"line\n")))
    with serving({"POST /v1/imports": reply(IMPORTED)}) as api:
        ended = ask(api, run, "import", "-", "--agent", snapshots.AGENT, "--json")

    assert [(one.line, one.body) for one in api.asked] == [
        (f"POST /v1/imports?format=auto&agent_id={snapshots.AGENT}", b"line\n")
    ]
    assert (ended.code, json.loads(ended.out)) == (0, IMPORTED)


def test_import_refused(run: Run, tmp_path: Path) -> None:
    """What cannot be imported is refused with the line; what cannot be read is said before anything is sent."""
    file = tmp_path / "a.jsonl"
    file.write_bytes(b"{}\n")
    errors = [{"reason": "bad_line", "message": "Line 1 has no role.", "pointer": "/0"}]
    with serving({"POST": problem(422, "bad_line", "Line 1 has no role.", errors=errors)}) as api:
        refused = ask(api, run, "import", str(file))
        unreadable = ask(api, run, "import", str(tmp_path))
        absent = ask(api, run, "import", str(tmp_path / "absent"))

    assert refused == Ended(1, "", f"hango: {file} cannot be imported: Line 1 has no role.\n")
    assert unreadable.err == f"hango: {tmp_path} cannot be read: is a directory. Name a file, or - for stdin.\n"
    assert (
        absent.err
        == f"hango: {tmp_path}/absent cannot be read: no such file or directory. Name a file, or - for stdin.\n"
    )
    assert len(api.asked) == 1


def test_progress() -> None:
    """While bytes go out, one line says how many of how many."""
    known = Progress("importing", 4_000_000, shown=False)
    assert list(known.watch([b"x" * 1_000_000])) == [b"x" * 1_000_000]
    piped = Progress("importing", None, shown=False, sent=2_500_000)

    assert known.line() == "importing ██████░░░░░░░░░░░░░░░░░░ 1.0 of 4.0 MB  25%"
    assert piped.line() == "importing 2.5 MB"


def test_config(run: Run, tmp_path: Path) -> None:
    """hango config prints what is in force, secrets as ***, and where each came from; slips of the pen are named."""
    home = tmp_path / "home"
    home.mkdir()
    (home / "up.json").write_text(json.dumps({"url": "http://127.0.0.1:8799", "api_key": "hush"}), encoding="utf-8")

    ended = run("config", HANGO_OPENAI_API_KEY="secret", HANGO_PROT="1", HANGO_PORT="9001")

    rows = [line.split(None, 2) for line in ended.out.splitlines()]
    assert rows[0] == ["variable", "from", "value"]
    assert [row for row in rows if row[0] in {"HANGO_PORT", "HANGO_OPENAI_API_KEY"}] == [
        ["HANGO_PORT", "environment", "9001"],
        ["HANGO_OPENAI_API_KEY", "environment", "***"],
    ]
    assert [row for row in rows if row[1] == "up.json"] == [
        ["HANGO_API_URL", "up.json", "http://127.0.0.1:8799"],
        ["HANGO_API_KEY", "up.json", "***"],
    ]
    assert ended.err == "HANGO_PROT is no setting of hango. Look for a slip of the pen.\n"
    assert "hush" not in ended.out
    assert "secret" not in ended.out
