"""Lists of tries and of batches, one line each: no text of a request or an answer. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime

from hango.cli import table
from hango.cli.output import Line
from hango.cli.text import number
from hango.cli.try_replies import Batch, Try
from hango.cli.try_report import cost

# By the columns that there are: what a line shows, so that a label has room. On a narrow one a date has no year.
WIDE = 100
WIDEST = 130
HEADS = {
    0: ("id", "created", "status", "label"),
    WIDE: ("id", "created", "status", "in", "cost", "label"),
    WIDEST: ("id", "created", "status", "model", "in", "cost", "label"),
}


def of_tries(tries: Sequence[Try], width: int) -> Iterator[Line]:
    rows = [
        {
            "id": one.id,
            "created": when(one.created_at, width),
            "status": one.status,
            "model": one.request.model,
            "in": "" if one.usage is None else number(one.usage.all_input),
            "cost": "" if one.usage is None or one.usage.cost_usd is None else cost(one.usage.cost_usd),
            "label": one.label or "",
        }
        for one in tries
    ]
    heads = HEADS[max(least for least in HEADS if least <= width)]
    yield from table.lines(
        heads,
        [[row[head] for head in heads] for row in rows],
        width=width,
        right={heads.index(head) for head in ("in", "cost") if head in heads},
        names={heads.index(head) for head in ("model", "label") if head in heads},
    )


def of_batches(batches: Sequence[Batch], width: int) -> Iterator[Line]:
    rows = [
        (
            one.id,
            when(one.created_at, width),
            f"{number(one.counts.get('succeeded', 0))}/{number(one.calls)}",
            "running" if one.unfinished else "ended",
            one.label or "",
        )
        for one in batches
    ]
    yield from table.lines(("id", "created", "answered", "status", "label"), rows, width=width, right={2}, names={4})


def when(at: datetime, width: int) -> str:
    """In UTC."""
    return f"{at:%Y-%m-%d %H:%M}" if width >= WIDE else f"{at:%m-%d %H:%M}"
