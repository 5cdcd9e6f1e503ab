"""Imports: a file of a known format becomes an agent and sessions, in one transaction and in constant memory."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from tempfile import SpooledTemporaryFile
from typing import Annotated, Any, BinaryIO, Literal, cast
from uuid import UUID

import msgspec
from pydantic import Field, ValidationError
from starlette.requests import Request

from hango.agent_definition import AgentDefinition
from hango.api import agent_rules
from hango.api.agent_bodies import OUTPUT_TOKENS_MOST, AgentPatch, ParamsIn
from hango.api.authz import may_read_agent
from hango.api.endpoint import Call, Reply, created
from hango.api.fields import NAME_CHARS, IdText, Query, parse_id
from hango.api.import_history import History, one_line
from hango.api.sessions import TITLE_CHARS
from hango.chain import estimator
from hango.chain.formats import readers
from hango.chain.formats.oddities import check_agent
from hango.chain.formats.source import Source
from hango.chain.formats.transcript import (
    Flag,
    Format,
    ImportedAgent,
)
from hango.domain import Agent, AgentID, AuditAction
from hango.errors import Invalid, NotFound, Reason, TooLarge
from hango.store import agents, audit, messages, sessions
from hango.store.connection import Scope

OFFLINE = "offline/extract"
# Below this the body stays in memory; a larger one goes to a temporary file.
SPOOL_BYTES = 1024 * 1024


class ImportQuery(Query):
    """`model` and `title` are of the new agent; with `agent_id` the sessions are made on that agent."""

    format: Literal[
        "auto",
        "anthropic",
        "openai_chat",
        "openai_responses",
        "claude_code",
        "chatgpt",
        "sharegpt",
        "langchain",
        "swe_agent",
    ] = "auto"
    agent_id: IdText | None = None
    model: Annotated[str, Field(min_length=1, max_length=256)] | None = None
    title: Annotated[str, Field(min_length=1, max_length=TITLE_CHARS)] | None = None


class FlagOut(msgspec.Struct, frozen=True):
    """What is odd in an imported part, kept as it came."""

    part: str
    reason: Reason


class ImportedSessionOut(msgspec.Struct, frozen=True):
    session_id: UUID
    title: str
    messages: int
    flagged: list[FlagOut]


class ImportedOut(msgspec.Struct, frozen=True):
    """`session_id` is the first session's."""

    agent_id: UUID
    format: Format
    session_id: UUID
    sessions: list[ImportedSessionOut]


async def import_file(call: Call[None, None, ImportQuery]) -> Reply[ImportedOut]:
    query = call.query
    known = await _known_agent(call)
    # It may take minutes, and most of it is waiting for the client and for the disk.
    with call.place.aside(), _spool() as file:
        size = await _receive(call.request, file, call.deps.settings.import_max)
        wanted = None if query.format == readers.AUTO else Format(query.format)
        transcript = await asyncio.to_thread(readers.read, Source(file, size), wanted)
        definition, flags = await asyncio.to_thread(_definition, transcript.agent, query.model)
        if known is not None:
            definition, flags = known.definition, _left_out(transcript.agent)
        # The model of answers whose file does not name one, where it is not the agent's.
        writer = None if transcript.agent.model == definition.model else transcript.agent.model
        histories = (History(session, writer) for session in transcript.sessions)
        first = await asyncio.to_thread(next, histories)
        async with call.deps.store.begin(call.principal) as scope:
            agent = known or await _new_agent(scope, definition, query.title or first.title, transcript.format)
            made = [await _import_session(scope, agent, first, query.title, flags)]
            while (history := await asyncio.to_thread(next, histories, None)) is not None:
                made.append(await _import_session(scope, agent, history, None, ()))
    session_id = made[0].session_id
    return created(f"/v1/sessions/{session_id}", ImportedOut(agent.id, transcript.format, session_id, made))


async def _known_agent(call: Call[None, None, ImportQuery]) -> Agent | None:
    """The agent named in the query. Raises NotFound when it is not there or the caller may not read it."""
    if call.query.agent_id is None:
        return None
    if call.query.model is not None:
        message = "The query parameter 'model' is of a new agent: leave it out where 'agent_id' names one."
        raise Invalid.because(Reason.BAD_FIELD, message)
    agent_id = AgentID(parse_id(call.query.agent_id))
    async with call.deps.store.read(call.principal) as scope:
        agent = await agents.get(scope, agent_id)
    if agent is None or not may_read_agent(call.principal, agent):
        raise NotFound
    return agent


@contextmanager
def _spool() -> Iterator[BinaryIO]:
    with SpooledTemporaryFile(max_size=SPOOL_BYTES) as file:
        yield cast("BinaryIO", file)


async def _receive(request: Request, file: BinaryIO, most: int) -> int:
    """Write the body to the file while it comes; its size. Raises TooLarge as soon as it is over `most` bytes."""
    too_large = TooLarge(f"The file is over {most // (1024 * 1024)} MiB, which is the most an import takes here.")
    declared = request.headers.get("content-length", "")
    if declared.isascii() and declared.isdigit() and int(declared[:20]) > most:
        raise too_large
    size = 0
    async for chunk in request.stream():
        size += len(chunk)
        if size > most:
            raise too_large
        await asyncio.to_thread(file.write, chunk)
    return size


def _definition(agent: ImportedAgent, model: str | None) -> tuple[AgentDefinition, tuple[Flag, ...]]:
    """The file's agent as a definition. Raises Invalid for a text that cannot be stored, or a bad `model=`."""
    check_agent(agent)
    base = AgentDefinition(OFFLINE, agent.system, agent.tools, builtin=frozenset())
    if agent.max_output_tokens is not None:
        base = replace(base, max_output_tokens=min(agent.max_output_tokens, OUTPUT_TOKENS_MOST))
    flags = list(agent.flags)
    params: dict[str, Any] = {}
    for name, value in agent.params.items():
        try:
            params |= ParamsIn.model_validate({name: value}).items()
        except ValidationError:
            flags.append(Flag(f"param:{name}", Reason.PARAM_NOT_TAKEN))
    named = agent.model if model is None else model
    if named is not None:
        try:
            base = agent_rules.apply(AgentPatch.model_validate({"model": named}), base)
        except (Invalid, ValidationError):
            if model is not None:
                raise
            flags.append(Flag("param:model", Reason.BAD_MODEL))
    return replace(base, params=params), tuple(flags)


def _left_out(agent: ImportedAgent) -> tuple[Flag, ...]:
    """What of the file an agent that was there before does not take: it keeps its own."""
    parts = [f"system:{block.name}" for block in agent.system] + [f"tool:{tool.name}" for tool in agent.tools]
    return tuple(Flag(part, Reason.NOT_IN_CONTEXT) for part in parts)


async def _new_agent(scope: Scope, definition: AgentDefinition, title: str, format: Format) -> Agent:
    agent = await agents.create(scope, one_line(title, NAME_CHARS) or f"Imported from {format}", False, definition)
    await audit.record(scope, AuditAction.AGENT_CREATE, "agent", agent.id, {"import": str(format)})
    return agent


async def _import_session(
    scope: Scope, agent: Agent, history: History, title: str | None, flags: tuple[Flag, ...]
) -> ImportedSessionOut:
    """Create the session and append its history, stretch by stretch. `flags` are of the file as a whole."""
    shown = one_line(title or history.title, TITLE_CHARS)
    row = await sessions.create(scope, agent.id, shown)
    await messages.append(scope, row.id, history.first)
    while not history.ended:
        await messages.append(scope, row.id, await asyncio.to_thread(history.take))
    summary = history.session.summary
    if summary is not None:
        tokens = (await asyncio.to_thread(estimator.count, [summary.text]))[0]
        await sessions.set_summary(scope, row.id, summary.text, summary.through_seq, tokens)
    await audit.record(scope, AuditAction.SESSION_IMPORT, "session", row.id, {"messages": history.count})
    found = dict.fromkeys((*flags, *history.session.flags, *history.watch.flags()))
    return ImportedSessionOut(row.id, shown, history.count, [FlagOut(flag.part, flag.reason) for flag in found])
