#!/usr/bin/env python3
"""A process plugin of sqlc: writes a module of typed psycopg functions for every query file. Standard library only.

A query becomes a constant with its text (parameters in psycopg's form), a frozen row where it returns more than one
column, and an async function that takes the connection and the parameters by name.
"""

from __future__ import annotations

import base64
import json
import re
import sys
from typing import Any

TYPES = {
    "bool": "bool",
    "bytea": "bytes",
    "date": "date",
    "float8": "float",
    "int4": "int",
    "int8": "int",
    "jsonb": "Any",
    "numeric": "Decimal",
    "text": "str",
    "timestamptz": "datetime",
    "uuid": "UUID",
}
ALIASES = {"bigint": "int8", "boolean": "bool", "integer": "int4", "int": "int4"}
HEAD = '''"""Made by sqlc from {file}. Do not edit: change the queries, then run tools/generate_sql."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

from psycopg import AsyncConnection
from psycopg.rows import args_row, scalar_row

__all__ = {names!r}
'''


def main() -> None:
    """Read sqlc's request from stdin, write its response to stdout."""
    request = json.load(sys.stdin)
    modules: dict[str, list[dict[str, Any]]] = {}
    for query in request["queries"]:
        modules.setdefault(query["filename"], []).append(query)
    files = [
        {"name": f"{file.removesuffix('.sql')}.py", "contents": _encoded(_module(file, queries))}
        for file, queries in sorted(modules.items())
    ]
    json.dump({"files": files}, sys.stdout)


def _encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def _module(file: str, queries: list[dict[str, Any]]) -> str:
    names = sorted(query["name"] for query in queries)
    return "\n\n".join([HEAD.format(file=file, names=names), *map(_query, queries)]) + "\n"


def _query(query: dict[str, Any]) -> str:
    name, columns, params = query["name"], query.get("columns", []), query.get("params", [])
    constant = name.upper()
    parts = [f'{constant} = """\\\n{_sql(query["text"], params)}\n"""\n']
    row = "".join(word.title() for word in name.split("_")) + "Row"
    if len(columns) > 1:
        fields = "\n".join(f"    {column['name']}: {_type(column, name)}" for column in columns)
        parts.append(f"@dataclass(frozen=True, slots=True)\nclass {row}:\n{fields}\n")
    parts.append(_function(query, row))
    return "\n\n".join(parts)


def _sql(text: str, params: list[dict[str, Any]]) -> str:
    # psycopg reads `%`, so one that is meant is doubled; sqlc numbers the parameters, psycopg names them.
    names = {param["number"]: param["column"]["name"] for param in params}
    return re.sub(r"\$(\d+)", lambda match: f"%({names[int(match[1])]})s", text.strip().replace("%", "%%"))


def _function(query: dict[str, Any], row: str) -> str:
    name, columns, params = query["name"], query.get("columns", []), query.get("params", [])
    names = {param["column"]["name"]: _parameter(param["column"], name) for param in params}
    signature = "".join(f"    {param}: {type},\n" for param, type in names.items())
    star = "    *,\n" if signature else ""
    one = _type(columns[0], name) if len(columns) == 1 else row
    result, last = {
        ":one": (f"{one} | None".replace(" | None | None", " | None"), "return await cursor.fetchone()"),
        ":many": (f"list[{one}]", "return await cursor.fetchall()"),
        ":exec": ("None", None),
        ":execrows": ("int", "return cursor.rowcount"),
    }[query["cmd"]]
    options = []
    if columns:
        options.append("row_factory=scalar_row" if len(columns) == 1 else f"row_factory=args_row({row})")
    if any(column["type"]["name"] == "bytea" for column in columns):
        # As text, bytes come as twice as many hexadecimal digits.
        options.append("binary=True")
    values = ", ".join(
        f'"{param}": list({param})' if type.startswith("Sequence") else f'"{param}": {param}'
        for param, type in names.items()
    )
    comment = " ".join(line.strip() for line in query.get("comments", []))
    lines = [
        f"async def {name}(\n    conn: AsyncConnection[Any],\n{star}{signature}) -> {result}:",
        f'    """{comment}"""',
        f"    cursor = conn.cursor({', '.join(options)})",
        f"    await cursor.execute({name.upper()}, {{{values}}})",
    ]
    return "\n".join([*lines, f"    {last}" if last else ""]).rstrip() + "\n"


def _parameter(column: dict[str, Any], query: str) -> str:
    if column.get("is_array"):
        # Elements may be null whatever sqlc thinks of the array.
        return f"Sequence[{_scalar(column, query)} | None]"
    return _type(column, query)


def _type(column: dict[str, Any], query: str) -> str:
    scalar = _scalar(column, query)
    whole = f"list[{scalar}]" if column.get("is_array") else scalar
    return whole if column.get("not_null") else f"{whole} | None"


def _scalar(column: dict[str, Any], query: str) -> str:
    name = column["type"]["name"].removeprefix("pg_catalog.")
    try:
        return TYPES[ALIASES.get(name, name)]
    except KeyError:
        sys.exit(f"query {query}: column {column['name']} has the type {name!r}, which needs a cast")


if __name__ == "__main__":
    main()
