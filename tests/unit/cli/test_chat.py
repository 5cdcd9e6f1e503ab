"""`hango chat` and Ctrl-C during a run: on a terminal of its own, and from a pipe."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from hango.cli.own_command import own_command
from tests.unit.cli import asked_runs as runs
from tests.unit.cli.api import KEY, Answer, Scripted, problem, reply, serving
from tests.unit.cli.asked_runs import RUN, message, result
from tests.unit.cli.asked_tries import call, text
from tests.unit.cli.snapshots import SESSION
from tests.unit.cli.terminal import Terminal, terminal

POST = f"POST /v1/sessions/{SESSION}/runs"
GET = f"GET /v1/runs/{RUN}"
CANCEL = f"POST /v1/runs/{RUN}/cancel"
THE_SESSION = f"GET /v1/sessions/{SESSION}"
MESSAGES = f"GET /v1/sessions/{SESSION}/messages"
FORTY = "Forty bolts are in drawer 3."
HEAD = f"Bolts · session {SESSION} · /exit ends, Ctrl-C cancels an answer"
FACTS = "succeeded · end_turn · 2 turns · 3.4 s · 38,982 in (31,040 cached), 11 out"
ANSWER = [FORTY, "", FACTS, "$0.0131 · anthropic/claude-sonnet-4-5", ""]
NEVER = Answer(b"", seconds=60)
LOOK = f"look at it: {own_command()} run --show {RUN}"


def page(*messages: dict[str, Any]) -> Answer:
    return reply({"data": list(messages), "next_after": None})


def said(words: str, end: int = 6) -> Answer:
    return page(message(end - 1, "user", text("?")), message(end, "assistant", text(words)))


def api_with(*gets: Answer, **more: Answer | list[Answer]) -> dict[str, Answer | list[Answer]]:
    return {
        POST: reply(runs.waiting()),
        GET: list(gets),
        THE_SESSION: reply(runs.session(6)),
        MESSAGES: said(FORTY),
        **more,
    }


def bodies(api: Scripted) -> list[Any]:
    return [json.loads(one.body) for one in api.asked if one.line == POST]


@contextmanager
def chatting(api: Scripted) -> Iterator[Terminal]:
    with terminal("chat", "--session", SESSION, HANGO_API_URL=api.url, HANGO_API_KEY=KEY) as seen:
        yield seen


def piped(api: Scripted, lines: bytes) -> tuple[int, list[str], list[str]]:
    done = subprocess.run(
        [sys.executable, "-m", "hango", "chat", "--session", SESSION],
        input=lines,
        env={"HANGO_API_URL": api.url, "HANGO_API_KEY": KEY, "PATH": "/usr/bin:/bin", "COLUMNS": "80"},
        capture_output=True,
        check=False,
        timeout=60,
    )
    return done.returncode, done.stdout.decode().splitlines(), done.stderr.decode().splitlines()


@pytest.mark.parametrize("end", ["/exit\n", "\x04"])
def test_lines_are_answered_until_the_end(end: str) -> None:
    """Each line is a run; a blank one is none; /exit and Ctrl-D end with 0."""
    with serving(api_with(reply(runs.ended()))) as api, chatting(api) as seen:
        seen.until(f"{HEAD}\r\n> ")
        seen.type("How many bolts?\n")
        api.until(MESSAGES)
        seen.type(" \n")
        seen.type("And nuts?\n")
        seen.until("And nuts?")
        seen.type(end)
        code, out = seen.ended()

    assert (code, out.splitlines()) == (0, ANSWER * 2)
    assert bodies(api) == [{"message": "How many bolts?"}, {"message": "And nuts?"}]


def test_lines_from_a_pipe() -> None:
    """Without a terminal there is no prompt: lines in, answers out, until the last one or /exit."""
    with serving(api_with(reply(runs.ended()))) as api:
        answered = piped(api, "Wie viele Möhren?\r\n\nLast".encode())
        ended = piped(api, b"/exit\nnever said\n")

    assert answered == (0, ANSWER * 2, [])
    assert ended == (0, [], [])
    assert bodies(api) == [{"message": "Wie viele Möhren?"}, {"message": "Last"}]


def test_a_failure_ends_a_pipe() -> None:
    """From a pipe, the first failure ends it, with its exit code and one sentence."""
    with serving(api_with(reply(runs.failed("failed", "internal", "No.")))) as api:
        code, out, err = piped(api, b"one\ntwo\n")
    with serving({THE_SESSION: problem(404, "not_found", "There is no such thing here.")}) as none:
        gone = piped(none, b"one\n")

    assert (code, out[0], err) == (1, FORTY, ["hango: the run failed: No. (internal)"])
    assert bodies(api) == [{"message": "one"}]
    assert gone[0] == 1
    assert gone[2] == [f"hango: no session {SESSION} that you may read. `{own_command()} sessions` lists them."]


def test_bytes_that_are_no_text() -> None:
    """A line that is not UTF-8 is said so, and nothing is sent."""
    with serving(api_with()) as api:
        code, _, err = piped(api, b"\xff\n")

    assert (code, err) == (1, ["hango: a line of the standard input is not UTF-8. Write it again as UTF-8."])
    assert bodies(api) == []


def test_a_failure_is_told_and_the_conversation_goes_on() -> None:
    """On a terminal a refusal or a failed run is one sentence; the next line is read."""
    refused = problem(409, "run_active", "A run is going on in this session.")
    answers = api_with(reply(runs.ended()))
    with serving({**answers, POST: [refused, reply(runs.waiting())]}) as api, chatting(api) as seen:
        seen.until("> ")
        seen.type("one\n")
        seen.until("hango: A run is going on in this session.\r\n> ")
        seen.type("two\n")
        api.until(MESSAGES)
        seen.type("/exit\n")
        code, out = seen.ended()

    assert (code, out.splitlines()) == (0, ANSWER)


def test_ctrl_c_cancels_the_answer_and_stays() -> None:
    """Ctrl-C while an answer is under way cancels the run, unasked, and the next line is read."""
    cancelled = runs.failed("cancelled", "cancelled", "The run was cancelled.")
    answers = api_with(NEVER, reply(cancelled), **{CANCEL: reply(runs.waiting("running"))})
    with serving(answers) as api, chatting(api) as seen:
        seen.until("> ")
        seen.type("one\n")
        api.until(GET)
        seen.interrupt()
        seen.until("hango: The run was cancelled. (cancelled)\r\n> ")
        seen.type("/exit\n")
        code, out = seen.ended()

    assert (code, out.splitlines()[0]) == (0, FORTY)
    assert [one.line for one in api.asked if one.line.startswith("POST")] == [POST, CANCEL]


def test_ctrl_c_at_the_prompt_stays() -> None:
    """Ctrl-C while a line is typed ends nothing."""
    with serving(api_with(reply(runs.ended()))) as api, chatting(api) as seen:
        seen.until("> ")
        seen.interrupt()
        seen.until("> \r\n> ")
        seen.type("/exit\n")
        code, out = seen.ended()

    assert (code, out, bodies(api)) == (0, "", [])


def test_a_whole_terminal_has_a_history_of_lines() -> None:
    """With stdout on the terminal too, a line can be edited, and the last one comes back with the key up."""
    env = {"HANGO_API_URL": "", "HANGO_API_KEY": KEY, "TERM": "xterm"}
    with serving(api_with(reply(runs.ended()))) as api:
        env["HANGO_API_URL"] = api.url
        with terminal("chat", "--session", SESSION, with_stdout=True, **env) as seen:
            seen.until("> ")
            seen.type("How manx\x7fy?\n")
            seen.until("$0.0131")
            seen.type("\x1b[A\n")
            api.until(POST, times=2)
            seen.type("/exit\n")
            code, _ = seen.ended()

    assert (code, bodies(api)) == (0, [{"message": "How many?"}] * 2)


def test_results_of_the_clients_tools_are_asked_for() -> None:
    """A run that waits for the client's tools asks for each result and goes on with them."""
    asked = message(6, "assistant", call("order", n=50))
    waits = runs.ended("requires_action", stop_reason="tool_use")
    answers = api_with(reply(waits), reply(runs.ended()))
    with serving({**answers, MESSAGES: [page(asked), said(FORTY)]}) as api, chatting(api) as seen:
        seen.until("> ")
        seen.type("Order bolts\n")
        seen.until("result of order: ")
        seen.type("7781\n")
        seen.type("/exit\n")
        code, out = seen.ended()

    assert (code, out.splitlines()[:2]) == (0, ['→ order({"n":50})', "  yours to run and to answer: toolu_1"])
    assert out.splitlines()[-5:] == ANSWER
    assert bodies(api) == [{"message": "Order bolts"}, {"message": [result("toolu_1", "7781")]}]


def test_a_chat_takes_up_where_the_last_run_waits() -> None:
    """Where the session's last run waits for results, they are asked for at the start; none is no answer."""
    waits = runs.ended("requires_action", stop_reason="tool_use")
    there = runs.session(6, last_run={"id": RUN, "status": "requires_action", "created_at": "x"})
    answers = {**api_with(reply(waits)), THE_SESSION: reply(there), MESSAGES: page(message(6, "assistant", call("a")))}
    with serving(answers) as api, chatting(api) as seen:
        seen.until("result of a: ")
        seen.type("\n")
        seen.until("not answered: what you say next goes on without it.\r\n> ")
        seen.type("/exit\n")
        code, out = seen.ended()

    assert (code, out.splitlines()[1], bodies(api)) == (0, "  yours to run and to answer: toolu_1", [])


def test_a_pipe_cannot_answer_for_a_tool() -> None:
    """From a pipe, a run that waits for the client ends the conversation with the command that answers."""
    waits = runs.ended("requires_action", stop_reason="tool_use")
    with serving({**api_with(reply(waits)), MESSAGES: page(message(6, "assistant", call("a")))}) as api:
        code, _, err = piped(api, b"one\ntwo\n")

    assert (code, err) == (
        1,
        [
            "hango: the run waits for a tool of yours. Run it, then answer:",
            f"  {own_command()} run --session {SESSION} --result toolu_1=TEXT",
        ],
    )


@pytest.mark.parametrize(
    ("typed", "code", "told"),
    [
        ("y\n", 1, "hango: The run was cancelled. (cancelled)"),
        ("\n", 3, f"  {LOOK}"),
        (None, 3, f"  {LOOK}"),
    ],
)
def test_ctrl_c_in_a_run_asks(typed: str | None, code: int, told: str) -> None:
    """hango run: Ctrl-C asks whether to cancel; yes ends with 1, else the run goes on and the command ends with 3."""
    cancelled = runs.failed("cancelled", "cancelled", "The run was cancelled.")
    answers = api_with(NEVER, reply(cancelled), **{CANCEL: reply(runs.waiting("running"))})
    words = ("run", "--session", SESSION, "one")
    with serving(answers) as api, terminal(*words, HANGO_API_URL=api.url, HANGO_API_KEY=KEY) as seen:
        api.until(GET)
        seen.interrupt()
        seen.until("cancel the run? [y/N] ")
        if typed is None:
            seen.interrupt()
        else:
            seen.type(typed)
        ended, _ = seen.ended()

    assert (ended, seen.last_lines()[-1]) == (code, told)


def test_the_state_is_shown_on_a_terminal() -> None:
    """A terminal shows state, turns and seconds while it waits, and nothing of it in the end."""
    gets = [Answer(reply(runs.waiting("running", turns=2)).body, seconds=0.3), reply(runs.ended())]
    gets.insert(1, Answer(reply(runs.waiting("running", turns=2)).body, seconds=0.4))
    words = ("run", "--session", SESSION, "one")
    with serving(api_with(*gets)) as api, terminal(*words, HANGO_API_URL=api.url, HANGO_API_KEY=KEY) as seen:
        code, _ = seen.ended()

    assert code == 0
    assert "⠋ queued  0.0 s" in seen.screen
    assert " running  2 turns  0." in seen.screen
    assert seen.last_lines() == []
