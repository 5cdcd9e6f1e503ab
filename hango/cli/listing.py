"""What the list commands share: their options, one page of the API, and its table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import typer

from hango.cli.own_command import line

MOST = 500  # the API's own limit

Search = Annotated[str | None, typer.Option("--q", metavar="TEXT", help="Only those that hold this text.")]
Limit = Annotated[int, typer.Option("--limit", metavar="N", min=1, max=MOST, help="How many at most.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print the API's reply as it came.")]


@dataclass(frozen=True, slots=True)
class Listed:
    """A list of the API and the fields of an item that are shown; the last one is cut to the line."""

    path: str
    command: str
    columns: tuple[str, ...]
    none: str  # words for an empty list


def show(listed: Listed, *, q: str | None, limit: int, as_json: bool) -> None:
    """Print one page, and on stderr how to get more."""
    from hango.cli import output, replies, table
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
    rows = [[_cell(name, item.get(name)) for name in listed.columns] for item in page.data]
    right = {i for i, name in enumerate(listed.columns) if isinstance(page.data[0].get(name), int)}
    output.emit(table.lines([_head(name) for name in listed.columns], rows, width=output.width(), right=right))
    if page.next_cursor is not None and limit < MOST:
        search = [] if q is None else ["--q", q]
        output.note(f"there are more: {line(listed.command, *search, '--limit', str(MOST))}")


def _head(name: str) -> str:
    return name.replace("_at", " (UTC)")


def _cell(name: str, value: Any) -> str:
    if name.endswith("_at"):
        return str(value)[:16].replace("T", " ")
    return f"{value:,}" if isinstance(value, int) else str(value or "")
