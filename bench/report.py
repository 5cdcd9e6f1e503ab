"""What a bench prints: times, ratios, goals. Works out nothing but medians."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median

from bench.goals import Goal, Key, Measured, missed

# Every run of a case, in all rounds.
Times = Mapping[Key, Sequence[float]]


def part(name: str, runs: Times, rounds: Measured, table: Sequence[Goal]) -> list[str]:
    """Everything about one part of the bench."""
    others = {key: rounds[key] for key in rounds.keys() - runs.keys()}
    says = "goals, as ratios of one run unless a unit is named"
    return [f"== {name}", *times(runs), *(["", *figures(others)] if others else []), "", says, *goals(rounds, table)]


def times(found: Times) -> list[str]:
    lines = [f"{'ms':34}{'messages':>10}{'median':>10}{'min':>10}{'spread':>10}"]
    for key in sorted(found, key=lambda key: (key.case, key.size, key.contestant)):
        runs = sorted(found[key])
        spread = runs[len(runs) * 9 // 10] / runs[len(runs) // 10]
        who = f"{key.contestant}: {key.case}"
        lines.append(f"{who:34}{key.size:>10,}{median(runs):>10.3f}{runs[0]:>10.3f}{spread:>9.2f}x")
    return lines


def figures(found: Measured) -> list[str]:
    lines = [f"{'figures':54}{'median':>10}{'min':>10}{'max':>10}"]
    for key in sorted(found, key=lambda key: (key.case, key.contestant)):
        values = found[key]
        who = f"{key.contestant}: {key.case}"
        lines += [f"{who:54}{median(values):>10.2f}{min(values):>10.2f}{max(values):>10.2f}"]
    return lines


def goals(measured: Measured, table: Sequence[Goal]) -> list[str]:
    """One line a goal: its number in every round, the middle, the spread, and whether it holds."""
    lines = []
    for goal in table:
        rounds = goal.rounds(measured)
        size = f" at {goal.value.size:,}" if goal.value.size else ""
        if rounds is None:
            lines.append(f"  -     {goal.says}{size}: not measured")
            continue
        each = " ".join(f"{number:.2f}" for number in rounds)
        spread = max(rounds) / min(rounds)
        lines.append(
            f"{_verdict(goal, measured, rounds):7} {goal.says}{size}: {median(rounds):.2f} ({goal.limit})"
            f"   rounds {each}, spread {spread:.2f}x"
        )
    return lines


def _verdict(goal: Goal, measured: Measured, rounds: Sequence[float]) -> str:
    if missed(goal, measured):
        return "MISSED"
    return "holds" if goal.holds(median(rounds)) else "unsure"
