"""`hango run` and `runs` against an API that answers as scripted."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hango.cli import replies, run_report
from hango.cli.own_command import own_command
from hango.cli.run_replies import MessagePage, Run
from hango.cli.text import cells
from tests.unit.cli import asked_runs as runs
from tests.unit.cli.api import KEY, Answer, Scripted, problem, reply, serving
from tests.unit.cli.asked_runs import RUN, message, result
from tests.unit.cli.asked_tries import MODEL, call, text
from tests.unit.cli.conftest import Ended
from tests.unit.cli.conftest import Run as Hango
from tests.unit.cli.snapshots import SESSION

POST = f"POST /v1/sessions/{SESSION}/runs"
GET = f"GET /v1/runs/{RUN}"
CANCEL = f"POST /v1/runs/{RUN}/cancel"
THE_SESSION = f"GET /v1/sessions/{SESSION}"
MESSAGES = f"GET /v1/sessions/{SESSION}/messages"
QUESTION = "How many bolts?"
FORTY = "Forty bolts are in drawer 3."
FACTS = "succeeded · end_turn · 2 turns · 3.4 s · 38,982 in (31,040 cached), 11 out · $0.0131"
LOOK = f"look at it: {own_command()} run --show {RUN}"
NOT_THERE = problem(404, "not_found", "There is no such thing here.")
WRITTEN = [
    message(5, "user", text(QUESTION)),
    message(6, "assistant", text("I look."), call("look", n=1)),
    message(7, "user", result("toolu_1", "shelf-a\nshelf-b")),
    message(8, "assistant", text(FORTY)),
]


def ask(api: Scripted, run: Hango, *words: str, **env: str) -> Ended:
    return run(*words, HANGO_API_URL=api.url, HANGO_API_KEY=KEY, **env)


def bodies(api: Scripted, start: str) -> list[Any]:
    return [json.loads(one.body or b"null") for one in api.asked if one.line.startswith(start)]


def api_with(
    *gets: Mapping[str, Any], written: list[dict[str, Any]] = WRITTEN, end: int | None = None
) -> dict[str, Answer | list[Answer]]:
    """A session where a run is queued, what is then seen of it, and its messages."""
    last = end or (written[-1]["seq"] if written else 4)
    return {
        POST: reply(runs.waiting()),
        GET: [reply(one) for one in gets],
        THE_SESSION: reply(runs.session(last)),
        MESSAGES: reply({"data": written, "next_after": None}),
    }


def test_a_run_prints_what_came_and_what_it_took(run: Hango) -> None:
    """hango run waits, then prints the run's new messages, status, stop reason, turns, usage and cost."""
    with serving(api_with(runs.waiting("running"), runs.ended())) as api:
        ended = ask(api, run, "run", "--session", SESSION, QUESTION)

    shown = ["I look.", "", '→ look({"n":1})', "← shelf-a", "  shelf-b", "", FORTY, "", FACTS, MODEL]
    assert ended == Ended(0, "\n".join(shown) + "\n", "")
    assert bodies(api, POST) == [{"message": QUESTION}]
    assert [one.line for one in api.asked] == [
        POST,
        f"{GET}?wait=60",
        f"{GET}?wait=60",
        THE_SESSION,
        f"{MESSAGES}?after=0&limit=8",
    ]


def test_an_earlier_run_is_shown_with_its_question(run: Hango) -> None:
    """--show prints what the user said too, marked."""
    with serving(api_with(runs.ended(overrides=2))) as api:
        ended = ask(api, run, "run", "--show", RUN)

    assert (ended.code, ended.out.splitlines()[:3], ended.err) == (0, [f"> {QUESTION}", "", "I look."], "")
    assert ended.out.splitlines()[-2:] == [f"{FACTS} · 2 overrides", MODEL]


def test_a_run_without_words_goes_on(run: Hango) -> None:
    """Without a text the agent goes on with the history: no message is sent, and nothing that it wrote is left out."""
    written = WRITTEN[1:]
    with serving(api_with(runs.ended(), written=written)) as api:
        ended = ask(api, run, "run", "--session", SESSION)

    assert (ended.code, ended.out.splitlines()[0], bodies(api, POST)) == (0, "I look.", [{}])


def test_the_messages_of_a_long_session_are_read_from_its_end(run: Hango) -> None:
    """Only the pages that hold the run's messages are read, the last one first."""
    ours = [message(n, "assistant", text(str(n))) for n in range(95, 151)]
    later = [message(n, "user", text("later"), run_id=None) for n in range(151, 251)]
    early = [message(n, "user", text("early"), run_id=None) for n in range(51, 95)]
    answers = api_with(runs.ended(), end=250)
    answers[f"{MESSAGES}?after=150"] = reply({"data": later})
    answers[f"{MESSAGES}?after=50"] = reply({"data": [*early, *ours]})
    with serving(answers) as api:
        ended = ask(api, run, "run", "--show", RUN)

    assert [line for line in ended.out.splitlines() if line][:-2] == [str(n) for n in range(95, 151)]
    assert [one.line for one in api.asked[2:]] == [f"{MESSAGES}?after=150&limit=100", f"{MESSAGES}?after=50&limit=100"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "Name a session by --session, or an earlier run by --show or --cancel."),
        (["--session", SESSION, "--show", RUN], "Name a session by --session"),
        (["--show", RUN, "Hello"], "--show and --cancel take no text and no results"),
        (["--cancel", RUN, "--result", "a=b"], "--show and --cancel take no text and no results"),
        (["--session", SESSION, "--result", "toolu_1"], "'toolu_1' is not CALL=TEXT"),
        (["--session", SESSION, "--result", "=x"], "'=x' is not CALL=TEXT"),
        (["--session", SESSION, "--result", "a=1", "--result", "a=2"], "names a twice"),
    ],
)
def test_words_that_say_nothing(words: list[str], said: str, run: Hango) -> None:
    """What cannot be meant is a usage error before anything is sent: exit 2."""
    with serving({}) as api:
        ended = ask(api, run, "run", *words, COLUMNS="200")

    assert (ended.code, ended.out, api.asked) == (2, "", [])
    assert said in " ".join(ended.err.split())


def requires_action(*more: dict[str, Any]) -> list[dict[str, Any]]:
    asked = [call("look", n=1), {**call("order", item="bolt"), "id": "toolu_2"}, {**call("print"), "id": "toolu 3"}]
    return [WRITTEN[0], message(6, "assistant", *asked), message(7, "user", result("toolu_1", "4")), *more]


def test_calls_of_the_client_are_shown_with_how_to_answer_them(run: Hango) -> None:
    """A run that waits for the client's tools ends with 0: its calls and the command that answers are told."""
    one = runs.ended("requires_action", stop_reason="tool_use")
    with serving(api_with(one, written=requires_action())) as api:
        ended = ask(api, run, "run", "--session", SESSION, QUESTION)

    assert (ended.code, ended.out.splitlines()[:7]) == (
        0,
        [
            '→ look({"n":1})',
            '→ order({"item":"bolt"})',
            "  yours to run and to answer: toolu_2",
            "→ print({})",
            "  yours to run and to answer: toolu 3",
            "← 4",
            "",
        ],
    )
    answer = f"{own_command()} run --session {SESSION} --result toolu_2=TEXT --result 'toolu 3=TEXT'"
    assert ended.err == f"the run waits for 2 tools of yours. Run it, then answer:\n{answer}\n"


def test_calls_that_were_passed_over_wait_no_longer(run: Hango) -> None:
    """Where the session went on, nothing is asked of the client any more."""
    with serving(api_with(runs.ended("requires_action"), written=requires_action(), end=9)) as api:
        ended = ask(api, run, "run", "--show", RUN)

    assert (ended.code, "yours" in ended.out, ended.err) == (0, False, "")


def test_results_of_the_client_start_a_run(run: Hango, tmp_path: Path) -> None:
    """--result sends the results of the client's tools, and a text behind them, as one message."""
    (tmp_path / "order.txt").write_text("Order\n7781", encoding="utf-8")
    words = ["--result", f"toolu_2=@{tmp_path / 'order.txt'}", "--result", "toolu_3=a=b", "And now?"]
    with serving(api_with(runs.ended())) as api:
        ask(api, run, "run", "--session", SESSION, *words)

    assert bodies(api, POST) == [
        {"message": [result("toolu_2", "Order\n7781"), result("toolu_3", "a=b"), text("And now?")]}
    ]


def test_words_of_the_standard_input(run: Hango, monkeypatch: pytest.MonkeyPatch) -> None:
    """With - the text comes from stdin, its lines as they are; one @ or @file of a text is a text."""
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO("How many\nMöhren?".encode())))
    with serving(api_with(runs.ended())) as api:
        ask(api, run, "run", "--session", SESSION, "-")
        ask(api, run, "run", "--session", SESSION, "@home")

    assert bodies(api, POST) == [{"message": "How many\nMöhren?"}, {"message": "@home"}]


def test_thinking_calls_and_results_are_folded(run: Hango) -> None:
    """Of thinking, calls and results the first lines are shown, and how long they are; what is said is shown whole."""
    long = "\n".join(f"line {n} {'漢' * 60}" for n in range(40))
    blocks = [
        {"type": "thinking", "thinking": long, "signature": "s"},
        text(long),
        call("write", content="x" * 2000),
    ]
    inner = [text("see"), {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AA"}}]
    written = [
        message(5, "assistant", *blocks),
        message(6, "user", result("toolu_1", inner, is_error=True), result("toolu_2", long)),
        message(7, "assistant", {"type": "fresh", "x": 1.10}),
    ]
    with serving(api_with(runs.ended(), written=written)) as api:
        ended = ask(api, run, "run", "--session", SESSION, COLUMNS="60")
    lines = ended.out.splitlines()

    assert lines[:2] == ["thinking", f"  line 0 {'漢' * 25}…"]
    assert lines[9] == f"  … {len(long):,} characters in all"
    assert lines[11:51] == long.split("\n")
    calls = lines[52:62]
    assert calls[0] == "→ " + ('write({"content":"' + "x" * 40)
    assert calls[-2:] == ["  … 2,021 characters in all", "← (error) see"]
    assert lines[62:64] == ["  (image)", f"← line 0 {'漢' * 25}…"]
    assert "fresh" in lines


@pytest.mark.parametrize(
    ("one", "said"),
    [
        (runs.failed("failed", "too_many_turns", "Many."), "the run failed: Many. (too_many_turns)"),
        (runs.failed("timed_out", "timeout", "Late."), "the run timed out: Late. (timeout)"),
        (runs.failed("cancelled", "cancelled", "The run was cancelled."), "The run was cancelled. (cancelled)"),
        (runs.ended("cancelled"), "the run was cancelled."),
        (runs.failed("failed", "internal", "\x1b[2J"), "the run failed: ⟨U+001B⟩[2J (internal)"),
    ],
)
def test_a_run_that_failed(one: dict[str, Any], said: str, run: Hango) -> None:
    """What it wrote is printed; then exit 1 and one sentence on stderr."""
    with serving(api_with(one)) as api:
        ended = ask(api, run, "run", "--session", SESSION, QUESTION)

    assert (ended.code, ended.out.splitlines()[0], ended.err) == (1, "I look.", f"hango: {said}\n")


def test_a_run_that_never_began(run: Hango) -> None:
    """A run that no worker took wrote nothing: its state alone is told."""
    one = runs.failed("failed", "queue_expired", "No worker.", turns=0, usage=None, started_at=None)
    with serving(api_with(one, written=[WRITTEN[0]])) as api:
        ended = ask(api, run, "run", "--session", SESSION, QUESTION)

    assert ended.out == f"failed · 0 turns · {MODEL}\n"


def test_json_is_the_reply_as_it_came(run: Hango) -> None:
    """--json prints the API's last reply to the byte; the exit code and the sentence stay."""
    body = json.dumps(runs.failed("failed", "internal", "No.")).encode().replace(b'"turns": 2', b'"turns":  2,"x":1.10')
    with serving({POST: reply(runs.waiting()), GET: Answer(body)}) as api:
        ended = ask(api, run, "run", "--session", SESSION, QUESTION, "--json")

    assert ended == Ended(1, body.decode() + "\n", "hango: the run failed: No. (internal)\n")


def test_no_wait_and_a_wait_that_runs_out(run: Hango) -> None:
    """--no-wait prints the id; a wait that is over leaves the run and ends with 3. Both name how to look at it."""
    with serving(api_with(runs.waiting("running"))) as api:
        unwaited = ask(api, run, "run", "--session", SESSION, QUESTION, "--no-wait")
        short = ask(api, run, "run", "--session", SESSION, QUESTION, "--timeout", "1")
        state = ask(api, run, "run", "--show", RUN, "--no-wait")

    assert unwaited == Ended(0, f"{RUN}\n", f"{LOOK}\n")
    assert short == Ended(3, "", f"hango: the run did not end in time and goes on.\n  {LOOK}\n")
    assert state == Ended(0, f"run {RUN} is running\n", "")


def test_a_run_of_another(run: Hango) -> None:
    """A run that is not there for the caller is said by its id, and an id stays one piece of the path."""
    with serving({"GET": NOT_THERE, "POST": NOT_THERE}) as api:
        shown = ask(api, run, "run", "--show", "../x?y")
        cancelled = ask(api, run, "run", "--cancel", "x/y")
        started = ask(api, run, "run", "--session", "s", "Hi")

    listed = f"`{own_command()} runs --session ID` lists them."
    assert shown == Ended(1, "", f"hango: no run ../x?y that you may read. {listed}\n")
    assert cancelled == Ended(1, "", f"hango: no run x/y that you may cancel. {listed}\n")
    assert started == Ended(1, "", f"hango: no session s that you may read. `{own_command()} sessions` lists them.\n")
    assert [one.line for one in api.asked][:2] == ["GET /v1/runs/..%2Fx%3Fy", "POST /v1/runs/x%2Fy/cancel"]


@pytest.mark.parametrize(
    ("one", "said"),
    [
        (runs.waiting("cancelled"), f"run {RUN} is cancelled."),
        (runs.waiting("running"), f"run {RUN} is under way and ends in a moment."),
        (runs.ended("requires_action"), f"run {RUN} had ended: requires_action."),
    ],
)
def test_cancel(one: dict[str, Any], said: str, run: Hango) -> None:
    """--cancel says what became of the run."""
    with serving({CANCEL: reply(one)}) as api:
        assert ask(api, run, "run", "--cancel", RUN) == Ended(0, "", f"{said}\n")
        assert json.loads(ask(api, run, "run", "--cancel", RUN, "--json").out) == one


def test_runs_are_listed(run: Hango) -> None:
    """hango runs lists the runs of a session without texts, as much of each as the line has room for."""
    listed = [runs.waiting("running"), runs.ended("requires_action"), runs.failed("failed", "internal", "No.")]
    page = {"data": listed, "next_cursor": "c"}
    with serving({f"GET /v1/sessions/{SESSION}/runs": [*[reply(page)] * 4, reply({"data": []})]}) as api:
        wide = ask(api, run, "runs", "--session", SESSION)
        narrow = ask(api, run, "runs", "--session", SESSION, COLUMNS="80")
        narrowest = ask(api, run, "runs", "--session", SESSION, COLUMNS="40")
        json_ = ask(api, run, "runs", "--session", SESSION, "--limit", "3", "--json")
        none = ask(api, run, "runs", "--session", SESSION)

    assert wide.out.splitlines() == [
        "id                                    created           status           turns      in  stop",
        f"{RUN}  2026-11-30 10:00  running              0",
        f"{RUN}  2026-11-30 10:00  requires_action      2  38,982  end_turn",
        f"{RUN}  2026-11-30 10:00  failed               2  38,982  internal",
    ]
    assert narrow.out.splitlines()[2] == f"{RUN}  11-30 10:00  requires_action      2  38,982"
    assert narrowest.out.splitlines()[2] == f"{RUN}  requires_action"
    assert wide.err == f"there are more: {own_command()} runs --session {SESSION} --limit 500\n"
    assert json.loads(json_.out) == page
    assert none == Ended(0, "", f"no runs. `{own_command()} run` makes one.\n")
    assert api.asked[3].line == f"GET /v1/sessions/{SESSION}/runs?limit=3"


@given(words=st.text(), name=st.text(), width=st.integers(40, 200))
def test_nothing_of_a_message_acts(words: str, name: str, width: int) -> None:
    """No control or direction character of a message reaches the terminal, and folded lines fit."""
    blocks = [text(words), {"type": "thinking", "thinking": words}, {**call(name, x=words), "id": name}]
    page = {"data": [message(1, "assistant", *blocks, {"type": name}), message(2, "user", result(name, words))]}
    messages = replies.read(json.dumps(page).encode(), MessagePage).data
    one = replies.read(json.dumps(runs.ended("requires_action", stop_reason=name, model=name)).encode(), Run)
    calls = run_report.asked(one, messages[:1], 1)
    shown = list(run_report.lines(one, messages[:1], calls, width, with_question=True))
    shown += run_report.lines(one, messages[1:], [], width, with_question=True)

    every = "".join(line.text for line in shown)
    assert not [letter for letter in every if letter in "\x1b\x7f\x9b\u202e\u2066\u200b\r\n" or letter < " "]
    assert all(cells(line.text) <= width for line in shown if line.text.startswith(("→", "←")))
