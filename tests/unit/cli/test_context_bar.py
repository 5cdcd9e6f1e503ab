"""The bar of the window at the head of the table."""

from __future__ import annotations

from typing import Any

from hango.cli import context_bar
from tests.unit.cli import snapshots
from tests.unit.cli.snapshots import excluded, part, snapshot


def bar(width: int = 60, system: int = 0, tools: int = 0, messages: int = 0, **more: Any) -> list[str]:
    shot = snapshot(
        [part("system:agent", "", system)] if system else [],
        [part("tool:ls", "", tools)] if tools else [],
        [part("message:1", "", messages, role="user")] if messages else [],
        **{"window": 1000, "compact_at": None, **more},
    )
    return [line.text for line in context_bar.lines(snapshots.read(shot), width)]


def test_the_groups_stand_as_a_provider_reads_them() -> None:
    """Tools, system, messages, then what is free; each share to scale."""
    assert bar(system=100, tools=200, messages=300) == [
        "▓▓▓▓▓▓▓▓▒▒▒▒███████████░░░░░░░░░░░░░░░░  600 of 1,000 (60 %)",
        "▓ tools 200  ▒ system 100  █ messages 300  ░ free 400",
    ]


def test_a_small_group_is_seen() -> None:
    """A group that has tokens gets a cell, however small its share."""
    assert bar(system=1, tools=1, messages=1) == [
        "▓▒█░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░  3 of 1,000 (<1 %)",
        "▓ tools 1  ▒ system 1  █ messages 1  ░ free 997",
    ]


def test_the_end_of_the_cached_prefix_and_compaction_are_marked() -> None:
    """The marks stand under their cells; two that would touch stand on two lines."""
    shot = snapshot(
        [part("system:agent", "", 100, cached_prefix=True), excluded("system:style", "", 900, cached_prefix=True)],
        [part("tool:ls", "", 200, cached_prefix=True)],
        [part("message:1", "", 300, role="user")],
        window=1000,
        compact_at=850,
    )

    assert [line.text for line in context_bar.lines(snapshots.read(shot), 60)] == [
        "▓▓▓▓▓▓▓▓▒▒▒▒███████████░░░░░░░░░░░░░░░░  600 of 1,000 (60 %)",
        "           ↑ cached to here (300)",
        "                                ↑ compacts at 850",
        "▓ tools 200  ▒ system 100  █ messages 300  ░ free 400",
    ]
    assert [line.text for line in context_bar.lines(snapshots.read(shot), 100)][1] == (
        "                       ↑ cached to here (300)                     ↑ compacts at 850"
    )


def test_would_compact() -> None:
    """would_compact is said in words, with the trigger."""
    assert bar(messages=900, would_compact=True, compact_at=850, width=80)[1:] == [
        "                                                 ↑ compacts at 850",
        "▓ tools 0  ▒ system 0  █ messages 900  ░ free 100",
        "would compact: 900 tokens, over 850; the next run first sums up older messages.",
    ]


def test_over_the_window() -> None:
    """A request that is over the window says by how much; the bar is full."""
    assert bar(system=500, messages=1500) == [
        "▒▒▒▒▒▒▒▒▒███████████████████████████  2,000 of 1,000 (200 %)",
        "▓ tools 0  ▒ system 500  █ messages 1,500",
        "over the window by 1,000 tokens: the provider would refuse",
        "this request.",
    ]


def test_an_unknown_window() -> None:
    """Without a known window there is no bar, only the amounts."""
    assert bar(system=500, window=None) == ["▓ tools 0  ▒ system 500  █ messages 0"]
