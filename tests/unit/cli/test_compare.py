"""`hango context compare` against an API that answers as scripted: the variants, the question, the rows."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hango.cli import answers, compare_csv, compare_rows, compare_table, compare_variants, replies
from hango.cli.compare_rows import Row
from hango.cli.exits import Failure
from hango.cli.own_command import own_command
from hango.cli.text import cells
from hango.cli.try_replies import Batch, Try
from tests.unit.cli import asked_tries as tries
from tests.unit.cli.api import KEY, Answer, Scripted, problem, reply, serving
from tests.unit.cli.asked_tries import BATCH, MODEL, call, failed, text
from tests.unit.cli.conftest import Ended, Run
from tests.unit.cli.snapshots import FAMILY, SESSION, part, snapshot
from tests.unit.cli.terminal import terminal

POST = f"POST /v1/sessions/{SESSION}/context/try-batches"
CONTEXT = f"GET /v1/sessions/{SESSION}/context?count=estimate"
CHECK = f"{POST}?check=true"
GET = f"GET /v1/try-batches/{BATCH}"
GOLDEN = Path(__file__).parent / "golden"
MEMORY = "system:memory:/memories/AGENTS.md"
SHOT = snapshot([part(MEMORY, "x", 1)], [part("tool:a", "x", 1)], [])
LABELS = ["base", f"without {MEMORY}", "without tool:漢字", "all failed"]
COSTS = {"calls": 10, "input_tokens": 309075, "output_tokens_most": 61440, "cost_usd": {"least": 0.9312, "most": 1.85}}
ESTIMATE = "2 variants × 5 = 10 calls, estimated: 309,075 tokens in, at most 61,440 out, $0.9312 to $1.85.\n"
LEFT = "left of this month's quota: 1,200,000 tokens.\n"


def asks(at: int) -> dict[str, Any]:
    return {"exclude": [MEMORY] if at else [], "include": [], "replace": [], "model": MODEL}


def workshop() -> list[dict[str, Any]]:
    """Five calls of each variant: alike, of two kinds, with a tool and a failure, and none that brought an answer."""

    def one(at: int, n: int, *blocks: dict[str, Any], **more: Any) -> dict[str, Any]:
        ended = f"2026-11-30T10:00:0{4 + n % 3}.400000Z"
        return tries.answered(*blocks, id=f"{at}-{n}", variant=at, request=asks(at), finished_at=ended, **more)

    def no(at: int, n: int, status: str, code: str) -> dict[str, Any]:
        return failed(status, code, "No.", id=f"{at}-{n}", variant=at, request=asks(at))

    odd = text(f"\n漢字 {FAMILY} \x1b[2J\u202eevil\nmore")
    look = {"stop_reason": "tool_use"}
    return [
        *(one(0, n, text("Forty bolts are in drawer 3.\nTwo boxes are open.")) for n in range(5)),
        *(one(1, n, text("I do not know." if n else "Ask the owner.")) for n in range(5)),
        *(one(2, n, odd, call("read_file", path="shelf-a"), **look) for n in range(3)),
        one(2, 3, odd),
        no(2, 4, "failed", "provider_overloaded"),
        *(no(3, n, "failed", "provider_overloaded") for n in range(4)),
        no(3, 4, "timed_out", "timeout"),
    ]


def compared(*of: dict[str, Any], labels: list[str] | None = None) -> dict[str, Answer | list[Answer]]:
    """An API where a batch of these tries has ended."""
    found = list(of) or workshop()
    batch = tries.batch(found, labels or LABELS)
    return {
        CONTEXT: reply(SHOT),
        CHECK: reply({**COSTS, "quota_left": 1_200_000}),
        POST: reply(batch),
        GET: reply(batch),
        **{f"GET /v1/tries/{one['id']}": reply(one) for one in found},
    }


def rows() -> list[Row]:
    made = [replies.read(json.dumps(one).encode(), Try) for one in workshop()]
    batch = replies.read(json.dumps(tries.batch(workshop(), LABELS)).encode(), Batch)
    return compare_rows.rows(batch, made)


def ask(api: Scripted, run: Run, *words: str, **env: str) -> Ended:
    return run("context", "compare", *words, HANGO_API_URL=api.url, HANGO_API_KEY=KEY, **env)


def sent(api: Scripted, line: str = POST) -> list[Any]:
    return [json.loads(one.body) for one in api.asked if one.line == line]


def variant(label: str, **more: Any) -> dict[str, Any]:
    return {"label": label, "exclude": [], "replace": {}, "include": [], **more}


@pytest.mark.parametrize("width", [60, 80, 140])
def test_the_table(width: int) -> None:
    """One row a variant: calls, tokens in, cost, seconds, stop reason, tools, distinct answers, the first line."""
    shown = "\n".join(line.text for line in compare_table.lines(rows(), width)) + "\n"

    assert shown == (GOLDEN / f"compare_{width}.txt").read_text(encoding="utf-8")
    assert max(cells(line) for line in shown.splitlines()) <= width


def test_a_comparison(run: Run) -> None:
    """The estimate is said first, one batch is sent, and the rows are printed; failures end with exit 1."""
    with serving(compared()) as api:
        ended = ask(api, run, "--session", SESSION, "--without", MEMORY, "--repeats", "5", "--yes", COLUMNS="80")

    said = "hango: 6 of 20 calls brought no answer: provider_overloaded 5, timeout 1.\n"
    golden = (GOLDEN / "compare_80.txt").read_text(encoding="utf-8")
    assert ended == Ended(1, golden, ESTIMATE + LEFT + said)
    wanted = {"variants": [variant("base"), variant(f"without {MEMORY}", exclude=[MEMORY])], "repeats": 5}
    assert (sent(api, CHECK), sent(api)) == ([wanted], [wanted])
    lines = [(one.line, one.idempotency_key is None) for one in api.asked[:3]]
    assert lines == [(CONTEXT, True), (CHECK, True), (POST, False)]


def test_all_answers_end_well(run: Run) -> None:
    """When every call brought an answer the exit code is 0 and nothing is added."""
    one = tries.answered(text("Forty."), id="a", variant=0, request=asks(0))
    with serving(compared(one, labels=["base"])) as api:
        ended = ask(api, run, "--show", BATCH, COLUMNS="80")

    assert (ended.code, ended.err) == (0, "")
    assert ended.out.splitlines()[1:] == [
        "base       1/1     38,982  $0.0131      3.4  end_turn  –",
        "  Forty.",
    ]


def test_what_every_option_sends(run: Run) -> None:
    """Every variant and the base get the message, the cut and each of the models; parts named twice count once."""
    with serving(compared()) as api:
        words = ["--without", "tool:a", "--without", "tool:a", "--message", "How many?", "--until", "7"]
        ask(api, run, "--session", SESSION, *words, "--model", "a/b", "--model", "c/d", "--label", "night", "-y")

    more = {"message": "How many?", "until": 7}
    assert sent(api) == [
        {
            "variants": [
                variant("base · a/b", **more, model="a/b"),
                variant("without tool:a · a/b", **more, exclude=["tool:a"], model="a/b"),
                variant("base · c/d", **more, model="c/d"),
                variant("without tool:a · c/d", **more, exclude=["tool:a"], model="c/d"),
            ],
            "repeats": 1,
            "label": "night",
        }
    ]


def test_models_alone_are_compared(run: Run) -> None:
    """Two models and no other variant: the unchanged context is asked of each."""
    with serving(compared()) as api:
        ask(api, run, "--session", SESSION, "--message", "How many?", "--model", "a/b", "--model", "c/d", "--yes")

    assert sent(api)[0]["variants"] == [
        variant("base · a/b", message="How many?", model="a/b"),
        variant("base · c/d", message="How many?", model="c/d"),
    ]
    assert [one.line for one in api.asked][:2] == [CHECK, POST]


def test_a_file_of_variants(run: Run, tmp_path: Path) -> None:
    """A line of FILE is a variant; its own words win over the options; it gets a name where it has none."""
    lines = [
        '{"label": "no tools", "exclude": ["tool:a", "tool:b"], "message": "Mine?", "until": 3}',
        "",
        '{"replace": {"message:4": "Four\u2028boxes."}, "include": ["system:agent"]}',
        '{"model": "offline/extract"}',
    ]
    (tmp_path / "v.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    with serving(compared()) as api:
        ask(api, run, str(tmp_path / "v.jsonl"), "--session", SESSION, "--message", "Theirs?", "--yes")

    replaced = {"replace": {"message:4": "Four\u2028boxes."}, "include": ["system:agent"]}
    assert sent(api)[0]["variants"] == [
        variant("base", message="Theirs?"),
        variant("no tools", exclude=["tool:a", "tool:b"], message="Mine?", until=3),
        variant("replaced message:4; with system:agent", message="Theirs?", **replaced),
        variant("line 4", message="Theirs?", model="offline/extract"),
    ]


@pytest.mark.parametrize(
    ("text_", "said"),
    [
        ('{"exclude": ["a"]}\n{"exclud": []}', ", line 2: 'exclud' is no field of a variant. It takes label, exclude,"),
        ('{"exclude": "message:4"}', ", line 1: exclude is not a list of part ids."),
        ('{"exclude": [4]}', ", line 1: exclude is not a list of part ids."),
        ('{"replace": {"message:4": null}}', ", line 1: replace is not an object of part ids and texts."),
        ('{"until": true}', ", line 1: until is not the number of a message."),
        ('{"label": null}', ", line 1: label is not a text."),
        ('\n{"label": "a",}', ", line 2 is no JSON at column "),
        ('{"label": "a", "label": "b"}', ", line 1 is no JSON. Write one JSON object a line."),
        ('{"until": NaN}', ", line 1 is no JSON. Write one JSON object a line."),
        ("[" * 100_000, ", line 1 is no JSON. Write one JSON object a line."),
        ('["message:4"]', ", line 1 is no JSON object. Write one JSON object a line."),
        (
            '{"exclude": ["a"]}\n{"exclude": ["a"]}',
            ", line 2: the label 'without a' is taken. Give each variant its own.",
        ),
        ('{"label": "base"}', ", line 1: the label 'base' is taken. Give each variant its own."),
        ("\n \n", " holds no variant. Write one JSON object a line, like"),
    ],
)
def test_a_file_is_read_strictly(text_: str, said: str, tmp_path: Path) -> None:
    """What is wrong in a file is one sentence that names the line."""
    file = tmp_path / "v.jsonl"
    file.write_text(text_, encoding="utf-8")

    with pytest.raises(Failure) as failure:
        compare_variants.asked(compare_variants.read(str(file)), message=None, until=None, models=[])

    assert failure.value.sentence.startswith(f"{file}{said}")


def test_a_model_is_named_once(tmp_path: Path) -> None:
    """A variant with a model of its own and --model contradict each other."""
    file = tmp_path / "v.jsonl"
    file.write_text('{"model": "a/b"}', encoding="utf-8")

    with pytest.raises(Failure) as failure:
        compare_variants.asked(compare_variants.read(str(file)), message=None, until=None, models=["c/d"])

    said = f"{file}, line 1: it names the model a/b. Leave it out there, or leave --model out."
    assert failure.value.sentence == said


@pytest.mark.parametrize(
    ("sentence", "error", "said"),
    [
        (
            "Variant 2: 'b' is no part id.",
            {"message": "'b' is no part id.", "part": "b", "pointer": "/variants/2/exclude/0"},
            "{line}: 'b' is no part id.\n",
        ),
        (
            "The body is wrong.",
            {"message": "label is too long.", "pointer": "/variants/2/label"},
            "The body is wrong.\n  {line}, label: label is too long.\n",
        ),
        (
            "Variant 0: A request would end with an assistant message.",
            {"message": "A request would end with an assistant message.", "part": "message:4"},
            "the unchanged context, which is always compared: A request would end with an assistant message.\n",
        ),
        (
            "7 variants are too many.",
            {"message": "No.", "pointer": "/variants/9"},
            "7 variants are too many.\n  /variants/9: No.\n",
        ),
    ],
)
def test_a_refusal_names_the_line(sentence: str, error: dict[str, str], said: str, run: Run, tmp_path: Path) -> None:
    """A variant that the API refuses is named as the person wrote it, and nothing is sent."""
    file = tmp_path / "v.jsonl"
    file.write_text('{"exclude": ["a"]}\n{"exclude": ["b"]}', encoding="utf-8")
    with serving({CHECK: problem(422, "bad_part_id", sentence, errors=[{"reason": "bad_part_id", **error}])}) as api:
        ended = ask(api, run, str(file), "--session", SESSION, "--yes")

    assert ended == Ended(1, "", "hango: " + said.format(line=f"{file}, line 2"))


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--without", "a"], "Name a session by --session, or an earlier batch by --show."),
        (["--session", SESSION, "--show", BATCH], "Name a session by --session, or an earlier batch by --show."),
        (["--session", SESSION], "Give the variants by a file, by --without, or by several --model."),
        (["--session", SESSION, "--model", "a/b", "--model", "a/b"], "by --without, or by several --model."),
        (["v.jsonl", "--session", SESSION, "--without", "a"], "by a file or by --without, not by both."),
        (["--show", BATCH, "--without", "a"], "--show looks at an earlier batch: it takes no variants."),
        (["--session", SESSION, "--without", "a", "--csv", "--json"], "--diff, --csv and --json exclude each other."),
        (["--session", SESSION, "--without", "a", "--repeats", "31"], "'31' is not a whole number from 1 to 30."),
    ],
)
def test_words_that_say_nothing(words: list[str], said: str, run: Run) -> None:
    """What cannot be meant is a usage error before anything is asked: exit 2."""
    with serving({}) as api:
        ended = ask(api, run, *words, COLUMNS="200")

    assert (ended.code, ended.out, api.asked) == (2, "", [])
    assert said in " ".join(ended.err.split())


def test_a_part_that_is_not_there_is_refused(run: Run) -> None:
    """A variant without a part that the context does not hold would be the base: nothing is sent, exit 1."""
    words = ["--without", "tool:b", "--without", "tool:a", "--without", "system:memory:/memories/AGENT.md"]
    with serving(compared()) as api:
        ended = ask(api, run, "--session", SESSION, *words, "--yes")

    said = "it is not in the context, so nothing would change."
    second = f"  --without system:memory:/memories/AGENT.md: {said} Alike: {MEMORY}.\n"
    assert ended == Ended(1, "", f"hango: --without tool:b: {said}\n{second}")
    assert [one.line for one in api.asked] == [CONTEXT]


def test_nothing_is_sent_unasked(run: Run) -> None:
    """Without a terminal and without --yes the estimate is said and nothing is sent: exit 2."""
    with serving(compared()) as api:
        ended = ask(api, run, "--session", SESSION, "--without", MEMORY, "--repeats", "5")

    refused = "hango: there is no terminal to ask on, so nothing was sent. --yes sends without asking.\n"
    assert ended == Ended(2, "", ESTIMATE + LEFT + refused)
    assert sent(api) == []


def test_unknown_costs_are_said_so(run: Run) -> None:
    """A model without a price and a tenant without a quota: the cost is unknown, and no quota is spoken of."""
    with serving(
        {CONTEXT: reply(SHOT), CHECK: reply({**COSTS, "calls": 1, "cost_usd": None, "quota_left": None})}
    ) as api:
        ended = ask(api, run, "--session", SESSION, "--without", MEMORY)

    first = "2 variants = 1 call, estimated: 309,075 tokens in, at most 61,440 out, cost unknown."
    assert ended.err.splitlines()[0] == first


@pytest.mark.parametrize(("typed", "code"), [("y\n", 1), ("\n", 1), ("no\n", 1), ("", 1)])
def test_the_person_is_asked(typed: str, code: int) -> None:
    """On a terminal only a yes sends the batch; no, nothing and Ctrl-C send nothing."""
    words = ["context", "compare", "--session", SESSION, "--without", MEMORY, "--repeats", "5"]
    with serving(compared()) as api, terminal(*words, HANGO_API_URL=api.url, HANGO_API_KEY=KEY) as seen:
        seen.until("send 10 calls? [y/N] ")
        if typed:
            seen.type(typed)
        else:
            seen.interrupt()
        found = seen.ended()

    yes = typed == "y\n"
    golden = (GOLDEN / "compare_80.txt").read_text(encoding="utf-8")
    assert found == (code, golden if yes else "")
    assert len(sent(api)) == yes
    assert ("hango: nothing was sent." in seen.last_lines()) != yes


def test_progress_and_ctrl_c() -> None:
    """While a batch runs a bar is shown; Ctrl-C asks, and yes cancels the batch and shows what there is."""
    done, running = workshop()[:8], [tries.waiting("running", id=f"r{n}", variant=1, request=asks(1)) for n in range(2)]
    going, labels = tries.batch([*done, *running], LABELS[:2]), LABELS[:2]
    cancelled = [{**one, "status": "cancelled"} for one in running]
    found = compared(*done, *cancelled, labels=labels)
    found[POST] = reply(going)
    found[GET] = [Answer(b"", seconds=60), reply(tries.batch([*done, *cancelled], labels))]
    found[f"POST /v1/try-batches/{BATCH}/cancel"] = reply(going)
    words = ["context", "compare", "--session", SESSION, "--without", MEMORY, "--yes"]
    with serving(found) as api, terminal(*words, HANGO_API_URL=api.url, HANGO_API_KEY=KEY) as seen:
        api.until(f"{GET}?wait")
        seen.until("comparing ███████████████████░░░░░ 8 of 10  2 running  0 s")
        seen.interrupt()
        seen.until("cancel the batch? [y/N] ")
        seen.type("y\n")
        code, out = seen.ended()

    assert (code, len(out.splitlines()), seen.last_lines()[-1]) == (
        1,
        6,
        "hango: 2 of 10 calls brought no answer: cancelled.",
    )


def test_a_batch_that_is_left(run: Run) -> None:
    """A wait that runs out names the command that shows the batch later: exit 3."""
    going = tries.batch([tries.waiting(variant=0)], ["base"])
    with serving({**compared(), POST: reply(going), GET: reply(going)}) as api:
        ended = ask(api, run, "--session", SESSION, "--without", "a", "--yes", "--timeout", "1", "--json")

    later = f"  look at it: {own_command()} context compare --show {BATCH}\n"
    assert (ended.code, json.loads(ended.out)) == (3, going)
    assert ended.err.endswith(f"hango: the batch did not end in time and goes on.\n{later}")


def test_json(run: Run) -> None:
    """--json prints the batch and its tries, each as the API shows it by itself, in the order of the variants."""
    raw = json.dumps(tries.batch(workshop(), LABELS)).encode().replace(b'"label": null', b'"label":  null,"x":1.10')
    with serving({**compared(), GET: Answer(raw)}) as api:
        ended = ask(api, run, "--show", BATCH, "--json")

    assert ended.out.startswith('{"batch":' + raw.decode() + ',"tries":[{"id": "0-0"')
    assert json.loads(ended.out)["tries"] == workshop()
    assert ended.code == 1


def test_csv(run: Run) -> None:
    """--csv has every column whole, with sums over the calls of a variant."""
    with serving(compared()) as api:
        ended = ask(api, run, "--show", BATCH, "--csv")

    found = list(csv.DictReader(io.StringIO(ended.out, newline="")))
    assert [one["variant"] for one in found] == LABELS
    assert found[2] == {
        "variant": "without tool:漢字",
        "model": MODEL,
        "calls": "5",
        "succeeded": "4",
        "failures": "provider_overloaded=1",
        "input_tokens": "31768",
        "cache_read_tokens": "124160",
        "cache_write_tokens": "0",
        "output_tokens": "44",
        "estimated": "0",
        "cost_usd": "0.0524",
        "seconds": "3.9",
        "stop_reasons": "tool_use=3 end_turn=1",
        "tools": "read_file=3",
        "distinct_answers": "2",
        "commonest_count": "3",
        "commonest_answer": f'漢字 {FAMILY} \x1b[2J\u202eevil\nmore\n→ read_file({{"path":"shelf-a"}})',
        "try_ids": "2-0 2-1 2-2 2-3 2-4",
    }
    assert list(found[0]) == list(compare_csv.HEADS)


def test_diff(run: Run) -> None:
    """--diff shows how the commonest answer of each variant differs from the base's."""
    with serving(compared()) as api:
        ended = ask(api, run, "--show", BATCH, "--diff", COLUMNS="80")

    golden = (GOLDEN / "compare_80.txt").read_text(encoding="utf-8")
    assert ended.out.removeprefix(golden).splitlines() == [
        "",
        f"without {MEMORY} against base",
        "--- base",
        f"+++ without {MEMORY}",
        "@@ -1,2 +1 @@",
        "-Forty bolts are in drawer 3.",
        "-Two boxes are open.",
        "+I do not know.",
        "",
        "without tool:漢字 against base",
        "--- base",
        "+++ without tool:漢字",
        "@@ -1,2 +1,3 @@",
        "-Forty bolts are in drawer 3.",
        "-Two boxes are open.",
        f"+漢字 {FAMILY} ⟨U+001B⟩[2J⟨U+202E⟩evil",
        "+more",
        '+→ read_file({"path":"shelf-a"})',
        "",
        "all failed against base: all failed has no answer",
    ]


def test_a_row_is_compared_with_the_base_of_its_model() -> None:
    """With several models each variant is compared with the unchanged context of its own model."""

    def row(label: str, model: str, *parts: str) -> Row:
        request = {"exclude": list(parts), "model": model}
        made = tries.answered(text(label), request=request)
        return Row.of(label, [replies.read(json.dumps(made).encode(), Try)])

    found = [row("base a", "a"), row("x a", "a", "x"), row("base b", "b"), row("x b", "b", "x"), row("x c", "c", "x")]

    based = [compare_rows.base_of(one, found).label for one in found]
    assert based == ["base a", "base a", "base a", "base b", "base a"]


def test_the_same_answer() -> None:
    """Text and calls make an answer; thinking, the ids of calls and space around it do not."""

    def said(*blocks: dict[str, Any]) -> str:
        made = replies.read(json.dumps(tries.answered(*blocks)).encode(), Try)
        assert made.answer is not None
        return answers.as_text(made.answer)

    thinking = {"type": "thinking", "thinking": "Hm.", "signature": "s"}
    assert said(thinking, text(" Forty. "), call("look", a=1)) == said(text("Forty."), {**call("look", a=1), "id": "x"})
    assert said(text("Forty."), call("look", a=1)) != said(text("Forty."), call("look", a=2))
    assert said() == ""


@given(
    said=st.text(),
    label=st.text(),
    stop=st.text(max_size=30),
    tool=st.text(max_size=30),
    width=st.integers(70, 200),
)
def test_nothing_of_an_answer_acts(said: str, label: str, stop: str, tool: str, width: int) -> None:
    """No control or direction character of an answer acts, a variant keeps its lines, and no line is too wide."""
    one = tries.answered(text(said), call(tool), stop_reason=stop, variant=0, request=asks(0))
    other = tries.answered(text("Forty."), id="b", variant=1, request=asks(1))
    found = [
        Row.of(name, [replies.read(json.dumps(made).encode(), Try)]) for name, made in ((label, one), ("b", other))
    ]
    table = list(compare_table.lines(found, width))
    diffs = list(compare_table.diffs(found))

    every = "".join(line.text for line in (*table, *diffs))
    assert not [letter for letter in every if letter in "\x7f\x9b\u202e\u2066\u200b\u2028" or letter < " "]
    assert len(table) == (5 if width < compare_table.WIDE else 3)
    assert max(line.cells for line in table) <= width
