"""Agents and their versions: a change of the definition makes a version, versions never change."""

from __future__ import annotations

from uuid import UUID

from hango.agent_definition import AgentDefinition
from hango.domain import Agent, AgentID, AgentVersionID, UserID
from hango.errors import NotFound
from hango.store import definitions
from hango.store.connection import Scope, one
from hango.store.db import agents as rows
from hango.store.ids import new_id
from hango.store.pages import DEFAULT_LIMIT, Page, id_of, page


async def get(scope: Scope, agent_id: UUID) -> Agent | None:
    """An agent that is not deleted."""
    row = await rows.get_agent(scope.conn, tenant_id=scope.tenant_id, id=agent_id)
    return _agent(row) if row else None


async def list_all(
    scope: Scope,
    *,
    viewer_is_admin: bool,
    q: str | None = None,
    limit: int = DEFAULT_LIMIT,
    cursor: str | None = None,
) -> Page[Agent]:
    """The own and the shared ones, for an admin all; `q` is a part of the name; the newest first."""
    found = await rows.list_agents(
        scope.conn,
        tenant_id=scope.tenant_id,
        see_all=viewer_is_admin,
        user_id=scope.user_id,
        q=q,
        before=id_of(cursor),
        most=limit + 1,
    )
    return page(found, limit, _agent, lambda agent: agent.id)


async def create(scope: Scope, name: str, shared: bool, definition: AgentDefinition) -> Agent:
    """A new agent of the caller."""
    agent_id, version_id = new_id(), new_id()
    await rows.create_agent(
        scope.conn,
        tenant_id=scope.tenant_id,
        id=agent_id,
        name=name,
        shared=shared,
        model=definition.model,
        version_id=version_id,
        user_id=scope.user_id,
    )
    await _add_version(scope, version_id, agent_id, 1, definition)
    return await _known(scope, agent_id)


async def hold(scope: Scope, agent_id: UUID) -> Agent | None:
    """The agent as it is now, which nobody else changes until the transaction ends."""
    await rows.lock_agent(scope.conn, tenant_id=scope.tenant_id, id=agent_id)
    return await get(scope, agent_id)


async def update(scope: Scope, agent_id: UUID, *, name: str, shared: bool, definition: AgentDefinition) -> Agent:
    """All that an agent is, as it is to be; what does not change makes no version. Raises NotFound."""
    await rows.lock_agent(scope.conn, tenant_id=scope.tenant_id, id=agent_id)
    now = await _known(scope, agent_id)
    # By their text: 1 and 1.0 are equal in Python, but not on the wire.
    same = definitions.to_text(definition) == definitions.to_text(now.definition)
    if same and (name, shared) == (now.name, now.shared):
        return now
    version_id: UUID = now.version_id
    if not same:
        number = one(await rows.get_version_number(scope.conn, tenant_id=scope.tenant_id, id=agent_id))
        version_id = new_id()
        await _add_version(scope, version_id, agent_id, number + 1, definition)
    await rows.update_agent(
        scope.conn,
        tenant_id=scope.tenant_id,
        id=agent_id,
        name=name,
        shared=shared,
        model=definition.model,
        version_id=version_id,
    )
    return await _known(scope, agent_id)


async def delete(scope: Scope, agent_id: UUID) -> bool:
    """Hide it; versions, sessions and usage stay. False when there is no such agent."""
    return await rows.delete_agent(scope.conn, tenant_id=scope.tenant_id, id=agent_id) == 1


async def definition(scope: Scope, version_id: UUID) -> AgentDefinition:
    """A version's definition, also of a deleted agent. Raises NotFound."""
    text = await rows.get_definition(scope.conn, tenant_id=scope.tenant_id, version_id=version_id)
    if text is None:
        raise NotFound
    return definitions.from_text(text)


async def _add_version(scope: Scope, version_id: UUID, agent_id: UUID, number: int, made: AgentDefinition) -> None:
    await rows.create_agent_version(
        scope.conn,
        tenant_id=scope.tenant_id,
        id=version_id,
        agent_id=agent_id,
        number=number,
        definition=definitions.to_text(made),
        memory=made.memory,
        builtin=sorted(made.builtin),
        user_id=scope.user_id,
    )


async def _known(scope: Scope, agent_id: UUID) -> Agent:
    found = await get(scope, agent_id)
    if found is None:
        raise NotFound
    return found


def _agent(row: rows.GetAgentRow | rows.ListAgentsRow) -> Agent:
    return Agent(
        id=AgentID(row.id),
        name=row.name,
        shared=row.shared,
        created_by=UserID(row.created_by),
        created_at=row.created_at,
        updated_at=row.updated_at,
        version_id=AgentVersionID(row.version_id),
        definition=definitions.from_text(row.definition),
    )
