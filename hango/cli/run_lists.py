"""Lists of runs and of their model calls, one line each: no text of a message. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from hango.cli import table
from hango.cli.output import Line
from hango.cli.run_replies import Call, Run
from hango.cli.text import number
from hango.cli.try_lists import when
from hango.cli.try_report import cost

# By the columns that there are: what a line shows.
RUN_HEADS = {
    0: ("id", "status"),
    66: ("id", "created", "status"),
    80: ("id", "created", "status", "turns", "in"),
    100: ("id", "created", "status", "turns", "in", "stop"),
    140: ("id", "created", "status", "turns", "in", "cost", "stop", "model"),
}
CALL_HEADS = {
    0: ("call", "purpose", "in", "out", "stop"),
    60: ("call", "purpose", "in", "cached", "out", "cost", "stop"),
    80: ("call", "purpose", "in", "cached", "out", "cost", "overrides", "stop"),
    100: ("call", "purpose", "in", "cached", "out", "cost", "overrides", "left out", "stop", "model"),
}
NUMBERS = ("call", "turns", "in", "cached", "out", "cost", "overrides", "left out")
NAMES = ("model", "stop")


def of_runs(runs: Sequence[Run], width: int) -> Iterator[Line]:
    rows = [
        {
            "id": one.id,
            "created": when(one.created_at, width),
            "status": one.status,
            "turns": number(one.turns),
            "in": "" if one.usage is None else number(one.usage.all_input),
            "cost": "" if one.usage is None or one.usage.cost_usd is None else cost(one.usage.cost_usd),
            "stop": one.error.code if one.error else one.stop_reason or "",
            "model": one.model,
        }
        for one in runs
    ]
    yield from _table(RUN_HEADS, rows, width)


def of_calls(calls: Sequence[Call], width: int) -> Iterator[Line]:
    rows = [
        {
            "call": number(one.n),
            "purpose": one.purpose,
            "in": "" if one.usage is None else number(one.usage.all_input),
            "cached": "" if one.usage is None else number(one.usage.cache_read_tokens),
            "out": "" if one.usage is None else number(one.usage.output_tokens),
            "cost": "" if one.usage is None or one.usage.cost_usd is None else cost(one.usage.cost_usd),
            "overrides": number(one.overrides),
            "left out": number(one.excluded_tokens),
            "stop": one.error or one.stop_reason or ("under way" if one.ended_at is None else ""),
            "model": one.model,
        }
        for one in calls
    ]
    yield from _table(CALL_HEADS, rows, width)


def _table(by_width: dict[int, tuple[str, ...]], rows: Sequence[dict[str, str]], width: int) -> Iterator[Line]:
    heads = by_width[max(least for least in by_width if least <= width)]
    yield from table.lines(
        heads,
        [[row[head] for head in heads] for row in rows],
        width=width,
        right={heads.index(head) for head in NUMBERS if head in heads},
        names={heads.index(head) for head in NAMES if head in heads},
    )
