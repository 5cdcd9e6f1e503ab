"""Compaction: where a summary may end, what it is asked to cover, and what it no longer mentions."""

from __future__ import annotations

import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hango.chain import summaries
from hango.chain.summaries import MAX_MISSING, MAX_SHOWN_CHARS, Covered
from hango.messages import Message
from tests.drafts import bodies_of, exclude, mended, swap
from tests.histories import Said, build, said, turns

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


def covered(history: list[Message], through: int, *overrides: Any) -> str:
    return summaries.covered(mended(history, overrides=overrides), bodies_of(history), through).text


def test_what_is_covered_is_one_text() -> None:
    """Each message under its role, up to the end and no further."""
    text = covered(HISTORY, 4)

    assert text.startswith("[user]\nWhere are the bolts?\n\n[assistant]\n")
    assert text.endswith("[assistant]\nIn drawer 3.")
    assert "Forty bolts." in text


def test_what_is_covered_is_filtered() -> None:
    """What overrides leave out is not in it, nor its partner; what they replace is there in its new words."""
    text = covered(HISTORY, 4, *exclude("message:2"), *swap(m4="Drawer 4."))

    assert text == "[user]\nWhere are the bolts?\n\n[assistant]\nDrawer 4."


def test_the_middle_of_a_very_long_message_is_left_out() -> None:
    """Its beginning and end are there, and a line that says how much is not."""
    long = "a" * MAX_SHOWN_CHARS + "b" * MAX_SHOWN_CHARS

    text = covered([said("user", long)], 1)

    half = MAX_SHOWN_CHARS // 2
    assert text == f"[user]\n{'a' * half}\n[… 20,000 characters left out …]\n{'b' * half}"


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
        "0191e8f0-7b1a-7c3e-9a55-0123456789ab",
    ],
)
def test_what_a_reader_would_look_for_is_missed(fact: str) -> None:
    """A path, number, URL, identifier or command of the covered text that the summary does not have, and only then."""
    shown = f"`{fact}`" if " " in fact else fact
    what = Covered(f"[user]\nWe need {shown}, as said.", 1)

    assert fact in summaries.missing(what, "They need something.")
    assert summaries.missing(what, f"They need {fact}.") == []


def test_plain_words_are_not_missed() -> None:
    """Words of a conversation are no facts: a summary may say them in its own way."""
    assert summaries.missing(Covered("[user]\nPlease sort all of the bolts, and be kind.", 1), "Sorting.") == []


def test_what_is_missing_is_named_once_in_its_order_and_not_without_end() -> None:
    """No fact twice; a bound on the list."""
    assert summaries.missing(Covered("17 bolts, 23 nuts, 17 screws", 1), "") == ["17", "23"]
    assert len(summaries.missing(Covered(" ".join(str(n) for n in range(1000, 3000)), 1), "")) == MAX_MISSING


@pytest.mark.parametrize(
    "text", ["/" * 200_000, "a/" * 100_000, "1," * 100_000, "a-1" * 70_000, "`" * 200_000, "a." * 100_000]
)
def test_no_text_takes_long_to_look_through(text: str) -> None:
    """Hostile texts of 200,000 characters: well under ten seconds on a busy machine, so the time is linear."""
    started = time.process_time()

    summaries.missing(Covered(text, 1), "")

    assert time.process_time() - started < 10
