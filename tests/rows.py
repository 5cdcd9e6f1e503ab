"""Things to test the store with, made through the store: tenants, members, agents, sessions, messages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from hango.agent_definition import AgentDefinition
from hango.chain.digest import digest
from hango.domain import Agent, FileVersion, Principal, Role, RunID, Session
from hango.messages import MessageRole, content_json, text_block
from hango.runs import NewRun
from hango.store import agents, api_keys, context_bases, messages, runs, sessions, system, users
from hango.store.connection import Scope, Store
from hango.store.context_bases import BaseFile
from hango.store.ids import new_id
from hango.store.messages import NewMessage

DEFINITION = AgentDefinition(model="offline/extract")


async def make_tenant(store: Store, *, quota_tokens: int | None = None) -> Principal:
    """The first admin of a new tenant."""
    async with store.system() as scope:
        made = await system.create_tenant(scope, "a tenant", quota_tokens=quota_tokens, admin_name="an admin")
        key = api_keys.parse_key(made.api_key)
        assert key is not None
        found = await system.principal_for_key(scope, key.prefix)
    assert found is not None
    return found[0]


async def make_member(store: Store, admin: Principal, role: Role = Role.MEMBER) -> Principal:
    """Another user of the admin's tenant."""
    async with store.begin(admin) as scope:
        user = await users.create(scope, "another", role)
        key, _ = await api_keys.create(scope, user.id, "a key")
    return replace(admin, user_id=user.id, key_id=key.id, role=role)


async def make_agent(scope: Scope, *, shared: bool = False, definition: AgentDefinition = DEFINITION) -> Agent:
    return await agents.create(scope, "an agent", shared, definition)


async def make_session(scope: Scope, agent: Agent, texts: Sequence[str] = ()) -> Session:
    """A session of user and assistant texts in turn."""
    session = await sessions.create(scope, agent.id, "a session")
    await messages.append(scope, session.id, [said(n, text) for n, text in enumerate(texts)])
    found = await sessions.get(scope, session.id)
    assert found is not None
    return found


def said(n: int, text: str) -> NewMessage:
    """The nth message: the user begins, then they take turns."""
    role = MessageRole.ASSISTANT if n % 2 else MessageRole.USER
    blocks = (text_block(text),)
    return NewMessage(role, content_json(blocks), digest(role, blocks, None))


async def make_run(
    scope: Scope, session: Session, *, model: str = DEFINITION.model, ttl_seconds: float = 60.0, seconds: float = 60.0
) -> RunID:
    """A run that waits for a worker, on the session as it is."""
    base = await context_bases.current(scope, session.id)
    assert base is not None
    new = NewRun(
        base_id=await context_bases.find_or_create(scope, base),
        model=model,
        first_seq=base.through_seq,
        overrides=0,
        ttl_seconds=ttl_seconds,
        timeout_seconds=seconds,
    )
    run_id = RunID(new_id())
    await runs.create(scope, run_id, session.id, new)
    return run_id


def listed(file: FileVersion) -> BaseFile:
    """A file as a base lists it."""
    return BaseFile(file.version_id, file.path, file.version, file.chars, file.updated_at)
