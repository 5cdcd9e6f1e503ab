"""The generated blocks of docs/http-api.md and docs/authz.md, and docs/openapi.json: all from the table of routes."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from hango.api import authz
from hango.api.authz import PUBLIC, Access
from hango.api.endpoint import Row
from hango.api.openapi import document, reply_types, tag
from hango.api.routes import ROUTES


def routes() -> str:
    """A table a noun: what is asked, what it takes, what it answers."""
    made = []
    for noun in dict.fromkeys(tag(row) for row in ROUTES):
        made += [f"### {noun}", "", "| route | takes | answers | what it does |", "|---|---|---|---|"]
        made += [_route(row) for row in ROUTES if tag(row) == noun]
        made.append("")
    return "\n".join(made)


def accesses() -> str:
    rows = [f"| `{one.name}` | {one.who} |" for one in _accesses()]
    return "\n".join(["| access | who |", "|---|---|", *rows, ""])


def route_access() -> str:
    rows = [f"| `{row.method} {_path(row)}` | `{row.access.name}` |" for row in ROUTES]
    return "\n".join(["| route | access |", "|---|---|", *rows, ""])


def openapi() -> str:
    """docs/openapi.json, indented so that a change of it can be read in a review."""
    return msgspec.json.format(msgspec.json.encode(document(ROUTES)), indent=2).decode() + "\n"


def _route(row: Row) -> str:
    takes = [f"`{row.body.__name__}`"] if row.body else [row.takes.rstrip(".")] if row.takes else []
    if row.query:
        names = [f"`{field.alias or name}`" for name, field in row.query.model_fields.items()]
        takes.append(f"query {', '.join(names)}")
    statuses = "/".join(str(status) for status in sorted({row.status, *row.also}))
    answers = " ".join([statuses, " or ".join(f"`{_type_name(one)}`" for one in reply_types(row))]).strip()
    return f"| `{row.method} {_path(row)}` | {'; '.join(takes)} | {answers} | {row.summary} |"


def _path(row: Row) -> str:
    return row.path.replace(":path", "")


def _type_name(one: object) -> str:
    """`Listing[AgentOut]`; a document or a page has no type of its own."""
    if one in (dict, str):
        return {dict: "application/json", str: "text/html"}[one]
    inner = ", ".join(argument.__name__ for argument in getattr(one, "__args__", ()))
    name = getattr(one, "__name__", "")
    return f"{name}[{inner}]" if inner else name


def _accesses() -> Iterable[Access[object]]:
    used = {row.access.name for row in ROUTES}
    return [one for one in vars(authz).values() if isinstance(one, Access) and one.name in used | {PUBLIC.name}]
