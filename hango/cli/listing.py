"""What the list commands share: their options, one page of the API, and its table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hango.cli.own_command import line

if TYPE_CHECKING:
    from hango.cli.output import Line

MOST = 500  # the API's own limit
NAMES = frozenset({"title", "name", "model"})  # what people gave a name gives way; ids and numbers never do
WITH_TIME = 100  # columns; on a narrower line the day alone leaves room for a name

Search = Annotated[str | None, typer.Option("--q", metavar="TEXT", help="Only those that hold this text.")]
Limit = Annotated[int, typer.Option("--limit", metavar="N", min=1, max=MOST, help="How many at most.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print the API's reply as it came.")]


@dataclass(frozen=True, slots=True)
class Listed:
    """A list of the API and the fields of an item that are shown."""

    path: str
    command: str
    columns: tuple[str, ...]
    none: str  # words for an empty list


def show(listed: Listed, *, q: str | None, limit: int, as_json: bool) -> None:
    """Print one page, and on stderr how to get more."""
    from hango.cli import output, replies
    from hango.cli.client import Client

    with Client.from_environment() as client:
        body = client.get(listed.path, {"q": q, "limit": limit})
    if as_json:
        output.emit_reply(body)
        return
    page = replies.read(body, replies.Page)
    if not page.data:
        output.note(listed.none if q is None else f"nothing holds the text {q!r}.")
        return
    output.emit(_table(listed, page.data, output.width()))
    if page.next_cursor is not None and limit < MOST:
        search = [] if q is None else ["--q", q]
        output.note(f"there are more: {line(listed.command, *search, '--limit', str(MOST))}")


def _table(listed: Listed, items: Sequence[dict[str, Any]], width: int) -> Iterator[Line]:
    from hango.cli import table

    by_day = width < WITH_TIME
    rows = [[_cell(name, item.get(name), by_day=by_day) for name in listed.columns] for item in items]
    right = {i for i, name in enumerate(listed.columns) if isinstance(items[0].get(name), int)}
    names = {i for i, name in enumerate(listed.columns) if name in NAMES}
    heads = [_head(name, by_day=by_day) for name in listed.columns]
    return table.lines(heads, rows, width=width, right=right, names=names)


def _head(name: str, *, by_day: bool) -> str:
    return name.replace("_at", "" if by_day else " (UTC)")


def _cell(name: str, value: Any, *, by_day: bool) -> str:
    if name.endswith("_at"):
        return str(value)[: 10 if by_day else 16].replace("T", " ")
    return f"{value:,}" if isinstance(value, int) else str(value or "")
