"""`hango context compact` against an API that answers as scripted."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hango.cli import compact_report, replies
from hango.cli.own_command import line, own_command
from hango.cli.replies import Snapshot
from hango.cli.run_replies import SummaryPreview
from hango.cli.text import cells
from tests.unit.cli import asked_runs as runs
from tests.unit.cli.api import KEY, Answer, Scripted, problem, reply, serving
from tests.unit.cli.asked_runs import PREVIEW, preview
from tests.unit.cli.asked_tries import usage
from tests.unit.cli.conftest import Ended, Run
from tests.unit.cli.snapshots import SESSION, excluded, part, snapshot
from tests.unit.cli.terminal import terminal

THE_SESSION = f"GET /v1/sessions/{SESSION}"
POST = f"POST /v1/sessions/{SESSION}/summary/preview"
GET = f"GET /v1/summary-previews/{PREVIEW}"
PUT = f"PUT /v1/sessions/{SESSION}/summary"
DELETE = f"DELETE /v1/sessions/{SESSION}/summary"
CONTEXT = f"GET /v1/sessions/{SESSION}/context?count=estimate"
NOT_THERE = problem(404, "not_found", "There is no such thing here.")
COMPACT = ("context", "compact", "--session", SESSION)
APPLY = f"put it in force: {line(*COMPACT, '--apply', '--show', PREVIEW)}"
IN_FORCE = [
    "in force: the summary of the messages up to message:42, which stay in the session.",
    f"take it back: {line(*COMPACT, '--undo')}",
]
SHOT = snapshot(
    [part("system:agent", "You.", 612)],
    [],
    [
        part("summary", "Before.", 300, kind="summary", label="summary"),
        part("message:41", "a", 96, role="assistant"),
        excluded("message:42", "b", 190, role="user"),
        part("message:43", "c", 12, role="user"),
    ],
)


def ask(api: Scripted, run: Run, *words: str, **env: str) -> Ended:
    return run(*COMPACT, *words, HANGO_API_URL=api.url, HANGO_API_KEY=KEY, **env)


def api_with(*gets: dict[str, Any], **more: Answer | list[Answer]) -> dict[str, Answer | list[Answer]]:
    seen = [reply(one) for one in gets] or [reply(preview())]
    saved = reply({"text": "Forty bolts.", "through_seq": 42})
    return {POST: reply(preview("queued", text=None, usage=None)), GET: seen, CONTEXT: reply(SHOT), PUT: saved, **more}


def sent(api: Scripted, start: str) -> list[Any]:
    return [json.loads(one.body or b"null") for one in api.asked if one.line.startswith(start)]


def test_a_preview_shows_the_summary_and_saves_nothing(run: Run) -> None:
    """--preview shows what the summary covers, its text, what it no longer mentions, and what it saves."""
    one = preview(text="Forty bolts.\n\nIn drawer 3.", missing=["/stock/list.txt", "1,912", "https://x.example/\x1b"])
    with serving(api_with(preview("running"), one)) as api:
        ended = ask(api, run, "--preview")

    assert ended == Ended(
        0,
        "summary of the summary before it and message:41 to message:42\n"
        "\n"
        "Forty bolts.\n"
        "\n"
        "In drawer 3.\n"
        "\n"
        "no longer mentioned: 3\n"
        "  /stock/list.txt · 1,912 · https://x.example/⟨U+001B⟩\n"
        "\n"
        "38,982 in (31,040 cached), 11 out · $0.0131\n"
        "context 1,020 → about 635 tokens: 396 become about 11\n",
        f"{APPLY}\n",
    )
    assert [one.line for one in api.asked] == [POST, f"{GET}?wait=60", f"{GET}?wait=60", CONTEXT]
    assert api.asked[0].idempotency_key


def test_a_summary_that_mentions_all(run: Run) -> None:
    """Where nothing is missing it says so; of many missing things the first are shown and counted."""
    many = [f"/f/{n}" for n in range(130)]
    with serving(api_with(preview(), preview(missing=many))) as api:
        all_there = ask(api, run, "--preview")
        much = ask(api, run, "--preview")

    assert (
        all_there.out.splitlines()[4] == "no path, number, URL, identifier or command of the messages is missing in it"
    )
    assert "no longer mentioned: 130" in much.out
    assert "/f/99 · and 30 more\n" in much.out


def test_an_earlier_preview_costs_nothing_more(run: Run) -> None:
    """--show takes an earlier preview: no model is asked."""
    with serving(api_with()) as api:
        shown = ask(api, run, "--preview", "--show", PREVIEW)
        saved = ask(api, run, "--apply", "--show", PREVIEW, "--yes")

    assert (shown.code, saved.code, sent(api, "POST")) == (0, 0, [])
    assert sent(api, PUT) == [{"text": "Forty bolts.", "through_seq": 42}]
    assert saved.err.splitlines() == IN_FORCE
    assert saved.out == shown.out


def test_json_is_the_reply_as_it_came(run: Run) -> None:
    """--json prints the preview as it came; with --apply --yes both replies in one object."""
    body = json.dumps(preview()).encode().replace(b'"missing": ', b'"missing":  ')
    with serving({**api_with(), GET: Answer(body)}) as api:
        looked = ask(api, run, "--preview", "--json")
        saved = ask(api, run, "--apply", "--yes", "--json")

    assert looked == Ended(0, body.decode() + "\n", "")
    applied = {"preview": preview(), "summary": {"text": "Forty bolts.", "through_seq": 42}}
    assert (json.loads(saved.out), saved.err) == (applied, "")


def test_apply_without_a_terminal(run: Run) -> None:
    """Nobody is asked, so nothing is saved: exit 2, and the command that saves this one is named."""
    with serving(api_with()) as api:
        ended = ask(api, run, "--apply")

    said = "hango: there is no terminal to ask on, so nothing was saved. --yes saves without asking.\n"
    assert (ended.code, ended.err, sent(api, PUT)) == (2, f"{APPLY}\n{said}", [])


@pytest.mark.parametrize(("typed", "code"), [("y\n", 0), ("\n", 1), (None, 1)])
def test_apply_asks(typed: str | None, code: int) -> None:
    """--apply shows the summary and asks; only yes saves it."""
    with serving(api_with()) as api, terminal(*COMPACT, "--apply", HANGO_API_URL=api.url, HANGO_API_KEY=KEY) as seen:
        seen.until("put it in force? [y/N] ")
        if typed is None:
            seen.interrupt()
        else:
            seen.type(typed)
        ended, out = seen.ended()

    assert (ended, len(sent(api, PUT))) == (code, int(code == 0))
    assert "Forty bolts." in out.splitlines()
    assert seen.last_lines()[-2:] == (IN_FORCE if code == 0 else [APPLY, "hango: nothing was saved."])


@pytest.mark.parametrize(
    ("one", "said"),
    [
        (preview(text=None), "the preview's text is no longer kept. Ask for another one."),
        (preview(text=" \n"), "the model wrote no summary. Ask once more."),
        (
            preview("failed", text=None, error={"code": "provider_error", "message": "It is."}),
            "the preview failed: It is. (provider_error)",
        ),
        (preview("timed_out", text=None), "the preview timed out."),
    ],
)
@pytest.mark.parametrize("words", [["--preview"], ["--apply", "--yes"]])
def test_a_preview_without_a_text(words: list[str], one: dict[str, Any], said: str, run: Run) -> None:
    """A preview that brought no text ends with 1 and one sentence; nothing is saved."""
    with serving(api_with(one)) as api:
        ended = ask(api, run, *words)
        json_ = ask(api, run, *words, "--json")

    assert ended == Ended(1, "", f"hango: {said}\n")
    assert (json_.code, json.loads(json_.out), json_.err) == (1, one, f"hango: {said}\n")
    assert sent(api, PUT) == []


def test_a_refusal_is_said(run: Run) -> None:
    """What the API refuses is said in its words: nothing to summarize, a run going on, a session of another."""
    nothing = problem(422, "nothing_to_summarize", "There is nothing to summarize.")
    active = problem(409, "run_active", "A run is going on.")
    with serving({**api_with(), POST: [nothing, reply(preview()), NOT_THERE], PUT: active}) as api:
        short = ask(api, run, "--preview")
        busy = ask(api, run, "--apply", "--yes")
        gone = ask(api, run, "--preview")

    assert short == Ended(1, "", "hango: There is nothing to summarize.\n")
    assert (busy.code, busy.err) == (1, "hango: A run is going on.\n")
    assert gone.err == f"hango: no session {SESSION} that you may read. `{own_command()} sessions` lists them.\n"


def test_undo(run: Run) -> None:
    """--undo takes the last summary back and says what is in force then."""
    forty, twenty = {"text": "x", "through_seq": 40}, {"text": "y", "through_seq": 20}
    states = [forty, twenty, twenty, None, None, None]
    answers = {
        THE_SESSION: [reply(runs.session(43, summary=one)) for one in states],
        DELETE: [Answer(b"", 204), Answer(b"", 204), NOT_THERE, Answer(b"", 204)],
    }
    with serving(answers) as api:
        first = ask(api, run, "--undo")
        second = ask(api, run, "--undo")
        none = ask(api, run, "--undo")
        json_ = ask(api, run, "--undo", "--json")

    taken = "taken back: the summary of the messages up to message"
    assert first == Ended(0, "", f"{taken}:40.\nthe one before it, up to message:20, is in force again.\n")
    assert second == Ended(0, "", f"{taken}:20.\nits messages are sent again.\n")
    assert none == Ended(1, "", f"hango: session {SESSION} has no summary to take back.\n")
    assert json.loads(json_.out) == runs.session(43)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "Say one of --preview, --apply and --undo."),
        (["--preview", "--undo"], "Say one of --preview, --apply and --undo."),
        (["--undo", "--show", PREVIEW], "it takes no --show"),
        (["--apply", "--json"], "--apply takes it together with --yes"),
    ],
)
def test_words_that_say_nothing(words: list[str], said: str, run: Run) -> None:
    """What cannot be meant is a usage error before anything is sent: exit 2."""
    with serving({}) as api:
        ended = ask(api, run, *words, COLUMNS="200")

    assert (ended.code, ended.out, api.asked) == (2, "", [])
    assert said in " ".join(ended.err.split())


def test_ctrl_c_leaves_a_preview() -> None:
    """Nobody can cancel a preview: Ctrl-C leaves it and names the command that looks at it, exit 3."""
    words = (*COMPACT, "--preview")
    with (
        serving({**api_with(), GET: Answer(b"", seconds=60)}) as api,
        terminal(*words, HANGO_API_URL=api.url, HANGO_API_KEY=KEY) as seen,
    ):
        api.until(GET)
        seen.interrupt()
        code, out = seen.ended()

    look = f"  look at it: {line(*words, '--show', PREVIEW)}"
    assert (code, out, seen.last_lines()[-2:]) == (3, "", ["hango: the preview was not waited for and goes on.", look])


@given(words=st.text(), width=st.integers(40, 200))
def test_nothing_of_a_summary_acts(words: str, width: int) -> None:
    """No control or direction character of a summary or of what it misses reaches the terminal."""
    one = preview(text=words, missing=[words, words], usage=usage(cost_usd=None))
    seen = replies.read(json.dumps(one).encode(), SummaryPreview)
    shown = list(compact_report.lines(seen, replies.read(json.dumps(SHOT).encode(), Snapshot), width))

    every = "".join(line.text for line in shown)
    assert not [letter for letter in every if letter in "\x1b\x7f\x9b\u202e\u2066\u200b\r\n" or letter < " "]
    assert all(cells(line.text) <= width for line in shown if line.text.startswith("  /"))
