"""A desk: a session with one tool call, its agent, their owner, and one line for each thing to do with overrides."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import httpx2

from tests.people import JSON, Person

MEMORY = "/memories/AGENTS.md"
LOOK = {"name": "look", "description": "Looks into a drawer.", "input_schema": {"type": "object"}}
COUNT = {"name": "count", "description": "Counts what is there.", "input_schema": {"type": "object"}}
HISTORY = [
    {"role": "user", "content": "Where are the bolts?"},
    {"role": "assistant", "content": [{"type": "tool_use", "id": "call_0", "name": "look", "input": {"drawer": 3}}]},
    {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "call_0", "content": "Forty bolts."}]},
    {"role": "assistant", "content": "Forty bolts are in drawer 3."},
    {"role": "user", "content": "And the nuts?"},
]


@dataclass(frozen=True)
class Desk:
    """A session with one tool call, its agent, and their owner."""

    owner: Person
    agent_id: str
    session_id: str

    @property
    def of_agent(self) -> str:
        return f"/v1/agents/{self.agent_id}/context-overrides"

    @property
    def of_session(self) -> str:
        return f"/v1/sessions/{self.session_id}/context-overrides"

    async def context(self, query: str = "") -> dict[str, Any]:
        return as_json(await self.owner.get(f"/v1/sessions/{self.session_id}/context{query}"))

    async def preview(self, **change: Any) -> dict[str, Any]:
        return as_json(await self.owner.post(f"/v1/sessions/{self.session_id}/context/preview", json=change))

    async def sent(self, **change: Any) -> list[str]:
        snapshot = await self.preview(**change)
        return [part["id"] for group in ("system", "tools", "messages") for part in snapshot[group] if part["sent"]]

    async def part(self, id: str) -> dict[str, Any]:
        snapshot = await self.context()
        return next(part for group in ("system", "tools", "messages") for part in snapshot[group] if part["id"] == id)

    async def stored(self) -> bytes:
        return (await self.owner.get(f"/v1/sessions/{self.session_id}/messages")).content

    async def wire(self) -> bytes:
        return (await self.owner.get(f"/v1/sessions/{self.session_id}/context?format=provider")).content

    async def write(self, path: str, text: str) -> None:
        assert (await self.owner.put(f"/v1/agents/{self.agent_id}/files{path}", json={"content": text})).is_success

    async def change(self, **fields: Any) -> None:
        assert (await self.owner.patch(f"/v1/agents/{self.agent_id}", json=fields)).is_success

    async def append(self, *messages: JSON) -> None:
        path = f"/v1/sessions/{self.session_id}/messages"
        assert (await self.owner.post(path, json={"messages": list(messages)})).status_code == 201


async def make_desk(owner: Person, model: str = "offline/extract", **session: Any) -> Desk:
    agent = await owner.agent(
        model=model,
        system_prompt="You keep the stock.",
        tools=[LOOK, COUNT],
        builtin=["memory", "skills"],
        memory=[MEMORY],
    )
    session = await owner.session(agent["id"], **{"messages": HISTORY, **session})
    desk = Desk(owner, agent["id"], session["id"])
    await desk.write(MEMORY, "The owner is away on Mondays.")
    return desk


def as_json(reply: httpx2.Response) -> dict[str, Any]:
    assert reply.status_code == 200, reply.text
    made: dict[str, Any] = reply.json()
    return made


def exclude(*parts: str) -> list[dict[str, str]]:
    return [{"part": part, "action": "exclude"} for part in parts]


def swap(part: str, text: str) -> list[dict[str, str]]:
    return [{"part": part, "action": "replace", "replacement": text}]


async def put(desk: Desk, path: str, overrides: list[dict[str, str]], **options: Any) -> httpx2.Response:
    return await desk.owner.put(path, json={"overrides": overrides}, **options)


def without_times(body: dict[str, Any]) -> dict[str, Any]:
    return {**body, "overrides": [{**one, "created_at": ""} for one in body["overrides"]]}


def named(reply: httpx2.Response) -> tuple[int, str, list[tuple[str, str | None]]]:
    """Status, code, and reason and part of each fault."""
    body = reply.json()
    return reply.status_code, body["code"], [(one["reason"], one.get("part")) for one in body["errors"]]
