"""The commands for overrides against an API that answers as scripted: what goes out, what is printed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hango.cli import override_report, replies
from hango.cli.override_sets import Change, Level
from hango.cli.replies import Overrides, SavedOverride
from tests.unit.cli.api import KEY, Answer, Scripted, problem, reply, serving
from tests.unit.cli.conftest import Ended, Run
from tests.unit.cli.snapshots import AGENT, SESSION, excluded, part, snapshot

OF_AGENT = f"/v1/agents/{AGENT}/context-overrides"
OF_SESSION = f"/v1/sessions/{SESSION}/context-overrides"
CONTEXT = f"GET /v1/sessions/{SESSION}/context?count=estimate"
EMPTY: dict[str, Any] = {"overrides": [], "added": [], "stale": []}
CHANGED = problem(412, "precondition_failed", "The overrides changed since they were read.")


def stored(*rows: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {**EMPTY, "overrides": [{"replacement": None, "stale": False, **row} for row in rows], **more}


def tagged(value: Any, tag: str = '"a"') -> Answer:
    return Answer(json.dumps(value).encode(), headers={"ETag": tag})


def api_with(**answers: Answer) -> dict[str, Answer]:
    """A session with two empty sets, and what differs."""
    return {
        f"GET /v1/sessions/{SESSION}": reply({"agent_id": AGENT}),
        CONTEXT: reply(snapshot([], [], [part("message:1", "Bolts?", 12, role="user")])),
        f"GET {OF_AGENT}": tagged(EMPTY),
        f"GET {OF_SESSION}": tagged(EMPTY),
        f"PUT {OF_AGENT}": tagged(EMPTY),
        f"PUT {OF_SESSION}": tagged(EMPTY),
        **answers,
    }


def ask(api: Scripted, run: Run, command: str, *words: str, **env: str) -> Ended:
    return run("context", command, "--session", SESSION, *words, HANGO_API_URL=api.url, HANGO_API_KEY=KEY, **env)


def puts(api: Scripted) -> list[tuple[str, str | None, Any]]:
    """Each PUT: its address, its If-Match, its body."""
    return [
        (one.line.removeprefix("PUT "), one.if_match, json.loads(one.body))
        for one in api.asked
        if one.line.startswith("PUT ")
    ]


def test_one_level_is_one_put_with_if_match(run: Run) -> None:
    """Only the set that changes is put, with what was in it and the tag it had."""
    there = stored({"part": "message:2", "action": "replace", "replacement": "Forty."})
    with serving(api_with(**{f"GET {OF_SESSION}": tagged(there, '"t1"')})) as api:
        ask(api, run, "exclude", "message:1", "message:1")

    sent = [{"part": "message:2", "action": "replace", "replacement": "Forty."}]
    assert puts(api) == [(OF_SESSION, '"t1"', {"overrides": [*sent, {"part": "message:1", "action": "exclude"}]})]


def test_two_levels_are_checked_before_one_is_saved(run: Run) -> None:
    """Where both sets change, both are checked first: a refusal of the second leaves the first as it was."""
    refusal = problem(422, "unknown_part", "The part 'message:9' does not exist.")
    with serving(api_with(**{f"PUT {OF_SESSION}": refusal})) as api:
        ended = ask(api, run, "exclude", "tool:look", "message:9")

    assert (ended.code, ended.err) == (1, "hango: The part 'message:9' does not exist.\n")
    assert [address for address, _, _ in puts(api)] == [f"{OF_AGENT}?check=true", f"{OF_SESSION}?check=true"]


def test_one_retry_after_a_412(run: Run) -> None:
    """A set that somebody changed meanwhile is read and put once more; then the refusal is told."""
    with serving(api_with(**{f"PUT {OF_SESSION}": CHANGED})) as api:
        ended = ask(api, run, "exclude", "message:1")

    assert (ended.code, ended.out, ended.err) == (1, "", "hango: The overrides changed since they were read.\n")
    assert [one.line for one in api.asked if OF_SESSION in one.line] == [f"GET {OF_SESSION}", f"PUT {OF_SESSION}"] * 2


def test_json_is_the_replies_as_they_came(run: Run) -> None:
    """--json prints the API's replies to the byte, one a line: the agent's, then the session's."""
    odd = {f"PUT {OF_AGENT}": Answer(b'{"overrides":[],  "a":1.10}'), f"PUT {OF_SESSION}": Answer(b'{"overrides":[] }')}
    with serving(api_with(**odd)) as api:
        ended = ask(api, run, "exclude", "message:1", "tool:look", "--json")

    assert ended == Ended(0, '{"overrides":[],  "a":1.10}\n{"overrides":[] }\n', "")


def test_what_is_so_already_is_not_put(run: Run) -> None:
    """A change that changes nothing sends nothing, says so, and exits 0."""
    there = stored(
        {"part": "message:1", "action": "exclude"}, {"part": "message:2", "action": "replace", "replacement": "Forty."}
    )
    with serving(api_with(**{f"GET {OF_SESSION}": tagged(there)})) as api:
        excluded_ = ask(api, run, "exclude", "message:1")
        replaced = ask(api, run, "replace", "message:2", "--text", "Forty.")

    assert excluded_ == Ended(0, "", "message:1 is excluded already.\n")
    assert replaced == Ended(0, "", "message:2 is replaced by this text already.\n")
    assert puts(api) == []


def test_what_needs_attention_is_said(run: Run) -> None:
    """A part that is not there, another override that drifted, and a new problem are each a line on stderr."""
    skills = part("system:skills", "Skills", 640, override="replace", drifted=True)
    before = snapshot([skills], [part("tool:bone", "", 0), part("tool:search", "", 0)], [])
    trouble = [{"part": "message:4", "reason": "ends_with_assistant", "message": "It ends with the assistant."}]
    there = stored({"part": "system:skills", "action": "replace", "replacement": "None."})
    now = stored({"part": "system:skills", "action": "replace"}, {"part": "tool:gone", "action": "exclude"})
    answers = api_with(
        **{
            CONTEXT: reply(before),
            f"GET {OF_AGENT}": tagged(there),
            f"PUT {OF_AGENT}": tagged({**now, "stale": ["tool:gone"]}),
            f"POST /v1/sessions/{SESSION}/context/preview": reply({**before, "problems": trouble}),
        }
    )
    with serving(answers) as api:
        ended = ask(api, run, "exclude", "tool:gone", "--dry-run")

    assert ended == Ended(
        0,
        "total 640 tokens, as before (estimated)\n",
        "tool:gone is not in the context now, so nothing changes: its override waits until it is. Alike: tool:bone.\n"
        "system:skills has changed since its override was saved: look at it.\n"
        "message:4: It ends with the assistant.\n"
        "nothing was saved. Without --dry-run it is.\n",
    )


def test_clear_says_what_is_gone(run: Run) -> None:
    """How many overrides of which set are taken back, whose texts are gone, and where that acts."""
    of_session = stored(
        {"part": "message:1", "action": "exclude"}, {"part": "message:2", "action": "replace", "replacement": "Forty."}
    )
    sets = {
        f"GET {OF_AGENT}": tagged(stored({"part": "tool:look", "action": "exclude"})),
        f"GET {OF_SESSION}": tagged(of_session),
        f"POST /v1/sessions/{SESSION}/context/preview": reply(snapshot([], [], [])),
    }
    with serving(api_with(**sets)) as api:
        done = ask(api, run, "clear").err.splitlines()
        looked = ask(api, run, "clear", "--keep-agent", "--dry-run").err.splitlines()

    session = f"back: 2 overrides of session {SESSION}, with 1 replacement text, kept nowhere else."
    agent = f"back: 1 override of agent {AGENT}; this acts in every session of the agent."
    assert done == [f"taken {agent}", f"taken {session}"]
    assert looked == [f"would be taken {session}", "nothing was saved. Without --dry-run it is."]


def test_the_report() -> None:
    """A row for each part that changes, what it costs or saves, and where the cache is written anew."""
    memory = part("system:memory", "Away on Mondays", 1912, cached_prefix=True)
    before = snapshot(
        [memory], [], [part("message:1", "Bolts?", 12, role="user"), part("message:2", "", 9, role="user")]
    )
    swapped = part("message:1", "漢字", 2500, role="user", override="replace", tokens_original=12)
    pair = {"paired": True, "paired_with": "message:\x1b[2J"}
    partner = excluded("message:2", "", 9, role="user", override="none", **pair)
    after = snapshot([excluded("system:memory", "", 1912)], [], [swapped, partner])

    lines = override_report.lines(
        replies.read(json.dumps(before).encode(), replies.Snapshot),
        replies.read(json.dumps(after).encode(), replies.Snapshot),
        60,
    )

    assert [line.text for line in lines] == [
        " [ ] system:memory  1,912  excluded",
        " [~] message:1      2,500  replaced, 12 before",
        " [ ] message:2          9  left out with message:⟨U+001B⟩[2J",
        "total 1,933 → 2,500 tokens, 567 more (estimated)",
        "the cached prefix changes at system:memory: the next call writes it anew",
    ]


def test_a_long_report_is_cut() -> None:
    """At most 50 rows are shown, and how many more there are."""
    messages = [part(f"message:{n}", "", 4, role="user") for n in range(1, 1101)]
    gone = [excluded(f"message:{n}", "", 4, role="user") for n in range(1, 1101)]
    shots = [replies.read(json.dumps(snapshot([], [], one)).encode(), replies.Snapshot) for one in (messages, gone)]

    lines = [line.text for line in override_report.lines(shots[0], shots[1], 100)]

    assert len(lines) == 52
    assert lines[50:] == [" … and 1,050 more", "total 4,400 → 0 tokens, 4,400 saved (estimated)"]


def test_a_change_of_a_set() -> None:
    """A change keeps order, takes the place of what was saved for a part, and stays in its level."""
    saved = [SavedOverride("message:1", "exclude"), SavedOverride("message:2", "replace", "Forty.")]
    change = Change(exclude=("message:2", "tool:look"), replace={"summary": "Short."}, include=("message:1",))

    of_session = [SavedOverride("message:2", "exclude"), SavedOverride("summary", "replace", "Short.")]
    assert change.of(saved, Level.SESSION) == of_session
    assert change.of([], Level.AGENT) == [SavedOverride("tool:look", "exclude")]
    assert change.levels == [Level.AGENT, Level.SESSION]
    assert Change(clear=(Level.SESSION,)).of(saved, Level.SESSION) == []
    assert Overrides(()).overrides == ()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["exclude"], "Missing argument 'PART...'"),
        (["replace", "message:1"], "Give the text by one of --text, --file and --editor."),
        (["replace", "message:1", "--text", "x", "--editor"], "Give the text by one of --text, --file and --editor."),
        (["replace", "message:1", "message:2", "--text", "x"], "unexpected extra argument"),
    ],
)
def test_wrong_words(words: list[str], said: str, run: Run) -> None:
    """Exit 2 and a sentence for words that a command does not take."""
    ended = run("context", words[0], "--session", SESSION, *words[1:])

    assert (ended.code, ended.out) == (2, "")
    assert said in ended.err


@pytest.mark.parametrize(
    ("text", "editor", "said"),
    [
        (None, "true", "message:1 cannot be replaced. Exclude it instead."),
        ("Bolts?", "true", "the text was not changed, so nothing was saved."),
        ("Bolts?", "false", "the editor 'false' ended with 1. Nothing was changed."),
        (
            "Bolts?",
            "/no/such",
            "the editor '/no/such' cannot be run. Set EDITOR, or use --text or --file.",
        ),
        ("Bolts?", "'", 'the editor "\'" cannot be run. Set EDITOR, or use --text or --file.'),
    ],
)
def test_an_editor_that_changes_nothing(text: str | None, editor: str, said: str, run: Run) -> None:
    """Without a text to replace, a change or a working editor nothing is sent."""
    full = {
        "id": "message:1",
        "kind": "message",
        "label": "#1 user",
        "content": [],
        "tokens": 12,
        "included": True,
        "override": "none",
        "text": text,
    }
    with serving(api_with(**{f"GET /v1/sessions/{SESSION}/context?full=": reply(full)})) as api:
        ended = ask(api, run, "replace", "message:1", "--editor", EDITOR=editor, VISUAL="")

    assert ended == Ended(1, "", f"hango: {said}\n")
    assert puts(api) == []


def test_a_file_that_is_no_text(run: Run, tmp_path: Path) -> None:
    """A file that is not there or not UTF-8 is one sentence."""
    file = tmp_path / "picture.png"
    file.write_bytes(b"\x89PNG\xff")
    with serving({}) as api:
        bad = ask(api, run, "replace", "message:1", "--file", str(file))
        none = ask(api, run, "replace", "message:1", "--file", str(tmp_path / "none"))

    assert bad == Ended(1, "", f"hango: {file} is not UTF-8. Write it again as UTF-8.\n")
    assert (none.code, api.asked) == (1, [])
