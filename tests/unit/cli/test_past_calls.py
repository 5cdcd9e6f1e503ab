"""`hango context calls`, `show --run` and `diff` against an API that answers as scripted."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hango.chain.context_diff import CacheBreak
from hango.cli import diff_table, reasons, replies
from hango.cli.own_command import own_command
from hango.cli.run_replies import Diff
from hango.cli.text import cells
from tests.unit.cli import asked_runs as runs
from tests.unit.cli import snapshots
from tests.unit.cli.api import KEY, Answer, Scripted, problem, reply, serving
from tests.unit.cli.asked_runs import RUN
from tests.unit.cli.conftest import Ended, Run
from tests.unit.cli.snapshots import part

CALLS = f"GET /v1/runs/{RUN}/calls"
CONTEXT = f"{CALLS}/2/context"
AGENT = {"GET /v1/agents/": reply({"name": "stock assistant"})}
NOT_THERE = problem(404, "not_found", "There is no such thing here.")
LISTED = f"`{own_command()} context calls --run {RUN}` lists them."


def ask(api: Scripted, run: Run, *words: str, **env: str) -> Ended:
    return run("context", *words, HANGO_API_URL=api.url, HANGO_API_KEY=KEY, **env)


def test_calls_are_listed(run: Run) -> None:
    """hango context calls lists the model calls of a run, as much of each as the line has room for."""
    listed = [
        runs.call(1, overrides=2, excluded_tokens=1912),
        runs.call(2, purpose="subagent", error="provider_overloaded", usage=None, stop_reason=None),
        runs.call(3, purpose="summary", usage=None, stop_reason=None, ended_at=None),
    ]
    with serving({CALLS: [*[reply({"data": listed, "next_cursor": "c"})] * 4, reply({"data": []})]}) as api:
        wide = ask(api, run, "calls", "--run", RUN, COLUMNS="120")
        narrow = ask(api, run, "calls", "--run", RUN, COLUMNS="80")
        narrowest = ask(api, run, "calls", "--run", RUN, COLUMNS="40")
        json_ = ask(api, run, "calls", "--run", RUN, "--limit", "3", "--json")
        none = ask(api, run, "calls", "--run", RUN)

    model = "anthropic/claude-sonnet-4-5"
    assert wide.out.splitlines() == [
        "call  purpose       in  cached  out     cost  overrides  left out  stop                 model",
        f"   1  run       38,982  31,040   11  $0.0131          2     1,912  tool_use             {model}",
        f"   2  subagent                                        0         0  provider_overloaded  {model}",
        f"   3  summary                                         0         0  under way            {model}",
    ]
    assert narrow.out.splitlines()[1] == "   1  run       38,982  31,040   11  $0.0131          2  tool_use"
    assert narrowest.out.splitlines()[1] == "   1  run       38,982   11  tool_use"
    assert all(cells(line) <= 40 for line in narrowest.out.splitlines())
    assert json.loads(json_.out)["data"] == listed
    assert (none.out, none.err) == ("", "the run has made no call.\n")
    assert api.asked[3].line == f"{CALLS}?limit=3"


@pytest.mark.parametrize(("of", "said"), [((2,), "call 2 was"), ((1, 2), "calls 1, 2 were")])
def test_calls_of_another_release_are_named(of: tuple[int, ...], said: str, run: Run) -> None:
    """Which calls another release of hango made is said below the list."""
    listed = [runs.call(n, exact=n not in of) for n in (1, 2, 3)]
    with serving({CALLS: reply({"data": listed})}) as api:
        ended = ask(api, run, "calls", "--run", RUN)

    doubt = "made by another release of hango: `show` says whether it is rebuilt exactly."
    assert ended.err == f"{said} {doubt}\n"


def test_a_past_call_is_shown(run: Run) -> None:
    """context show --run --call prints the table of that call and says that it is the request as it was sent."""
    shot = {**snapshots.workshop(), "exact": True, "would_compact": True}
    listed = {"data": [runs.call(1), runs.call(2, purpose="summary")]}
    with serving({CONTEXT: reply(shot), CALLS: reply(listed), **AGENT}) as api:
        ended = ask(api, run, "show", "--run", RUN, "--call", "2", "--group", "tools")
        json_ = ask(api, run, "show", "--run", RUN, "--call", "2", "--json")

    assert (ended.code, ended.err) == (0, "")
    assert ended.out.splitlines()[:2] == [
        f"call 2 (summary) of run {RUN}: the request as it was sent",
        f"stock assistant · session {snapshots.SESSION} · anthropic/claude-sonnet-4-5",
    ]
    assert "would compact" not in ended.out
    assert "tool:read_file" in ended.out
    assert "message:43" not in ended.out.partition("total")[0]
    assert json.loads(json_.out) == shot


@pytest.mark.parametrize("columns", [40, 60, 100])
def test_a_call_that_cannot_be_made_again_says_so(columns: int, run: Run) -> None:
    """Where the request is not the one that was sent, one sentence says so, and why."""
    shot = {**snapshots.workshop(), "exact": False}
    with serving({CONTEXT: reply(shot), CALLS: NOT_THERE, **AGENT}) as api:
        ended = ask(api, run, "show", "--run", RUN, "--call", "2", COLUMNS=str(columns))

    head = ended.out.partition("stock assistant")[0]
    assert " ".join(head.split()) == (
        f"call 2 of run {RUN} not exact: another release of hango made this request, in another way than this one does,"
        " so what is shown may differ from what was sent."
    )
    assert all(cells(line) <= columns for line in head.splitlines())


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["show", "--run", RUN], "--run and --call go together"),
        (["show", "--session", "s", "--call", "1"], "--run and --call go together"),
        (["show", "--session", "s", "--run", RUN, "--call", "1"], "Name a session by --session, or a run"),
        (["show", "--run", RUN, "--call", "1", "--full", "summary"], "they take no --run"),
        (["show", "--run", RUN, "--call", "1", "--provider"], "they take no --run"),
        (["show", "--run", RUN, "--call", "0"], "'0' is not"),
        (["diff", "--run", RUN], "Missing option '--call'."),
        (["calls"], "Missing option '--run'."),
    ],
)
def test_words_that_say_nothing(words: list[str], said: str, run: Run) -> None:
    """What cannot be meant is a usage error before anything is sent: exit 2."""
    with serving({}) as api:
        ended = ask(api, run, *words, COLUMNS="200")

    assert (ended.code, ended.out, api.asked) == (2, "", [])
    assert said in " ".join(ended.err.split())


def test_a_call_that_is_not_there(run: Run) -> None:
    """A run or a call that is not there is said by its id, and an id stays one piece of the path."""
    with serving({"GET": NOT_THERE}) as api:
        calls = ask(api, run, "calls", "--run", "../x?y")
        show = ask(api, run, "show", "--run", RUN, "--call", "9")
        last = ask(api, run, "diff", "--run", RUN, "--call", "9")
        other = ask(api, run, "diff", "--run", RUN, "--call", "9", "--against", "x:1")

    assert calls.err == f"hango: no run ../x?y that you may read. `{own_command()} runs --session ID` lists them.\n"
    assert show.err == f"hango: no call 9 of run {RUN} that you may read. {LISTED}\n"
    none = f"hango: there is no call 9 of run {RUN} that you may read, or"
    assert last.err == f"{none} none after it in the same conversation. {LISTED}\n"
    assert other.err == f"{none} no call x:1. {LISTED}\n"
    assert api.asked[0].line == "GET /v1/runs/..%2Fx%3Fy/calls?limit=500"


MADE: dict[str, Any] = {
    "added": [part("message:44", "shelf-a: 4 boxes, 2 open", 190, role="user")],
    "removed": [part("tool:read_file", "Reads one file.", 131)],
    "changed": [
        {
            "part": "system:memory:/memories/AGENTS.md",
            "before": part("system:memory:/memories/AGENTS.md", "The owner is away on Mondays. Bolts are M8.", 1912),
            "after": part("system:memory:/memories/AGENTS.md", "The owner is away on Fridays. Bolts are M8.", 1914),
        },
        {
            "part": "system:agent",
            "before": part("system:agent", "You keep the list.", 612),
            "after": part("system:agent", "You keep the list.", 612),
        },
    ],
    "tokens_before": 41210,
    "tokens_after": 41271,
    "cache_broken_at": "tool:read_file",
    "cache_reason": "removed",
}


def test_a_difference(run: Run) -> None:
    """diff prints what was added, removed and changed with tokens, the totals, and where the cached prefix broke."""
    with serving({CONTEXT: reply(MADE)}) as api:
        wide = ask(api, run, "diff", "--run", RUN, "--call", "2", COLUMNS="80")
        narrow = ask(api, run, "diff", "--run", RUN, "--call", "2", "--against", f"{RUN}:5", COLUMNS="40")
        json_ = ask(api, run, "diff", "--run", RUN, "--call", "2", "--json")

    assert wide == Ended(
        0,
        f"call 2 of run {RUN} → the next call\n"
        "\n"
        "- tool:read_file                               131  Reads one file.\n"
        "~ system:memory:/memories/AGENTS.md  1,912 → 1,914\n"
        "    was … is away on Mondays. Bolts are M8.\n"
        "    now … is away on Fridays. Bolts are M8.\n"
        "~ system:agent                                 612\n"
        "    its beginning is the same\n"
        "+ message:44 user                              190  shelf-a: 4 boxes, 2 open\n"
        "\n"
        "total 41,210 → 41,271 tokens, 61 more (estimated)\n"
        "cached prefix: broken at tool:read_file: it is not there any longer\n",
        "",
    )
    assert narrow.out.splitlines()[:4] == ["call 2 of run", f"{RUN} →", "call", f"{RUN}:5"]
    assert "~ system:memory:/memories/AGENTS.md  1,912 → 1,914" in narrow.out.splitlines()  # an id is never cut
    assert json.loads(json_.out) == MADE
    assert [one.line.replace("%3A", ":") for one in api.asked] == [
        f"{CONTEXT}?against=next",
        f"{CONTEXT}?against={RUN}:5",
        f"{CONTEXT}?against=next",
    ]


def test_no_difference(run: Run) -> None:
    """Two equal requests say so, and that a cache served the whole of the first."""
    same = {"added": [], "removed": [], "changed": [], "tokens_before": 7, "tokens_after": 7}
    with serving({CONTEXT: Answer(json.dumps(same).encode())}) as api:
        ended = ask(api, run, "diff", "--run", RUN, "--call", "2")

    assert ended.out.splitlines()[2:] == [
        "no part differs",
        "",
        "total 7 tokens, as before (estimated)",
        "cached prefix: holds; the other call goes on where this one ends",
    ]


def test_every_break_of_the_cache_has_words() -> None:
    """The command line has words for each reason of the API, and for no other."""
    assert list(reasons.OF_CACHE) == [reason.value for reason in CacheBreak]


@given(words=st.text(max_size=200), other=st.text(max_size=200), name=st.text(), width=st.integers(40, 200))
def test_nothing_of_a_difference_acts(words: str, other: str, name: str, width: int) -> None:
    """No control or direction character of a part reaches the terminal, and texts fit the line."""
    one, two = part("system:a", words, 1), part("system:a", other, 2)
    made = {
        "added": [part(f"tool:{name}", words, 1)],
        "removed": [part("message:1", other, 1, role=name)],
        "changed": [{"part": "system:a", "before": one, "after": two}],
        "tokens_before": 1,
        "tokens_after": 2,
        "cache_broken_at": name,
        "cache_reason": name,
    }
    shown = list(diff_table.lines(replies.read(json.dumps(made).encode(), Diff), name, width))

    every = "".join(line.text for line in shown)
    assert not [letter for letter in every if letter in "\x1b\x7f\x9b\u202e\u2066\u200b\r\n" or letter < " "]
    assert all(cells(line.text) <= width for line in shown if line.text.startswith("    "))
