"""Compaction: where a summary may end, what it is asked to cover, and what it no longer mentions."""

from __future__ import annotations

import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hango.chain import summaries
from hango.chain.draft import EXTRA_SEQ
from hango.chain.summaries import MAX_MISSING, MAX_SHOWN_CHARS, Covered
from hango.chain.summary_calls import summary_of
from hango.messages import Block, Message, Response, StopReason, Usage, text_block
from tests.drafts import bodies_of, exclude, mended, swap
from tests.histories import Said, build, said, turns
from tests.states import state_of

CALL: dict[str, Any] = {"type": "tool_use", "id": "a", "name": "look", "input": {"drawer": 3}}
RESULT: dict[str, Any] = {"type": "tool_result", "tool_use_id": "a", "content": "Forty bolts."}
HISTORY = [
    said("user", "Where are the bolts?"),
    said("assistant", [CALL]),
    said("user", [RESULT]),
    said("assistant", "In drawer 3."),
    said("user", "And the nuts?"),
]


@pytest.mark.parametrize(("keep", "cut"), [(0, 5), (1, 4), (2, 3), (3, 1), (4, 1), (5, None), (9, None)])
def test_a_cut_keeps_the_last_messages_and_every_pair_whole(keep: int, cut: int | None) -> None:
    """The last messages stay; where the cut would part a call from its result, the call stays too."""
    assert summaries.cut_of(mended(HISTORY), keep) == cut


def test_a_summary_ends_between_pairs_only() -> None:
    """Any message of the history but a call whose result comes later; none that is not there."""
    draft = mended(HISTORY)

    assert [seq for seq in range(8) if summaries.may_cut(draft, seq)] == [1, 3, 4, 5]


@given(turns(), st.integers(0, 12))
def test_every_cut_may_be_made(history: list[Said], keep: int) -> None:
    """Over all histories: the cut is one that a person may make too, and leaves at least as much as shall be kept."""
    messages = build(history)
    draft = mended(messages)

    cut = summaries.cut_of(draft, keep)

    assert cut is None or (summaries.may_cut(draft, cut) and cut <= len(messages) - keep)


def covered(history: list[Message], through: int, *overrides: Any) -> Covered:
    return summaries.covered(mended(history, overrides=overrides), bodies_of(history), through)


def test_what_is_covered_is_one_text() -> None:
    """Each message under its role, up to the end and no further."""
    text = covered(HISTORY, 4).text

    assert text.startswith("[user]\nWhere are the bolts?\n\n[assistant]\n")
    assert text.endswith("[assistant]\nIn drawer 3.")
    assert "Forty bolts." in text


def test_what_is_covered_is_filtered() -> None:
    """What overrides leave out is not in it, nor its partner; what they replace is there in its new words."""
    text = covered(HISTORY, 4, *exclude("message:2"), *swap(m4="Drawer 4.")).text

    assert text == "[user]\nWhere are the bolts?\n\n[assistant]\nDrawer 4."


def of(text: str) -> Covered:
    return Covered((("user", text),), 1)


def asked(what: Covered, window: int = 200_000) -> str:
    """What the summarizer is given to read."""
    state, draft = summaries.summarizer(state_of(messages=HISTORY, window=window), mended(HISTORY), what)
    assert draft.size is not None
    assert draft.size.after <= max(window - state.agent.max_output_tokens, 1_000)
    return draft.texts[EXTRA_SEQ].removesuffix(f"\n\n{summaries.TASK}")


def test_the_middle_of_a_very_long_message_is_left_out() -> None:
    """Its beginning and end are there, and a line that says how much is not; it is missed all the same."""
    long = "a" * MAX_SHOWN_CHARS + "ABC-1234" + "b" * MAX_SHOWN_CHARS
    what = covered([said("user", long)], 1)

    half = MAX_SHOWN_CHARS // 2
    assert asked(what) == f"[user]\n{'a' * half}\n[… 20,008 characters left out …]\n{'b' * half}"
    assert what.text == f"[user]\n{long}"


def test_what_the_summarizers_model_does_not_hold_is_left_out() -> None:
    """A history of many windows: every message is there by its beginning and end, the short ones wholly."""
    long = "".join(f"bolt {n} " for n in range(2_000))
    history = Covered((("user", "Count them."), *[("assistant", long)] * 40, ("user", "Thanks.")), 42)

    text = asked(history, window=32_000)

    assert text.startswith("[user]\nCount them.\n\n[assistant]\nbolt 0 ")
    assert text.endswith(" bolt 1999 \n\n[user]\nThanks.")
    assert text.count("characters left out") == 40


def test_a_model_that_holds_next_to_nothing_is_asked_all_the_same() -> None:
    """A window smaller than its longest answer: the request has the ends of the history."""
    text = asked(of("".join(f"bolt {n} " for n in range(9_000))), window=1_000)

    assert text.startswith("[user]\nbolt 0 ")
    assert text.endswith(" bolt 8999 ")


def test_a_history_of_more_messages_than_the_model_holds_loses_its_middle() -> None:
    """When not even the beginnings fit: the first and the last messages are there."""
    history = Covered(tuple(("user", f"Bolt {n} is in drawer {n}.") for n in range(20_000)), 20_000)

    text = asked(history, window=16_000)

    assert text.startswith("[user]\n")
    assert text.count("[user]") < 3_000


@pytest.mark.parametrize(
    "fact",
    [
        "https://example.org/a/b?c=1#d",
        "/srv/stock/bolts.csv",
        "~/notes/todo.md",
        "src/stock/count.py",
        "count.py",
        "git rebase --onto main",
        "ABC-1234",
        "v2-beta3",
        "1,234,567",
        "42",
        "3.14",
        "12:30",
        "2026-12-01",
        "0191e8f0-7b1a-7c3e-9a55-0123456789ab",
    ],
)
def test_what_a_reader_would_look_for_is_missed(fact: str) -> None:
    """A path, number, URL, identifier or command of the covered text that the summary does not have, and only then."""
    shown = f"`{fact}`" if " " in fact else fact
    what = of(f"We need {shown}, as said.")

    assert fact in summaries.missing(what, "They need something.")
    assert summaries.missing(what, f"They need {fact}.") == []


def test_plain_words_are_not_missed() -> None:
    """Words of a conversation are no facts: a summary may say them in its own way."""
    assert summaries.missing(of("Please sort all of the bolts, and be kind."), "Sorting.") == []


def test_what_is_missing_is_named_once_in_its_order_and_not_without_end() -> None:
    """No fact twice; a bound on the list."""
    assert summaries.missing(of("17 bolts, 23 nuts, 17 screws"), "") == ["17", "23"]
    moments = of("counted 2026-12-01, sent 2026-12-02T10:00:07Z")
    assert summaries.missing(moments, "01 12") == ["2026-12-01", "2026-12-02T10:00:07"]
    assert len(summaries.missing(of(" ".join(str(n) for n in range(1000, 3000))), "")) == MAX_MISSING


@pytest.mark.parametrize("text", ["/", "a/", "1,", "1234-12-", "a-1", "a-", "`", "a."])
def test_no_text_takes_long_to_look_through(text: str) -> None:
    """Hostile texts of 200,000 characters: well under ten seconds on a busy machine, and a hundred times as much takes
    no more than the bound does."""
    started = time.process_time()

    summaries.missing(of(text * (200_000 // len(text))), "")
    whole = time.process_time() - started
    summaries.missing(of(text * (20_000_000 // len(text))), "")

    assert whole < 10
    assert time.process_time() - started < 14 * (whole + 1)


def test_a_long_text_is_looked_through_in_pieces() -> None:
    """A fact far behind others is found, and none is cut at the end of a piece."""
    facts = [f"ABC-{n:06}" for n in range(1_000, 3_000)]

    found = summaries.missing(of(" and ".join(facts)), " ".join(facts[:-3]))

    assert found == facts[-3:]


TEXT = text_block("They look for bolts.")
CALLED = Block.make("tool_use", id="a", name="ls", input={"path": "/"})


@pytest.mark.parametrize(
    ("blocks", "reason", "summary"),
    [
        ([TEXT], StopReason.END_TURN, "They look for bolts."),
        ([TEXT, TEXT], StopReason.MAX_TOKENS, "They look for bolts.\n\nThey look for bolts."),
        ([TEXT], StopReason.REFUSAL, None),
        ([TEXT], StopReason.CONTEXT_EXCEEDED, None),
        ([], StopReason.END_TURN, None),
        ([text_block(" \u00a0\n")], StopReason.END_TURN, None),
        ([CALLED], StopReason.TOOL_USE, None),
        ([text_block("bolts " * 20_000)], StopReason.END_TURN, None),
    ],
    ids=["text", "cut", "refused", "not read", "nothing", "blank", "a call", "larger than was asked for"],
)
def test_what_an_answer_is_as_a_summary(blocks: list[Block], reason: StopReason, summary: str | None) -> None:
    """Its text; nothing where there is none, where the model refused, and where it is far longer than was asked for."""
    assert summary_of(Response(tuple(blocks), reason, Usage()), window=100_000) == summary


def test_a_summary_leaves_half_of_the_window() -> None:
    """One that is larger would make every later request one that cannot be sent."""
    answer = Response((text_block("bolts " * 1000),), StopReason.END_TURN, Usage())

    assert summary_of(answer, window=1500) is None
    assert summary_of(answer, window=4000) is not None
