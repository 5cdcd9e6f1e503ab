"""`hango context try`, `tries` and `cancel` against an API that answers as scripted."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import typer
from hypothesis import given
from hypothesis import strategies as st

from hango.cli import ad_hoc, replies, try_report
from hango.cli.own_command import own_command
from hango.cli.try_replies import Try
from tests.unit.cli import asked_tries as tries
from tests.unit.cli.api import KEY, Answer, Scripted, problem, reply, serving
from tests.unit.cli.asked_tries import BATCH, TRY, call, failed, text, usage
from tests.unit.cli.conftest import Ended, Run
from tests.unit.cli.snapshots import SESSION, part, snapshot

POST = f"POST /v1/sessions/{SESSION}/context/try"
CONTEXT = f"GET /v1/sessions/{SESSION}/context?count=estimate"
GET = f"GET /v1/tries/{TRY}"
CANCEL = f"POST /v1/tries/{TRY}/cancel"
FORTY = "Forty bolts are in drawer 3."
LOST = Answer(b"", lost=True)
NOT_THERE = problem(404, "not_found", "There is no such thing here.")
LISTED = f"`{own_command()} context tries --session ID` lists them."
LOOK = f"look at it: {own_command()} context try --show {TRY}"
FACTS = "end_turn · 3.4 s · 38,982 in (31,040 cached), 11 out · $0.0131 · anthropic/claude-sonnet-4-5"


def ask(api: Scripted, run: Run, *words: str, **env: str) -> Ended:
    return run("context", *words, HANGO_API_URL=api.url, HANGO_API_KEY=KEY, **env)


def asked(api: Scripted, start: str) -> list[Any]:
    """The bodies of the requests that begin so."""
    return [json.loads(one.body or b"null") for one in api.asked if one.line.startswith(start)]


def api_with(*gets: Mapping[str, Any], **more: Answer | list[Answer]) -> dict[str, Answer | list[Answer]]:
    """A session where a try is queued, and what is then seen of it."""
    return {POST: reply(tries.waiting()), GET: [reply(one) for one in gets], **more}


def test_a_try_prints_the_answer_and_what_it_took(run: Run) -> None:
    """hango context try prints the answer, stop reason, usage, cost, what was left out and what that saved."""
    request = {"exclude": ["message:41"], "include": ["*"], "replace": {"system:skills": "None."}, "model": tries.MODEL}
    left_out = ["system:memory:/memories/AGENTS.md", "message:41", "message:42"]
    one = tries.answered(text(FORTY), request=request, excluded=left_out, tokens_after=38982)
    with serving(api_with(tries.waiting("running"), one)) as api:
        ended = ask(api, run, "try", "--session", SESSION, "--exclude", "message:41")

    shown = [
        FORTY,
        "",
        FACTS,
        "context 41,210 → 38,982 tokens, 2,228 saved (estimated)",
        "left out: system:memory:/memories/AGENTS.md, message:41, message:42",
        "replaced: system:skills",
        "taken back: *",
    ]
    assert ended == Ended(0, "\n".join(shown) + "\n", "")
    assert [one.line for one in api.asked] == [POST, f"{GET}?wait=60", f"{GET}?wait=60"]


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({}, "41,210 tokens, no part changed"),
        ({"excluded": ["tool:a"]}, "41,210 tokens, as before"),
        ({"tokens_after": 41211}, "41,210 → 41,211 tokens, 1 more"),
    ],
)
def test_a_try_without_overrides_says_so(more: dict[str, Any], said: str, run: Run) -> None:
    """A try with another message or an earlier end alone has changed no part."""
    with serving({GET: reply(tries.answered(text(FORTY), **more))}) as api:
        ended = ask(api, run, "try", "--show", TRY)

    assert ended.out.splitlines()[3] == f"context {said} (estimated)"


def test_every_option_is_sent(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Exclusions, replacements, inclusions, message, until, model and label go out as the API takes them."""
    (tmp_path / "four.txt").write_text("Four\nboxes.\n", encoding="utf-8")
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO("é".encode())))
    words = ["--exclude", "message:41", "--exclude", "tool:a b", "--include", "system:agent"]
    words += ["--replace", "message:2=a=b", "--replace", f"message:3=@{tmp_path / 'four.txt'}"]
    words += ["--replace", "message:4=@@home", "--replace", "message:5=@-", "--replace", "message:6="]
    words += ["--message", "How many?", "--until", "7", "--model", "offline/extract", "--label", "no search"]
    shot = snapshot([part("system:agent", "x", 1)], [part("tool:a b", "x", 1)], [])
    with serving(api_with(tries.answered(text(FORTY)), **{CONTEXT: reply(shot)})) as api:
        ended = ask(api, run, "try", "--session", SESSION, *words)

    assert (ended.code, ended.err) == (0, "")
    assert asked(api, POST) == [
        {
            "exclude": ["message:41", "tool:a b"],
            "replace": {
                "message:2": "a=b",
                "message:3": "Four\nboxes.\n",
                "message:4": "@home",
                "message:5": "é",
                "message:6": "",
            },
            "include": ["system:agent"],
            "message": "How many?",
            "until": 7,
            "model": "offline/extract",
            "label": "no search",
        }
    ]


def test_a_part_that_is_not_there_is_named(run: Run) -> None:
    """A part of the agent that the context does not hold changes nothing: it is said, with ids that look alike."""
    shot = snapshot([part("system:agent", "x", 1)], [part("tool:search", "x", 1)], [])
    words = ["--exclude", "tool:serch", "--exclude", "tool:search", "--replace", "system:nope=x", "--include", "*"]
    with serving(api_with(tries.answered(text(FORTY)), **{CONTEXT: reply(shot)})) as api:
        ended = ask(api, run, "try", "--session", SESSION, *words)

    said = "not in the context, so nothing changed: "
    assert (ended.code, ended.err) == (0, f"{said}tool:serch. Alike: tool:search.\n{said}system:nope\n")
    assert [one.line for one in api.asked][:2] == [CONTEXT, POST]


@pytest.mark.parametrize(
    ("word", "parted"),
    [
        ("message:4=a=b", ("message:4", "a=b")),
        ("system:memory:/a=b", ("system:memory:/a", "b")),
        ("system:memory:/a=b=text", ("system:memory:/a=b", "text")),
        ("system:memory:/a=b=c=text", ("system:memory:/a=b=c", "text")),
        ("system:memory:/other=x=y", ("system:memory:/other", "x=y")),
    ],
)
def test_a_path_may_hold_an_equals_sign(word: str, parted: tuple[str, str]) -> None:
    """PART=TEXT parts at the first "=", but behind the whole path of a memory file that is there."""
    there = {"system:memory:/a", "system:memory:/a=b", "system:memory:/a=b=c"}

    assert ad_hoc.split(word, lambda: there) == parted


def test_parts_are_looked_up_only_where_they_decide(run: Run) -> None:
    """The context is read where a memory path could hold the sign, or might not be there, and never else."""
    shot = snapshot([part("system:memory:/a=b.md", "x", 1)], [], [])
    with serving(api_with(tries.answered(text(FORTY)), **{CONTEXT: reply(shot)})) as api:
        ask(api, run, "try", "--session", SESSION, "--replace", "system:memory:/a=b.md=New.")
        ask(api, run, "try", "--session", SESSION, "--replace", "message:1=x=y")

    assert [one["replace"] for one in asked(api, POST)] == [{"system:memory:/a=b.md": "New."}, {"message:1": "x=y"}]
    assert [one.line for one in api.asked].count(CONTEXT) == 2


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--session", SESSION, "--replace", "message:4"], "'message:4' is not PART=TEXT"),
        (["--session", SESSION, "--replace", "=x"], "'=x' is not PART=TEXT"),
        (["--session", SESSION, "--replace", "message:4=a", "--replace", "message:4=b"], "names message:4 twice"),
        ([], "Name a session by --session, or an earlier try by --show."),
        (["--session", SESSION, "--show", TRY], "Name a session by --session, or an earlier try by --show."),
        (["--show", TRY, "--exclude", "message:1"], "--show looks at an earlier try"),
        (["--session", SESSION, "--until", "0"], "'0' is not"),
        (["--session", SESSION, "--timeout", "soon"], "'soon' is not a whole number"),
    ],
)
def test_words_that_say_nothing(words: list[str], said: str, run: Run) -> None:
    """What cannot be meant is a usage error before anything is sent: exit 2."""
    with serving({}) as api:
        ended = ask(api, run, "try", *words, COLUMNS="200")

    assert (ended.code, ended.out, api.asked) == (2, "", [])
    assert said in " ".join(ended.err.split())


def test_a_file_that_cannot_be_read(run: Run, tmp_path: Path) -> None:
    """A file that is named and not there, or is no text, is said by name."""
    (tmp_path / "latin").write_bytes(b"\xff")
    with serving({}) as api:
        gone = ask(api, run, "try", "--session", SESSION, "--replace", f"message:1=@{tmp_path}/gone")
        latin = ask(api, run, "try", "--session", SESSION, "--replace", f"message:1=@{tmp_path}/latin")

    cannot = f"hango: {tmp_path}/gone cannot be read: no such file or directory. Name a file, or - for stdin.\n"
    assert gone == Ended(1, "", cannot)
    assert latin == Ended(1, "", f"hango: {tmp_path}/latin is not UTF-8. Write it again as UTF-8.\n")


def test_blocks_of_an_answer(run: Run) -> None:
    """Thinking is marked, tool calls are shown with their digits and never run, unknown blocks as they are."""
    raw = (
        b'[{"type":"thinking","thinking":"Count.\\nForty?","signature":"abc"},{"type":"redacted_thinking","data":"abcd"},'
        b'{"type":"tool_use","id":"toolu_1","name":"look","input":{"n":123456789012345678901234567890}},'
        b'{"type":"fresh","x":1.10}]'
    )
    one = json.dumps(tries.answered(stop_reason="tool_use")).encode().replace(b'"content": []', b'"content": ' + raw)
    with serving({POST: Answer(one)}) as api:
        ended = ask(api, run, "try", "--session", SESSION)

    assert ended.out.splitlines()[:-2] == [
        "thinking",
        "  Count.",
        "  Forty?",
        "  (signed, 3 characters)",
        "",
        "redacted_thinking",
        "  (encrypted, 4 characters)",
        "",
        "tool_use look (toolu_1), never run",
        "  {",
        '    "n": 123456789012345678901234567890',
        "  }",
        "",
        "fresh",
        "  {",
        '    "type": "fresh",',
        '    "x": 1.10',
        "  }",
        "",
    ]


def test_an_answer_that_is_no_longer_kept(run: Run) -> None:
    """After the retention the answer is gone, and what it took is still told."""
    one = tries.answered(answer=None, purged=True, request={"model": tries.MODEL, "replace": None})
    with serving({GET: reply(one)}) as api:
        ended = ask(api, run, "try", "--show", TRY)

    assert (ended.code, ended.out.splitlines()[:3]) == (0, ["(the answer is no longer kept)", "", FACTS])


@pytest.mark.parametrize(
    ("one", "said"),
    [
        (failed("failed", "provider_overloaded", "It is."), "the try failed: It is. (provider_overloaded)"),
        (failed("timed_out", "timeout", "Late."), "the try timed out: Late. (timeout)"),
        (failed("cancelled", "cancelled", "The try was cancelled."), "The try was cancelled. (cancelled)"),
        (failed("expired", "queue_expired", "No worker."), "the try expired: No worker. (queue_expired)"),
        (failed("lost", "worker_lost", "Gone."), "the try is lost: Gone. (worker_lost)"),
        (tries.waiting("cancelled", finished_at=tries.ENDED), "the try was cancelled."),
        (failed("failed", "internal", "\x1b[2J"), "the try failed: ⟨U+001B⟩[2J (internal)"),
    ],
)
def test_a_try_without_an_answer(one: dict[str, Any], said: str, run: Run) -> None:
    """A try that did not succeed ends with exit 1 and one sentence on stderr."""
    with serving(api_with(one)) as api:
        ended = ask(api, run, "try", "--session", SESSION)

    assert (ended.code, ended.err) == (1, f"hango: {said}\n")


def test_what_a_failed_call_took_is_told(run: Run) -> None:
    """A call that ran out of time may cost: its estimate is shown beside the sentence."""
    one = failed("timed_out", "timeout", "Late.", usage=usage(cache_read_tokens=0, cost_usd=None, estimated=True))
    with serving(api_with(one)) as api:
        ended = ask(api, run, "try", "--session", SESSION)

    facts = "3.4 s · 7,942 in, 11 out (estimated) · cost unknown · anthropic/claude-sonnet-4-5"
    assert ended.out.splitlines()[0] == facts


def test_json_is_the_reply_as_it_came(run: Run) -> None:
    """--json prints the API's last reply to the byte; the exit code and the sentence stay."""
    body = (
        json.dumps(failed("failed", "internal", "No.")).encode().replace(b'"attempts": 0', b'"attempts":  0,"x":1.10')
    )
    with serving({POST: reply(tries.waiting()), GET: Answer(body)}) as api:
        ended = ask(api, run, "try", "--session", SESSION, "--json")

    assert ended == Ended(1, body.decode() + "\n", "hango: the try failed: No. (internal)\n")


def test_no_wait(run: Run) -> None:
    """--no-wait prints the id, and how to look at it; nothing more is asked."""
    with serving(api_with()) as api:
        words = ask(api, run, "try", "--session", SESSION, "--no-wait")
        json_ = ask(api, run, "try", "--session", SESSION, "--no-wait", "--json")

    assert words == Ended(0, f"{TRY}\n", f"{LOOK}\n")
    assert (json_.code, json.loads(json_.out), json_.err) == (0, tries.waiting(), "")
    assert [one.line for one in api.asked] == [POST, POST]


def test_show_without_waiting(run: Run) -> None:
    """--show --no-wait tells the state of a try that goes on."""
    with serving({GET: reply(tries.waiting("running"))}) as api:
        ended = ask(api, run, "try", "--show", TRY, "--no-wait")

    assert ended == Ended(0, f"try {TRY} is running\n", "")


def test_a_try_of_another(run: Run) -> None:
    """A try that is not there for the caller is said by its id, and an id stays one piece of the path."""
    with serving({"GET": NOT_THERE}) as api:
        ended = ask(api, run, "try", "--show", "../x?y")

    assert ended == Ended(1, "", f"hango: no try ../x?y that you may read. {LISTED}\n")
    assert [one.line for one in api.asked] == ["GET /v1/tries/..%2Fx%3Fy", "GET /v1/try-batches/..%2Fx%3Fy"]


def test_an_id_of_the_other_kind(run: Run) -> None:
    """The id of a batch is no try's and the other way round: the command that shows it is named."""
    made = {"GET": NOT_THERE, GET: reply(tries.waiting()), f"GET /v1/try-batches/{BATCH}": reply(tries.batch([], []))}
    with serving(made) as api:
        a_batch = ask(api, run, "try", "--show", BATCH)
        a_try = ask(api, run, "compare", "--show", TRY)

    shown = f"{own_command()} context"
    assert a_batch == Ended(1, "", f"hango: this is a batch: use `{shown} compare --show {BATCH}`.\n")
    assert a_try == Ended(1, "", f"hango: this is a try: use `{shown} try --show {TRY}`.\n")


def test_a_lost_reply_is_asked_for_once_more(run: Run) -> None:
    """When the reply to the POST is lost it is sent again, once, under the same Idempotency-Key."""
    with serving({**api_with(tries.answered(text(FORTY))), POST: [LOST, reply(tries.waiting())]}) as api:
        again = ask(api, run, "try", "--session", SESSION)
    with serving({POST: LOST}) as away:
        twice = ask(away, run, "try", "--session", SESSION)

    keys = [one.idempotency_key for one in (*api.asked, *away.asked) if one.line == POST]
    assert (again.code, twice.code, len(keys), len(set(keys))) == (0, 4, 4, 2)
    assert (keys[0], keys[2]) == (keys[1], keys[3])
    sentence = f"hango: the API at {away.url} broke the connection off. Look at its log, then try again.\n"
    assert twice.err == sentence


def test_a_refusal_is_not_repeated(run: Run) -> None:
    """Quota, limits and broken rules are said once; nothing is sent again."""
    over = Answer(problem(429, "too_many_tries", "Many.").body, 429, "application/problem+json", {"Retry-After": "9"})
    for answer, said in [
        (problem(402, "quota_exceeded", "The quota is used up."), "hango: The quota is used up.\n"),
        (over, "hango: Many. Try again in 9 s.\n"),
        (
            problem(422, "replace_tool", "part 'tool:x' cannot be replaced."),
            "hango: part 'tool:x' cannot be replaced.\n",
        ),
    ]:
        with serving({POST: answer}) as api:
            assert ask(api, run, "try", "--session", SESSION) == Ended(1, "", said)
            assert len(api.asked) == 1


def test_tries_are_listed(run: Run) -> None:
    """hango context tries lists the tries of a session, without texts."""
    listed = [
        tries.waiting("running", label="漢字", sent=None),
        {**tries.answered(label="no search"), "answer": None},
        failed("failed", "provider_error", "No.", request={"model": tries.MODEL, "replace": ["message:1"]}),
    ]
    with serving({f"GET /v1/sessions/{SESSION}/tries": reply({"data": listed, "next_cursor": "c"})}) as api:
        wide = ask(api, run, "tries", "--session", SESSION)
        narrow = ask(api, run, "tries", "--session", SESSION, COLUMNS="80")
        widest = ask(api, run, "tries", "--session", SESSION, COLUMNS="140")
        json_ = ask(api, run, "tries", "--session", SESSION, "--limit", "3", "--json")

    assert wide.out.splitlines() == [
        "id                                    created           status         in     cost  label",
        f"{TRY}  2026-11-30 10:00  running                     漢字",
        f"{TRY}  2026-11-30 10:00  succeeded  38,982  $0.0131  no search",
        f"{TRY}  2026-11-30 10:00  failed",
    ]
    assert widest.out.splitlines()[2].endswith(f"succeeded  {tries.MODEL}  38,982  $0.0131  no search")
    assert narrow.out.splitlines()[2] == f"{TRY}  11-30 10:00  succeeded  no search"
    assert wide.err == f"there are more: {own_command()} context tries --session {SESSION} --limit 500\n"
    assert json.loads(json_.out)["data"] == listed
    assert api.asked[-1].line == f"GET /v1/sessions/{SESSION}/tries?limit=3"


def test_batches_are_listed(run: Run) -> None:
    """hango context tries --batches lists the batches; an empty list says what makes one."""
    two = [tries.answered(id="a", variant=0), tries.waiting(id="b", variant=1)]
    page = {"data": [tries.batch(two, ["base", "without x"], label="night")], "next_cursor": None}
    with serving({f"GET /v1/sessions/{SESSION}/try-batches": [reply(page), reply({"data": []})]}) as api:
        listed = ask(api, run, "tries", "--session", SESSION, "--batches")
        none = ask(api, run, "tries", "--session", SESSION, "--batches")

    assert listed.out.splitlines()[1] == f"{BATCH}  2026-11-30 10:00       1/2  running  night"
    assert none == Ended(0, "", f"no batches. `{own_command()} context compare` makes one.\n")


@pytest.mark.parametrize(
    ("answers", "said"),
    [
        ({CANCEL: reply(tries.waiting("cancelled"))}, f"try {TRY} is cancelled."),
        ({CANCEL: reply(tries.waiting("running"))}, f"try {TRY} is under way and ends in a moment."),
        ({CANCEL: reply(tries.answered(text(FORTY)))}, f"try {TRY} had ended: succeeded."),
        (
            {
                CANCEL: NOT_THERE,
                f"POST /v1/try-batches/{TRY}/cancel": reply(
                    tries.batch([tries.waiting("cancelled", variant=0), tries.answered(variant=0)], ["base"], id=TRY)
                ),
            },
            f"batch {TRY} has ended: 1 of 2 calls were cancelled.",
        ),
    ],
)
def test_cancel(answers: dict[str, Answer], said: str, run: Run) -> None:
    """hango context cancel takes the id of a try or of a batch, and says what became of it."""
    with serving(answers) as api:
        assert ask(api, run, "cancel", TRY) == Ended(0, "", f"{said}\n")
    assert {one.body for one in api.asked} == {b""}


def test_cancel_of_nothing(run: Run) -> None:
    """An id that is neither is said so."""
    with serving({"POST": NOT_THERE}) as api:
        assert ask(api, run, "cancel", "x/y") == Ended(
            1, "", f"hango: no try or batch x/y that you may cancel. {LISTED}\n"
        )


@given(words=st.text(), name=st.text(), width=st.integers(40, 200))
def test_nothing_of_an_answer_acts(words: str, name: str, width: int) -> None:
    """No control or direction character of an answer, a label or a model reaches the terminal."""
    one = tries.answered(text(words), call(name, x=words), stop_reason=name, excluded=[name])
    one["request"] = {"model": name}
    shown = list(try_report.lines(replies.read(json.dumps(one).encode(), Try), width))

    every = "".join(line.text for line in shown)
    assert not [letter for letter in every if letter in "\x1b\x7f\x9b\u202e\u2066\u200b\r\n" or letter < " "]


def test_split_refuses_what_has_no_part() -> None:
    """A word without a part is refused without a question to the API."""
    with pytest.raises(typer.BadParameter):
        ad_hoc.split("=", lambda: pytest.fail("asked"))
