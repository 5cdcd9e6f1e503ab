"""Inspect over a made population of agents and sessions, through HTTP, against the request that the chain captures."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given, settings

from hango.chain import context
from hango.chain.context import Drafted
from hango.chain.deps import Deps
from hango.chain.digest import digest
from hango.chain.draft import Bodies
from hango.chain.estimator import count, scaled, tool_text
from hango.chain.models import Models
from hango.chain.providers.registry import Providers
from hango.config import Settings
from hango.domain import SessionID
from hango.messages import Request
from hango.store import api_keys, system
from hango.store.connection import Store
from tests.cases import population
from tests.cases.checks import always
from tests.cases.making import Made
from tests.cases.outcome import Outcome
from tests.cases.population import Given, populations
from tests.cases.world import Person, World
from tests.drafts import recounted

EXAMPLES = 30  # each is some thirty requests to live processes
PAGE = 2


@dataclass(frozen=True, slots=True)
class Captured:
    """What the real chain hands to the provider's adapter, and what it was made from."""

    drafted: Drafted
    bodies: Bodies
    request: Request


@dataclass(frozen=True, slots=True)
class Chain:
    """The chain in this process, a third one beside the world's."""

    runner: asyncio.Runner
    deps: Deps

    def capture(self, made: Made) -> Captured:
        return self.runner.run(self._capture(made))

    async def _capture(self, made: Made) -> Captured:
        key = api_keys.parse_key(made.owner.key or "")
        assert key is not None
        async with self.deps.store.system() as scope:
            found = await system.principal_for_key(scope, key.prefix)
        assert found is not None
        async with self.deps.store.read(found[0]) as scope:
            drafted = await context.draft_next_call(scope, self.deps, SessionID(UUID(made.session_id)))
            bodies = await context.load_bodies(scope, drafted)
        return Captured(drafted, bodies, context.request_of(drafted, bodies))


@pytest.fixture(scope="module")
def chain(settings: Settings, world: World) -> Iterator[Chain]:
    with asyncio.Runner() as runner:
        assert settings.database_url is not None
        store = runner.run(Store.open(settings.database_url.reveal(), max_size=1))
        models = Models.load()
        yield Chain(runner, Deps(settings, store, Providers(settings, models), models))
        runner.run(store.close())


@pytest.fixture(scope="module")
def owner(world: World) -> Person:
    return world.admin.member(world.server)


@given(given=populations())
@settings(max_examples=EXAMPLES)
def test_inspect(given: Given, world: World, chain: Chain, owner: Person) -> None:
    """The inspect response lists every system contributor, tool and message of the next request, and the sum of the
    parts equals the estimate of the captured request. An inspect calls no provider and writes no row. The same state
    gives the same bytes in every process."""
    made = population.create(given, world.server, owner)
    rows, asked = world.rows(), len(world.provider.seen)

    reply = owner.send(world.server, "GET", f"/v1/sessions/{made.session_id}/context")
    first = Outcome(world.server, owner, reply=reply, made=made)
    always(first)
    _lists_everything(first, given)
    _has_stable_bytes(first, world)
    _pages_are_the_whole(first)
    _equals_the_captured_request(first, chain.capture(made))

    assert world.rows() == rows
    assert len(world.provider.seen) == asked


def _lists_everything(outcome: Outcome, given: Given) -> None:
    snapshot = outcome.snapshot
    assert [part["id"] for part in snapshot["system"]] == given.expected_system()
    assert [part["id"] for part in snapshot["tools"]] == given.expected_tools()
    assert [part["id"] for part in snapshot["messages"]] == given.expected_messages()
    assert outcome.stored == [
        {"seq": seq, "run_id": None, "created_at": stored["created_at"], "model": None, **body}
        for seq, (body, stored) in enumerate(zip(population.bodies(given.history), outcome.stored, strict=True), 1)
    ]


def _has_stable_bytes(first: Outcome, world: World) -> None:
    """Another process, and a look without changes, give the very same."""
    second = Outcome(world.second, first.person, made=first.made)
    unchanged = Outcome(world.second, first.person, made=first.made, change={})
    for query in ("format=provider", "count=estimate"):
        assert second.look_raw(query) == first.look_raw(query) == unchanged.look_raw(query)
    assert second.snapshot["request_sha256"] == first.snapshot["request_sha256"]


def _pages_are_the_whole(outcome: Outcome) -> None:
    """Pages hold the parts of the whole, each once, and the totals of the whole."""
    whole, after = outcome.snapshot, None
    parts: list[dict[str, Any]] = []
    while after is not None or not parts:
        page = outcome.look(f"group=messages&limit={PAGE}" + ("" if after is None else f"&after={after}"))
        assert {key: page[key] for key in ("groups", "total_after", "request_sha256", "problems")} == {
            key: whole[key] for key in ("groups", "total_after", "request_sha256", "problems")
        }
        parts += page["messages"]
        after = page["next_after"]
        if not page["messages"]:
            break
    assert parts == whole["messages"]


def _equals_the_captured_request(outcome: Outcome, captured: Captured) -> None:
    drafted, request, snapshot = captured.drafted, captured.request, outcome.snapshot
    factor = drafted.state.factor
    assert drafted.sha256 == snapshot["request_sha256"]
    system = {part["id"]: part["tokens"] for part in snapshot["system"]}
    sent = [part["id"] for part in snapshot["system"] if part["sent"]]
    assert [system[id] for id in sent] == [scaled(count([block.text])[0], factor) for block in request.system]
    tools = {part["id"]: part["tokens"] for part in snapshot["tools"] if part["sent"]}
    assert tools == {f"tool:{tool.name}": scaled(count([tool_text(tool)])[0], factor) for tool in request.tools}
    messages = {part["id"]: part["tokens"] for part in snapshot["messages"] if part["sent"]}
    summary = {0: messages.pop("summary")} if "summary" in messages else {}
    assert {f"message:{seq}": tokens for seq, tokens in recounted(request, captured.bodies, factor).items()} == messages
    assert [item.tokens for item in drafted.draft.messages if item.seq == 0] == [
        count([text])[0] for seq, text in drafted.draft.texts.items() if seq in summary
    ]
    assert snapshot["total_after"] == sum(
        [*(system[id] for id in sent), *tools.values(), *messages.values(), *summary.values()]
    )
    for item in drafted.draft.messages:
        if item.seq:
            again = digest(item.role, captured.bodies[item.seq], item.model)
            assert (again.sha256, again.tokens, again.preview, again.blocks) == (
                item.sha256,
                item.tokens,
                item.preview,
                item.blocks,
            )
