"""What a fault run shows: figures, each with what it has to be. One table for people; one answer for a script."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text


@dataclass(frozen=True, slots=True)
class Figure:
    """One line of a report. `wanted` is empty for what is only told."""

    what: str
    found: str
    wanted: str = ""
    holds: bool = True


def told(what: str, found: object) -> Figure:
    return Figure(what, _shown(found))


def exactly(what: str, found: object, wanted: object) -> Figure:
    return Figure(what, _shown(found), _shown(wanted), found == wanted)


def none_of(what: str, found: Sequence[object]) -> Figure:
    """Nothing may be found; of what is, the first three are shown."""
    shown = "0" if not found else f"{len(found)}: {', '.join(str(one) for one in found[:3])}"
    return Figure(what, shown, "0", not found)


def at_most(what: str, found: float | None, most: float, unit: str = "s") -> Figure:
    holds = found is not None and found <= most
    return Figure(what, "none" if found is None else f"{found:.4g} {unit}", f"<= {most:g} {unit}", holds)


def at_least(what: str, found: float, least: float, unit: str = "") -> Figure:
    return Figure(what, f"{found:.4g} {unit}".strip(), f">= {least:g} {unit}".strip(), found >= least)


def percentile(values: Iterable[float], share: float) -> float | None:
    """The value that so great a share of them does not exceed; None of none."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))] if ordered else None


def show(title: str, figures: Sequence[Figure], console: Console) -> None:
    """Plain text: a figure may quote what a broken product wrote."""
    table = Table(title=Text(title), title_justify="left", box=box.SIMPLE)
    for name in ("figure", "found", "wanted", ""):
        table.add_column(name, overflow="fold")
    for one in figures:
        verdict = "" if not one.wanted else "ok" if one.holds else "VIOLATED"
        table.add_row(Text(one.what), Text(one.found), Text(one.wanted), Text(verdict))
    console.print(table)


def _shown(value: object) -> str:
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)
