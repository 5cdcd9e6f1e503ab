"""Tables of the reference: what an inspector would store that had nothing else to do. Filled from the product's answer.

With the same stored counts, a limit and the product must give the same parts and totals to the last one.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import psycopg

from bench import conversation
from bench.place import Client

SCHEMA = """
create table agents (id uuid primary key, model text not null);
create table sessions (id uuid primary key, agent_id uuid not null references agents (id), total integer not null);
create table overrides (
  id bigint generated always as identity primary key,
  agent_id uuid, session_id uuid, part text not null, action text not null, replacement text
);
create index on overrides (agent_id);
create index on overrides (session_id);
create table system_parts (
  agent_id uuid not null, at integer not null, part text not null, label text not null, text text not null,
  tokens integer not null, cached boolean not null,
  primary key (agent_id, at)
);
create table parts (
  session_id uuid not null, seq integer not null, role text not null, tokens integer not null, chars integer not null,
  partner integer, preview text not null,
  primary key (session_id, seq)
);
create table bodies (
  session_id uuid not null, seq integer not null, content text not null,
  primary key (session_id, seq)
);
"""


def fill(found: dict[str, Any]) -> None:
    """Make and fill the tables, when nobody has yet."""
    url, api = found["database_urls"]["reference"], Client(found["api_url"], found["api_key"])
    with psycopg.connect(url) as connection:
        if connection.execute("select to_regclass('bodies')").fetchone() != (None,):
            return
        connection.execute(SCHEMA)
        for at, (size, session_id) in enumerate(found["sessions"].items()):
            snapshot = api.ask_json("GET", f"/v1/sessions/{session_id}/context?count=estimate")
            if at == 0:
                _add_agent(connection, api, found["agent_id"], session_id, snapshot)
            _add_session(connection, found["agent_id"], session_id, int(size), snapshot)
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("vacuum analyze")


def _add_agent(
    connection: psycopg.Connection, api: Client, agent_id: str, session_id: str, snapshot: dict[str, Any]
) -> None:
    connection.execute("insert into agents values (%s, %s)", (agent_id, snapshot["model"]))
    for at, part in enumerate(snapshot["system"]):
        text = api.ask_json("GET", f"/v1/sessions/{session_id}/context?full={part['id']}")["content"]
        row = (agent_id, at, part["id"], part["label"], text, part["tokens"], part["cached_prefix"])
        connection.execute("insert into system_parts values (%s, %s, %s, %s, %s, %s, %s)", row)


def _add_session(
    connection: psycopg.Connection, agent_id: str, session_id: str, size: int, snapshot: dict[str, Any]
) -> None:
    total = snapshot["groups"]["messages"]["after"]
    connection.execute("insert into sessions values (%s, %s, %s)", (session_id, agent_id, total))
    with connection.cursor() as cursor, cursor.copy("copy parts from stdin") as copy:
        for part in snapshot["messages"]:
            seq = part["seq"]
            copy.write_row(
                (session_id, seq, part["role"], part["tokens"], part["chars"], _partner(seq), part["preview"])
            )
    with connection.cursor() as cursor, cursor.copy("copy bodies from stdin") as copy:
        for seq, content in enumerate(_contents(size), 1):
            copy.write_row((session_id, seq, content))


def _partner(seq: int) -> int | None:
    """In every turn of four the second message calls and the third answers."""
    return {2: seq + 1, 3: seq - 1}.get(seq % 4)


def _contents(size: int) -> Iterator[str]:
    for message in conversation.messages(size):
        yield json.dumps(message["content"], separators=(",", ":"))
