"""What came of one step of a case: the answer, and what can be seen of the session afterwards."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any
from urllib.parse import quote

import httpx2

from hango.messages import Block
from tests.cases.making import Made
from tests.cases.world import Person, Server

CHANGE_KEYS = ("exclude", "replace", "message")


@dataclass
class Outcome:
    """`made` is None when what was given was refused already. `change` are unsaved overrides of the look."""

    server: Server
    person: Person
    reply: httpx2.Response | None = None
    made: Made | None = None
    change: dict[str, Any] | None = None
    exit_code: int | None = None
    output: str = ""
    columns: int | None = None
    seconds: float = 0.0
    answers_asked: int = 0
    rows_changed: list[str] = field(default_factory=list)
    others: list[bytes] = field(default_factory=list)  # bodies to be compared with

    @property
    def accepted(self) -> bool:
        if self.exit_code is not None:
            return self.exit_code == 0
        return self.reply is not None and self.reply.is_success

    @property
    def body(self) -> bytes:
        return self.reply.content if self.reply is not None else b""

    @cached_property
    def json(self) -> Any:
        return json.loads(self.body)

    @cached_property
    def snapshot(self) -> dict[str, Any]:
        """The next request of the session, with the look's overrides."""
        return dict(self.look(""))

    @cached_property
    def wire(self) -> dict[str, Any]:
        """The body that the provider would get."""
        return dict(self.look("format=provider")["request"])

    def see(self) -> None:
        """Look at everything once: what is seen stays as it is now."""
        _ = (self.snapshot, self.wire, self.stored)

    @property
    def added(self) -> list[str]:
        """The parts that leave with a partner: of a PUT's answer, and of the snapshot, which must agree."""
        paired = [part["id"] for part in self.parts if part["paired"]]
        if isinstance(self.json.get("added"), list):
            assert [one["part"] for one in self.json["added"]] == paired
        return paired

    def full(self, part: str) -> dict[str, Any]:
        return dict(self.look(f"full={quote(part, safe='')}"))

    @cached_property
    def stored(self) -> list[dict[str, Any]]:
        assert self.made is not None
        path = f"/v1/sessions/{self.made.session_id}/messages?limit=500"
        return list(self.person.send(self.server, "GET", path).raise_for_status().json()["data"])

    def look(self, query: str) -> Any:
        return json.loads(self.look_raw(query))

    def look_raw(self, query: str) -> bytes:
        assert self.made is not None
        path = f"/v1/sessions/{self.made.session_id}/context"
        if self.change is None:
            reply = self.person.send(self.server, "GET", f"{path}?{query}")
        else:
            reply = self.person.send(self.server, "POST", f"{path}/preview?{query}", self.change)
        return reply.raise_for_status().content

    @property
    def parts(self) -> list[dict[str, Any]]:
        snapshot = self.snapshot
        return [*snapshot["system"], *snapshot["tools"], *snapshot["messages"]]

    def part(self, id: str) -> dict[str, Any]:
        found = [part for part in self.parts if part["id"] == id]
        assert len(found) == 1, f"{id} is listed {len(found)} times"
        return found[0]

    @cached_property
    def wire_messages(self) -> list[tuple[str, list[dict[str, Any]]]]:
        """Role and blocks of each message on the wire, cache marks apart."""
        return [(message["role"], _blocks(message["content"])) for message in self.wire["messages"]]

    def stored_blocks(self, part: str) -> list[dict[str, Any]]:
        seq = int(part.removeprefix("message:"))
        return next(_blocks(message["content"]) for message in self.stored if message["seq"] == seq)

    def on_the_wire(self, part: str) -> list[list[dict[str, Any]]]:
        """The wire's messages that hold a block of a stored message; ids and names may be rewritten there."""
        wanted = [essence(block) for block in self.stored_blocks(part)]
        return [blocks for _, blocks in self.wire_messages if any(essence(block) in wanted for block in blocks)]


def essence(block: dict[str, Any]) -> str:
    """A block without what a wire may rewrite."""
    kept = {key: value for key, value in block.items() if key not in ("id", "tool_use_id", "name", "cache_control")}
    if isinstance(kept.get("text"), str):
        kept["text"] = kept["text"].rstrip()
    return json.dumps(kept, sort_keys=True)


def _blocks(content: Any) -> list[dict[str, Any]]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else [dict(block) for block in content]


def as_blocks(blocks: list[dict[str, Any]]) -> tuple[Block, ...]:
    return tuple(Block.of(json.dumps(block)) for block in blocks)
