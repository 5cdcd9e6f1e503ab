"""A picker at work on a database of a test, with a model that the test scripts, and what became of its tries."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any
from uuid import UUID

from aiohttp import web

from hango.agent_definition import AgentDefinition
from hango.chain import tries as rules
from hango.chain.deps import Deps
from hango.chain.models import Models
from hango.chain.providers.registry import Providers
from hango.chain.tries import Variant
from hango.config import Secret, Settings
from hango.domain import BatchID, Principal, SessionID, TryID
from hango.store import context_bases, quotas, sessions, tries, try_batches
from hango.store.connection import Scope, Store
from hango.store.ids import new_id
from hango.tries import ENDED, Admission, Changes, NewRequest, Texts, Try, TryStatus
from hango.workers.picker import Picker
from tests.providers_server import Answer, FakeProvider, chat
from tests.rows import make_agent, make_session

MODEL = "openai/gpt-5"
MOST_TOKENS = 100
SECONDS = 20.0
POLL_SECONDS = 0.01


def changed(
    exclude: Sequence[str] = (),
    message: str | None = None,
    model: str | None = None,
    replaced: Mapping[str, str] = MappingProxyType({}),
) -> Variant:
    """A variant that asks for this."""
    changes = Changes(tuple(exclude), tuple(replaced))
    return Variant(None, rules.wishes_of(changes, Texts(replaced, message), model))


PLAIN = changed()


@dataclass(frozen=True, slots=True)
class Work:
    """`picker` claims from a database that nobody else's claims from."""

    deps: Deps
    picker: Picker

    @property
    def store(self) -> Store:
        return self.deps.store


@asynccontextmanager
async def open_deps(settings: Settings) -> AsyncIterator[Deps]:
    assert settings.database_url is not None
    store = await Store.open(settings.database_url.reveal(), max_size=8)
    models = Models.load(None)
    providers = Providers(settings, models)
    try:
        yield Deps(settings, store, providers, models)
    finally:
        await providers.close()
        await store.close()


@asynccontextmanager
async def picking(deps: Deps) -> AsyncIterator[Work]:
    """A worker's inside, without its doorbell, when its first look is over; ends in order with the block."""
    picker = Picker(deps)
    picker.start()
    try:
        await picker.ring()
        yield Work(deps, picker)
    finally:
        await picker.stop()


async def die(picker: Picker) -> None:
    """As a killed process: the calls under way break off, and nothing is written down."""
    stopping = asyncio.create_task(picker.stop())
    await asyncio.sleep(0)
    stopping.cancel()
    await asyncio.wait([stopping])


def asking(settings: Settings, fake: FakeProvider, **others: Any) -> Settings:
    """Settings whose provider `openai` is the fake."""
    return replace(settings, openai_base_url=f"{fake.url}/v1", openai_api_key=Secret("a key"), **others)


@dataclass(frozen=True, slots=True)
class Asker:
    """A member with a session, who tries things on it."""

    deps: Deps
    principal: Principal
    session_id: SessionID

    async def ask(self, variant: Variant = PLAIN, times: int = 1, **limits: Any) -> list[TryID]:
        """Single tries, accepted as a POST does."""
        async with self.deps.store.begin(self.principal) as scope:
            planned = await rules.plan(self.deps, await rules.gather(scope, self.deps, self.session_id, [variant]))
            base_id = await context_bases.find_or_create(scope, planned.base)
            made: list[TryID] = []
            for _ in range(times):
                admitted = await self._admitted(scope, planned.requests, 1, **limits)
                made += await tries.create(scope, self.session_id, base_id, planned.requests, admitted)
        return made

    async def ask_batch(self, variants: Sequence[Variant], repeats: int = 1, **limits: Any) -> list[TryID]:
        async with self.deps.store.begin(self.principal) as scope:
            planned = await rules.plan(self.deps, await rules.gather(scope, self.deps, self.session_id, variants))
            base_id = await context_bases.find_or_create(scope, planned.base)
            admitted = await self._admitted(scope, planned.requests, repeats, **limits)
            batch_id, count = BatchID(new_id()), len(variants) * repeats
            await try_batches.create(scope, batch_id, self.session_id, base_id, label=None, tries=count)
            return await tries.create(
                scope, self.session_id, base_id, planned.requests, admitted, repeats=repeats, batch_id=batch_id
            )

    async def _admitted(
        self,
        scope: Scope,
        requests: Sequence[NewRequest],
        repeats: int,
        *,
        ttl: float = 60.0,
        seconds: float = 30.0,
        traceparent: str | None = None,
    ) -> Admission:
        tokens = repeats * sum(request.reserved for request in requests)
        return Admission(
            ttl_seconds=ttl,
            timeout_seconds=seconds,
            retention_seconds=3600.0,
            quota_period=await quotas.reserve(scope, tokens),
            traceparent=traceparent,
        )

    async def look(self, try_id: UUID) -> Try:
        async with self.deps.store.read(self.principal) as scope:
            found = await tries.get(scope, try_id)
        assert found is not None
        return found

    async def until(self, try_ids: Sequence[UUID], statuses: frozenset[TryStatus] = ENDED) -> list[Try]:
        """The tries, once all have one of these statuses."""
        async with asyncio.timeout(SECONDS):
            return [await self._once(try_id, statuses) for try_id in try_ids]

    async def _once(self, try_id: UUID, statuses: frozenset[TryStatus]) -> Try:
        while True:
            if (one := await self.look(try_id)).status in statuses:
                return one
            await asyncio.sleep(POLL_SECONDS)

    async def cancel(self, try_id: UUID) -> None:
        async with self.deps.store.begin(self.principal) as scope:
            await tries.cancel(scope, try_id=try_id)

    async def turns(self) -> tuple[int, object]:
        """Messages and last run of the session: what a try never touches."""
        async with self.deps.store.read(self.principal) as scope:
            found = await sessions.get(scope, self.session_id)
        assert found is not None
        return found.messages, found.last_run


async def make_asker(deps: Deps, principal: Principal, *, model: str = MODEL, texts: Sequence[str] = ()) -> Asker:
    """Somebody whose agent answers with at most MOST_TOKENS."""
    definition = AgentDefinition(model=model, builtin=frozenset(), max_output_tokens=MOST_TOKENS)
    async with deps.store.begin(principal) as scope:
        agent = await make_agent(scope, definition=definition)
        session = await make_session(scope, agent, texts or ["Where are the bolts?", "In drawer 3.", "And the nuts?"])
    return Asker(deps, principal, session.id)


@dataclass(slots=True)
class HeldBack:
    """An answer that comes when the test says so; it counts the calls that came, and those that are under way."""

    reply: Any
    status: int = 200
    came: int = 0
    under_way: int = 0
    most: int = 0  # at once
    gone: int = 0  # callers that left before the answer
    free: asyncio.Event = field(default_factory=asyncio.Event)

    async def __call__(self, _: web.Request) -> web.StreamResponse:
        self.came += 1
        self.under_way += 1
        self.most = max(self.most, self.under_way)
        try:
            await self.free.wait()
        except asyncio.CancelledError:
            self.gone += 1
            raise
        finally:
            self.under_way -= 1
        return web.json_response(self.reply, status=self.status)


def held_back(text: str = "In drawer 4.") -> HeldBack:
    return HeldBack(chat(text))


def in_turn(*answers: Answer) -> Answer:
    """One answer after the other; the last one stays."""
    left = list(answers)

    async def answer(request: web.Request) -> web.StreamResponse:
        return await (left.pop(0) if len(left) > 1 else left[0])(request)

    return answer
