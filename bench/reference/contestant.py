"""The limits of an inspect: the least work that gives the same answer, by four ways of storing a history.

No rules, no tenants, no checks: what the product takes beyond these is the price of its promises.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import msgspec
import psycopg

from bench import shape
from bench.contestant import Work, place, serve
from bench.place import Client
from bench.reference import tables
from bench.reference.snapshots import Head, Part, copied, encode, snapshot, system_part

PAGE = 200

SESSION = "select s.total, a.model from sessions s join agents a on a.id = s.agent_id where s.id = %s"
OVERRIDES = "select part, action, replacement from overrides where session_id = %s or agent_id = %s"
SYSTEM = "select part, label, text, tokens, cached from system_parts where agent_id = %s order by at"
PARTS = "select seq, role, tokens, chars, partner, preview from parts where session_id = %s order by seq"
BODIES = (
    "select p.seq, p.role, p.tokens, b.content from parts p join bodies b using (session_id, seq)"
    " where p.session_id = %s order by p.seq"
)
TOTAL = "select sum(tokens) from parts where session_id = %s"
WINDOW = "select seq, role, tokens, chars, preview from parts where session_id = %s and seq > %s order by seq limit %s"


class Text(msgspec.Struct, tag="text", gc=False):
    text: str


class ToolUse(msgspec.Struct, tag="tool_use"):
    id: str
    name: str
    input: msgspec.Raw


class ToolResult(msgspec.Struct, tag="tool_result"):
    tool_use_id: str
    content: list[Text]


read_blocks = msgspec.json.Decoder(list[Text | ToolUse | ToolResult]).decode


def main() -> None:
    found = place()
    tables.fill(found)
    connection = psycopg.connect(found["database_urls"]["reference"], autocommit=True)
    connection.prepare_threshold = 0
    tools = _tools(found)

    def of(answer: Callable[..., bytes], size: int) -> Work:
        session_id, agent_id = found["sessions"][str(size)], found["agent_id"]
        return Work(lambda: answer(connection, session_id, agent_id, tools, size // 2), shape.facts)

    serve({"digests": partial(of, by_digests), "bodies": partial(of, by_bodies), "window": partial(of, by_window)})


def by_digests(connection: psycopg.Connection, session_id: str, agent_id: str, tools: list[Part], after: int) -> bytes:
    """Counts and previews stored at the write; no body is read."""
    read = head(connection, session_id, agent_id)
    total, parts, partners = 0, [], []
    for seq, role, tokens, chars, partner, preview in connection.execute(PARTS, (session_id,), binary=True).fetchall():
        total += tokens
        parts.append(message_part(seq, role, tokens, chars, preview))
        partners.append(partner)
    return encode(snapshot(read, [copied(part) for part in tools], parts, total))


def by_bodies(connection: psycopg.Connection, session_id: str, agent_id: str, tools: list[Part], after: int) -> bytes:
    """Every body is read and shown anew; only the counts are stored. Calls and results are paired by id."""
    read = head(connection, session_id, agent_id)
    total, parts, calls = 0, [], {}
    for seq, role, tokens, content in connection.execute(BODIES, (session_id,), binary=True).fetchall():
        shown = []
        for block in read_blocks(content):
            if type(block) is Text:
                shown.append(block.text)
            elif type(block) is ToolUse:
                calls[block.id] = seq
                shown.append(f"{block.name}({bytes(block.input).decode()})")
            elif type(block) is ToolResult:
                assert calls.pop(block.tool_use_id) == seq - 1
                shown.append("\n".join(inner.text for inner in block.content))
        text = "\n".join(shown)
        total += tokens
        parts.append(message_part(seq, role, tokens, len(text), text[:200]))
    return encode(snapshot(read, [copied(part) for part in tools], parts, total))


def by_window(connection: psycopg.Connection, session_id: str, agent_id: str, tools: list[Part], after: int) -> bytes:
    """A page from the middle, with the totals of the whole added up by PostgreSQL."""
    read = head(connection, session_id, agent_id)
    total: Any = connection.execute(TOTAL, (session_id,)).fetchone()
    rows = connection.execute(WINDOW, (session_id, after, PAGE), binary=True).fetchall()
    made = snapshot(read, tools, [message_part(*row) for row in rows], int(total[0]))
    made.system, made.tools = [], []
    return encode(made)


def head(connection: psycopg.Connection, session_id: str, agent_id: str) -> Head:
    """Three reads in one round trip."""
    with connection.pipeline():
        session, overrides, system = connection.cursor(), connection.cursor(), connection.cursor()
        session.execute(SESSION, (session_id,))
        overrides.execute(OVERRIDES, (session_id, agent_id))
        system.execute(SYSTEM, (agent_id,))
        row: Any = session.fetchone()
        return Head(row[1], row[0], overrides.fetchall(), [system_part(*found) for found in system.fetchall()])


def message_part(seq: int, role: str, tokens: int, chars: int, preview: str) -> Part:
    return Part(
        f"message:{seq}", "message", f"#{seq} {role}", preview, tokens, True, True, "none",
        False, False, False, chars, role, seq,
    )  # fmt: skip


def _tools(found: dict[str, Any]) -> list[Part]:
    """Parts of the tools, kept from the start: a definition never changes."""
    session_id = next(iter(found["sessions"].values()))
    shown = Client(found["api_url"], found["api_key"]).ask("GET", f"/v1/sessions/{session_id}/context?group=tools")
    return msgspec.convert(msgspec.json.decode(shown)["tools"], list[Part])


if __name__ == "__main__":
    main()
