"""Totals by a provider's own counter, through HTTP, against a local server that counts messages and blocks."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from typing import Any

import pytest
from aiohttp import web

from hango.config import Secret, Settings
from tests.people import Person, serve
from tests.providers_server import FakeProvider, fake_provider, says

HISTORY = [
    {"role": "user", "content": "One."},
    {"role": "assistant", "content": "Two."},
    {"role": "user", "content": "Three."},
]


@dataclass(frozen=True)
class Desk:
    """A caller whose agent's provider counts, and that provider."""

    caller: Person
    provider: FakeProvider

    async def agent(self, *system: str) -> str:
        blocks = [{"name": name, "text": f"You are {name}."} for name in system]
        made = await self.caller.agent(model="anthropic/claude-sonnet-4-5", builtin=[], system=blocks)
        return str(made["id"])

    async def session(self, agent_id: str) -> str:
        return str((await self.caller.session(agent_id, messages=HISTORY))["id"])

    async def totals(self, session_id: str, unsaved: dict[str, Any] | None = None) -> tuple[str, int, int]:
        path = f"/v1/sessions/{session_id}/context"
        if unsaved is None:
            reply = await self.caller.get(path)
        else:
            reply = await self.caller.post(f"{path}/preview?count=provider", json=unsaved)
        assert reply.status_code == 200, reply.text
        shown = reply.json()
        return shown["counted"], shown["total_before"], shown["total_after"]


async def counts(request: web.Request) -> web.StreamResponse:
    """A hundred for each system block, one for each message."""
    body = await request.json()
    return await says({"input_tokens": 100 * len(body.get("system", [])) + len(body["messages"])})(request)


@pytest.fixture
async def desk(settings: Settings) -> AsyncIterator[Desk]:
    async with fake_provider(counts) as provider:
        counting = replace(settings, anthropic_api_key=Secret("sk-test"), anthropic_base_url=provider.url)
        async with serve(counting) as api:
            yield Desk(await api.admin(), provider)


async def test_a_provider_counts_the_totals_before_and_after_overrides(desk: Desk) -> None:
    """The request total uses the provider's TokenCounter when the provider has one. Totals before and after."""
    session = await desk.session(await desk.agent("agent", "style"))

    assert await desk.totals(session) == ("provider", 203, 203)
    assert await desk.totals(session, {"exclude": ["system:style"]}) == ("provider", 203, 103)
    assert await desk.totals(session, {"exclude": ["message:2", "message:3"]}) == ("provider", 203, 201)
    assert await desk.totals(session, {"replace": {"message:1": "Else."}}) == ("provider", 203, 203)


async def test_a_count_is_kept_by_the_request_it_is_of(desk: Desk) -> None:
    """The counter's answer is kept by request hash: equal requests are counted once, whatever they were made from."""
    short = await desk.session(await desk.agent("agent"))
    long = await desk.session(await desk.agent("agent", "style"))
    assert await desk.totals(short) == ("provider", 103, 103)
    asked = len(desk.provider.seen)

    assert await desk.totals(short) == ("provider", 103, 103)
    assert len(desk.provider.seen) == asked
    assert await desk.totals(long, {"exclude": ["system:style"]}) == ("provider", 203, 103)
    assert len(desk.provider.seen) == asked + 1
