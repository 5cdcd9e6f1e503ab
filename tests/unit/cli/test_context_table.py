"""The table of `hango context show`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from wcwidth import wcswidth

from hango.cli import context_table
from hango.cli.output import Style
from tests.unit.cli import snapshots
from tests.unit.cli.snapshots import excluded, part, snapshot

GOLDEN = Path(__file__).parent / "golden"
BIDI = set("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")

# What a person, a provider or an attacker may have put into a conversation.
HOSTILE = st.text(
    alphabet=st.one_of(
        st.characters(max_codepoint=0xFF),
        st.characters(exclude_categories=["Cs"]),
        st.sampled_from(
            ["\x1b", "\x9b", "\u202e", "\u2066", "\u200d", "\ufe0f", "\u0301", "漢", "👩", "🇩", "[", "/", "]"]
        ),
    ),
    max_size=200,
)
NAMES = st.from_regex(r"[a-z0-9_.-]{1,64}", fullmatch=True)


def table(shot: dict[str, Any], width: int, agent: str = "stock assistant", **more: Any) -> list[str]:
    return [line.text for line in context_table.lines(snapshots.read(shot), agent=agent, width=width, **more)]


@pytest.mark.parametrize("width", [60, 80, 100, 140])
def test_everything_a_table_shows(width: int) -> None:
    """Prints groups with a checkbox, part id, label, preview, tokens, group totals, totals before and after, labels."""
    written = "\n".join(table(snapshots.workshop(), width)) + "\n"

    assert written == (GOLDEN / f"context_{width}.txt").read_text(encoding="utf-8")


def test_one_group() -> None:
    """--group shows one group; totals are always of the whole."""
    lines = table(snapshots.workshop(), 100, groups=("tools",))

    assert [line.split()[0] for line in lines if line and line[0].isalnum()] == [
        "stock",
        "tools",
        "total",
        "stale:",
        "1",
    ]
    assert [line for line in lines if line.startswith("total")] == ["total 17,190 → 14,732 tokens (estimated)"]


def test_sorted_by_tokens() -> None:
    """--sort tokens puts the largest part of every group first."""
    lines = table(snapshots.workshop(), 100, by_tokens=True)

    assert [line.split("]")[1].split()[0] for line in lines if line.startswith(" [")] == [
        "system:memory:/memories/AGENTS.md",
        "system:skills",
        "system:agent",
        "system:filesystem",
        "tool:search_everything_in_the_workshop",
        "tool:read_file",
        "summary",
        "message:42",
        "message:41",
        "message:43",
        "message:44",
    ]


def test_an_empty_session() -> None:
    """A session without anything has three empty groups and no bar of anything but free room."""
    assert table(snapshot([], [], []), 60) == [
        "stock assistant",
        f"session {snapshots.SESSION}",
        "anthropic/claude-sonnet-4-5",
        "░" * 40 + "  0 of 200,000 (0 %)",
        " " * 33 + "↑ compacts at 170,000",
        "▓ tools 0  ▒ system 0  █ messages 0  ░ free 200,000",
        "",
        "system   0 tokens",
        "",
        "tools    0 tokens",
        "",
        "messages 0 tokens",
        "",
        "total 0 tokens (estimated)",
    ]


def test_a_provider_that_counted() -> None:
    """With a provider's counter, the sum of the estimates stands beside its total."""
    shot = snapshots.workshop() | {"counted": "provider", "total_before": 17000, "total_after": 14650}

    assert "total 17,000 → 14,650 tokens (counted by the provider; estimate 14,732)" in table(shot, 100)


def test_many_parts_with_one_problem() -> None:
    """Parts with the same problem share one entry; nothing that needs attention is silent."""
    problems = [
        {"part": f"message:{n}", "reason": "unpaired_tool_use", "message": "The call has no result."}
        for n in range(1, 15)
    ]
    shot = snapshot([], [], [part("message:1", "ls({})", 3, role="assistant")], problems=problems)

    lines = table(shot, 200)

    named = ", ".join(f"message:{n}" for n in range(1, 13))
    assert lines[-2:] == ["14 problems", f"  {named} and 2 more: The call has no result. (unpaired_tool_use)"]
    assert " [x] message:1  assistant  ls({})  3  problem" in lines


def test_markup_is_text() -> None:
    """Square brackets of a message are shown as they are."""
    text = "[INST] count [/INST] [/] [bold]x[/bold] [link=http://a]y[/link]"
    shot = snapshot([], [], [part("message:1", text, 9, role="user"), part("message:2", "[/red]", 2, role="assistant")])

    assert " [x] message:1  user       " + text + "  9" in table(shot, 100)


def test_an_id_is_never_cut() -> None:
    """An id that is longer than its room goes on; the preview gives way first."""
    path = "/memories/" + "deep/" * 12 + "notes.md"
    shot = snapshot(
        [part(f"system:memory:{path}", "Bolts are in drawer 3.", 7), part("system:agent", "Hello", 1)], [], []
    )

    for width in (40, 60, 80, 100):
        lines = table(shot, width)
        assert [line for line in lines if f"system:memory:{path}" in line and line.endswith("7")] != []
    assert f" [x] system:memory:{path}  7" in table(shot, 100)


def test_colours_carry_no_meaning() -> None:
    """Every line that is coloured for its meaning says it in words too."""
    lines = list(context_table.lines(snapshots.read(snapshots.workshop()), agent="a", width=100))
    said = {span.text.strip() for line in lines for span in line.spans if span.style in {Style.CACHED, Style.CHANGED}}

    assert {"cached", "excluded", "paired", "replaced"} <= said


PARTS = st.builds(
    lambda name, preview, tokens, make, cached: make(f"system:{name}", preview, tokens, cached_prefix=cached),
    NAMES.filter(lambda name: len(name) < 40),
    HOSTILE,
    st.integers(0, 2_000_000),
    st.sampled_from([part, excluded]),
    st.booleans(),
)


@settings(max_examples=300, deadline=None)
@given(parts=st.lists(PARTS, max_size=6), width=st.integers(80, 160), agent=HOSTILE, label=HOSTILE)
def test_no_text_can_act_or_break_the_table(parts: list[dict[str, Any]], width: int, agent: str, label: str) -> None:
    """No byte under 0x20 but the line end, no C1, no direction control; one line a part; no line over the width."""
    tool = part("tool:t", label, 1, label=label)
    shot = snapshot(parts, [tool], [part("message:1", agent, 1, role="user")], window=100_000)

    lines = table(shot, width, agent=agent)

    assert sum(line.startswith(" [") for line in lines) == len(parts) + 2
    assert [line for line in lines if wcswidth(line) > width or wcswidth(line) < 0] == []
    assert [line for line in lines if not BIDI.isdisjoint(line)] == []
    assert [c for line in lines for c in line if ord(c) < 0x20 or 0x7F <= ord(c) < 0xA0] == []


@settings(max_examples=200, deadline=None)
@given(name=HOSTILE.filter(bool), width=st.integers(40, 120))
def test_a_hostile_id_stays_one_line(name: str, width: int) -> None:
    """Imported tool names may hold anything; they are shown whole, on one line, and cannot act."""
    shot = snapshot([], [part(f"tool:{name}", "does things", 5)], [])

    lines = table(shot, width)

    assert sum(line.startswith(" [x] tool:") for line in lines) == 1
    assert [c for line in lines for c in line if ord(c) < 0x20 or c in BIDI] == []
