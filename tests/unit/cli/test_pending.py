"""The wait for a try: how patient it is, what is shown meanwhile, and what Ctrl-C does."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from typing import Any

import pytest

from hango.cli.own_command import own_command
from tests.unit.cli import asked_tries as tries
from tests.unit.cli.api import KEY, Answer, Scripted, problem, reply, serving
from tests.unit.cli.asked_tries import TRY, text
from tests.unit.cli.conftest import Ended, Run
from tests.unit.cli.snapshots import SESSION
from tests.unit.cli.terminal import terminal

POST = f"POST /v1/sessions/{SESSION}/context/try"
GET = f"GET /v1/tries/{TRY}"
CANCEL = f"POST /v1/tries/{TRY}/cancel"
FORTY = "Forty bolts are in drawer 3."
LOST = Answer(b"", lost=True)
NOT_THERE = problem(404, "not_found", "There is no such thing here.")
LOOK = f"look at it: {own_command()} context try --show {TRY}"


def ask(api: Scripted, run: Run, *words: str) -> Ended:
    return run("context", "try", "--session", SESSION, *words, HANGO_API_URL=api.url, HANGO_API_KEY=KEY)


def test_a_wait_that_runs_out(run: Run) -> None:
    """After --timeout seconds: exit 3, the try goes on, and the command that looks at it is named."""
    with serving({POST: reply(tries.waiting()), GET: reply(tries.waiting("running"))}) as api:
        words = ask(api, run, "--timeout", "1")
        json_ = ask(api, run, "--timeout", "1", "--json")

    said = f"hango: the try did not end in time and goes on.\n  {LOOK}\n"
    assert words == Ended(3, "", said)
    assert (json_.code, json.loads(json_.out), json_.err) == (3, tries.waiting("running"), said)
    assert {one.line for one in api.asked} == {POST, f"{GET}?wait=1"}


def test_a_wait_is_patient(run: Run) -> None:
    """While it waits, an API that drops connections, is busy or lost a service is asked again."""
    busy = Answer(problem(429, "rate_limited", "Many.").body, 429, "application/problem+json", {"Retry-After": "0"})
    away = Answer(problem(503, "unavailable", "Away.").body, 503, "application/problem+json", {"Retry-After": "0"})
    seen = [LOST, busy, away, LOST, reply(tries.waiting("running")), LOST, reply(tries.answered(text(FORTY)))]
    with serving({POST: reply(tries.waiting()), GET: seen}) as api:
        ended = ask(api, run)

    assert (ended.code, ended.out.splitlines()[0], ended.err) == (0, FORTY, "")
    assert len(api.asked) == 8


def test_a_wait_that_cannot_go_on_names_the_try(run: Run) -> None:
    """What ends a wait for good is said with the command that looks at the try later."""
    with serving({POST: reply(tries.waiting()), GET: problem(500, "internal", "Broken.")}) as api:
        broken = ask(api, run)
    with serving({POST: reply(tries.waiting()), GET: NOT_THERE}) as api:
        gone = ask(api, run)

    assert broken == Ended(1, "", f"hango: Broken.\n  {LOOK}\n")
    assert gone == Ended(1, "", "hango: the try is gone: its session was deleted, or it is too old to be kept.\n")


def test_the_state_is_shown_on_a_terminal() -> None:
    """A terminal shows state and seconds while it waits, and nothing of it in the end."""
    gets = [Answer(reply(tries.waiting("running")).body, seconds=0.4), reply(tries.answered(text(FORTY)))]
    with (
        serving({POST: reply(tries.waiting()), GET: gets}) as api,
        terminal("context", "try", "--session", SESSION, HANGO_API_URL=api.url, HANGO_API_KEY=KEY) as seen,
    ):
        code, out = seen.ended()

    assert (code, out.splitlines()[0]) == (0, FORTY)
    assert "⠋ queued 0.0 s" in seen.screen
    assert " running 0." in seen.screen
    assert seen.last_lines() == []


@pytest.mark.parametrize("answer", [tries.waiting("cancelled"), tries.waiting("running")])
def test_ctrl_c_cancels_when_the_person_says_so(answer: dict[str, Any]) -> None:
    """Ctrl-C asks on stderr whether to cancel; yes cancels the call, sees it end, and exits 1."""
    gets = [Answer(b"", seconds=60), reply(tries.waiting("cancelled"))]
    with (
        serving({POST: reply(tries.waiting()), GET: gets, CANCEL: reply(answer)}) as api,
        terminal("context", "try", "--session", SESSION, HANGO_API_URL=api.url, HANGO_API_KEY=KEY) as seen,
    ):
        api.until(GET)
        seen.interrupt()
        seen.until("cancel the try? [y/N] ")
        seen.type("y\n")
        code, _ = seen.ended()

    assert (code, seen.last_lines()[-1]) == (1, "hango: the try was cancelled.")
    assert [one.line for one in api.asked if one.line.startswith("POST")] == [POST, CANCEL]


@pytest.mark.parametrize("typed", ["\n", "n\n", None])
def test_ctrl_c_leaves_it_else(typed: str | None) -> None:
    """No, nothing or a second Ctrl-C leaves the try and names how to look at it: exit 3."""
    with (
        serving({POST: reply(tries.waiting()), GET: Answer(b"", seconds=60)}) as api,
        terminal("context", "try", "--session", SESSION, HANGO_API_URL=api.url, HANGO_API_KEY=KEY) as seen,
    ):
        api.until(GET)
        seen.interrupt()
        seen.until("cancel the try? [y/N] ")
        if typed is None:
            seen.interrupt()
        else:
            seen.type(typed)
        code, out = seen.ended()

    assert (code, out) == (3, "")
    assert seen.last_lines()[-2:] == ["hango: the try was not waited for and goes on.", f"  {LOOK}"]
    assert [one.line for one in api.asked if one.line.startswith("POST")] == [POST]


def test_ctrl_c_without_a_terminal() -> None:
    """Without a terminal nobody is asked: the try is left, exit 3."""
    env = {"HANGO_API_KEY": KEY, "PATH": "/usr/bin:/bin"}
    with serving({POST: reply(tries.waiting()), GET: Answer(b"", seconds=60)}) as api:
        process = subprocess.Popen(
            [sys.executable, "-m", "hango", "context", "try", "--session", SESSION],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**env, "HANGO_API_URL": api.url},
        )
        api.until(GET)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=30)

    said = f"hango: the try was not waited for and goes on.\n  {LOOK}\n"
    assert (process.returncode, out, err.decode()) == (3, b"", said)


def test_ctrl_c_while_the_request_is_out() -> None:
    """Ctrl-C before the API has answered: the try may have been accepted, and the command that tells is named."""
    with (
        serving({POST: Answer(b"", seconds=60)}) as api,
        terminal("context", "try", "--session", SESSION, HANGO_API_URL=api.url, HANGO_API_KEY=KEY) as seen,
    ):
        api.until(POST)
        seen.interrupt()
        code, out = seen.ended()

    assert (code, out) == (3, "")
    assert seen.last_lines()[-2:] == [
        "hango: stopped while the try was being sent: it may have been accepted.",
        f"  see whether it was: {own_command()} context tries --session {SESSION}",
    ]
