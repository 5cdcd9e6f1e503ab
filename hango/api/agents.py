"""Agents: list, create, show, change, delete."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Annotated, Any
from uuid import UUID

import msgspec
from msgspec import UNSET, UnsetType

from hango.agent_definition import AgentDefinition, Builtin, Cache, Compaction, SystemBlock
from hango.api import agent_rules
from hango.api.agent_bodies import AgentIn, AgentPatch
from hango.api.authz import is_admin
from hango.api.endpoint import Call, Reply, created
from hango.api.fields import Moment, SearchQuery
from hango.api.listing import Listing
from hango.domain import Agent, AuditAction, RunStatus
from hango.errors import NotFound
from hango.messages import ToolSpec
from hango.store import agents, audit, runs, tries
from hango.tries import TryStatus
from hango.workers import counting

RawObject = Annotated[msgspec.Raw, msgspec.Meta(extra_json_schema={"type": "object"})]


class ToolOut(msgspec.Struct, frozen=True):
    """`definition` only for a tool of kind `server`."""

    name: str
    description: str
    input_schema: RawObject
    kind: str
    definition: RawObject | UnsetType = UNSET

    @classmethod
    def of(cls, tool: ToolSpec) -> ToolOut:
        server = tool.definition is not None
        return cls(
            name=tool.name,
            description=tool.description,
            input_schema=msgspec.Raw(tool.input_schema.encode()),
            kind="server" if server else "client",
            definition=msgspec.Raw(tool.definition.encode()) if tool.definition is not None else UNSET,
        )


class AgentOut(msgspec.Struct, frozen=True):
    """An agent with all that a request takes from it."""

    id: UUID
    name: str
    model: str
    shared: bool
    system: Sequence[SystemBlock]
    tools: list[ToolOut]
    builtin: list[Builtin]
    memory: Sequence[str]
    allowed_tools: Sequence[str] | None
    max_output_tokens: int
    params: dict[str, Any]
    compaction: Compaction
    cache: Cache
    created_by: UUID
    created_at: Moment
    updated_at: Moment

    @classmethod
    def of(cls, agent: Agent) -> AgentOut:
        made = agent.definition
        return cls(
            id=agent.id,
            name=agent.name,
            model=made.model,
            shared=agent.shared,
            system=made.system,
            tools=[ToolOut.of(tool) for tool in made.tools],
            builtin=[one for one in Builtin if one in made.builtin],
            memory=made.memory,
            allowed_tools=made.allowed_tools,
            max_output_tokens=made.max_output_tokens,
            params=dict(made.params),
            compaction=made.compaction,
            cache=made.cache,
            created_by=agent.created_by,
            created_at=agent.created_at,
            updated_at=agent.updated_at,
        )


async def list_agents(call: Call[None, None, SearchQuery]) -> Listing[AgentOut]:
    async with call.deps.store.read(call.principal) as scope:
        page = await agents.list_all(
            scope,
            viewer_is_admin=is_admin(call.principal),
            q=call.query.q,
            limit=call.query.limit,
            cursor=call.query.cursor,
        )
    return Listing([AgentOut.of(agent) for agent in page.data], page.next_cursor)


async def create_agent(call: Call[None, AgentIn]) -> Reply[AgentOut]:
    wanted = call.body
    # Checking schemas is work for the processor: in a thread it holds up nobody else.
    definition = await asyncio.to_thread(agent_rules.apply, wanted, AgentDefinition(model=wanted.model))
    async with call.deps.store.begin(call.principal) as scope:
        agent = await agents.create(scope, wanted.name, wanted.shared, definition)
        await audit.record(scope, AuditAction.AGENT_CREATE, "agent", agent.id, _changed(wanted))
    return created(f"/v1/agents/{agent.id}", AgentOut.of(agent))


async def show_agent(call: Call[Agent, None]) -> AgentOut:
    return AgentOut.of(call.target)


async def update_agent(call: Call[Agent, AgentPatch]) -> AgentOut:
    wanted, agent = call.body, call.target
    definition = await asyncio.to_thread(agent_rules.apply, wanted, agent.definition)
    given = wanted.model_fields_set
    async with call.deps.store.begin(call.principal) as scope:
        now = await agents.hold(scope, agent.id)
        if now is None:
            raise NotFound
        if now.version_id != agent.version_id:
            # Somebody changed it meanwhile: this change goes on top of theirs.
            definition = agent_rules.apply(wanted, now.definition)
        changed = await agents.update(
            scope,
            now.id,
            name=wanted.name if "name" in given else now.name,
            shared=wanted.shared if "shared" in given else now.shared,
            definition=definition,
        )
        await audit.record(scope, AuditAction.AGENT_UPDATE, "agent", agent.id, _changed(wanted))
    return AgentOut.of(changed)


async def delete_agent(call: Call[Agent, None]) -> None:
    async with call.deps.store.begin(call.principal) as scope:
        if not await agents.delete(scope, call.target.id):
            raise NotFound
        cancelled = await tries.cancel(scope, agent_id=call.target.id)
        cancelled_runs = await runs.cancel(scope, agent_id=call.target.id)
        await audit.record(scope, AuditAction.AGENT_DELETE, "agent", call.target.id, {})
    counting.ended(TryStatus.CANCELLED, cancelled)
    counting.run_ended(RunStatus.CANCELLED, cancelled_runs)


def _changed(wanted: AgentPatch) -> dict[str, Any]:
    return {"fields": sorted(wanted.model_fields_set)}
