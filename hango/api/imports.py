"""Imports: a file of a known format becomes an agent and sessions, in one transaction and in constant memory."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import islice
from tempfile import SpooledTemporaryFile
from typing import Annotated, Any, BinaryIO, Literal, cast
from uuid import UUID

import msgspec
from pydantic import Field, ValidationError
from starlette.requests import Request

from hango.api import agent_rules
from hango.api.agent_bodies import OUTPUT_TOKENS_MOST, AgentPatch, ParamsIn
from hango.api.authz import may_read_agent
from hango.api.endpoint import Call, Reply, created
from hango.api.fields import NAME_CHARS, IdText, Query, parse_id
from hango.api.sessions import TITLE_CHARS
from hango.chain import estimator
from hango.chain.digest import digests
from hango.chain.formats import readers
from hango.chain.formats.oddities import Watch, check_agent
from hango.chain.formats.source import Source
from hango.chain.formats.transcript import (
    Flag,
    Format,
    ImportedAgent,
    ImportedMessage,
    ImportedSession,
    Transcript,
)
from hango.domain import Agent, AgentDefinition, AgentID, AuditAction
from hango.errors import Invalid, NotFound, Reason, TooLarge
from hango.messages import Message, MessageRole, content_json
from hango.store import agents, audit, messages, sessions
from hango.store.connection import Scope
from hango.store.messages import NewMessage

OFFLINE = "offline/extract"
# Below this the body stays in memory; a larger one goes to a temporary file.
SPOOL_BYTES = 1024 * 1024
# One stretch of a history: enough for few statements, little enough for the memory.
STRETCH_MESSAGES = 500
STRETCH_CHARS = 2 * 1024 * 1024
DERIVED_TITLE_CHARS = 80

_NOT_SHOWN = re.compile(r"[\s\x00-\x1f\x7f-\x9f]+")


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


@dataclass(frozen=True, slots=True)
class _Target:
    """The agent that the sessions are made on, and what of the file it did not take."""

    agent: Agent
    flags: tuple[Flag, ...]
    writer: str | None  # the model of messages whose file does not name one, where it is not the agent's


async def import_file(call: Call[None, None, ImportQuery]) -> Reply[ImportedOut]:
    query = call.query
    known = await _known_agent(call)
    with _spool() as file:
        size = await _receive(call.request, file, call.deps.settings.import_max)
        wanted = None if query.format == readers.AUTO else Format(query.format)
        transcript = await asyncio.to_thread(readers.read, Source(file, size), wanted)
        definition, flags = await asyncio.to_thread(_definition, transcript.agent, query.model)
        async with call.deps.store.begin(call.principal) as scope:
            if known is None:
                target = await _new_agent(scope, transcript, definition, flags, query.title)
            else:
                target = _Target(known, _left_out(transcript.agent), transcript.agent.model)
            made = await _import_sessions(scope, transcript, target, query.title)
    first = made[0].session_id
    return created(f"/v1/sessions/{first}", ImportedOut(target.agent.id, transcript.format, first, made))


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


async def _new_agent(
    scope: Scope, transcript: Transcript, definition: AgentDefinition, flags: tuple[Flag, ...], title: str | None
) -> _Target:
    name = _one_line(title or "", NAME_CHARS) or f"Imported from {transcript.format}"
    agent = await agents.create(scope, name, False, definition)
    await audit.record(scope, AuditAction.AGENT_CREATE, "agent", agent.id, {"import": str(transcript.format)})
    written_by = transcript.agent.model
    return _Target(agent, flags, None if written_by == definition.model else written_by)


def _left_out(agent: ImportedAgent) -> tuple[Flag, ...]:
    """What of the file an agent that was there before does not take: it keeps its own."""
    parts = [f"system:{block.name}" for block in agent.system] + [f"tool:{tool.name}" for tool in agent.tools]
    return tuple(Flag(part, Reason.NOT_IN_CONTEXT) for part in parts)


async def _import_sessions(
    scope: Scope, transcript: Transcript, target: _Target, title: str | None
) -> list[ImportedSessionOut]:
    made: list[ImportedSessionOut] = []
    waiting = iter(transcript.sessions)
    while (session := await asyncio.to_thread(next, waiting, None)) is not None:
        extra = () if made else target.flags
        made.append(await _import_session(scope, session, target, None if made else title, extra))
    await audit.record(
        scope,
        AuditAction.SESSION_IMPORT,
        "agent",
        target.agent.id,
        {"format": str(transcript.format), "sessions": len(made), "messages": sum(each.messages for each in made)},
    )
    return made


async def _import_session(
    scope: Scope, session: ImportedSession, target: _Target, title: str | None, extra: tuple[Flag, ...]
) -> ImportedSessionOut:
    history = _History(session, target.writer)
    stretch = await asyncio.to_thread(history.take)
    shown = _one_line(title or session.title or history.first_words or "", TITLE_CHARS)
    row = await sessions.create(scope, target.agent.id, shown)
    while stretch:
        await messages.append(scope, row.id, stretch)
        stretch = await asyncio.to_thread(history.take)
    if session.summary is not None:
        text, through_seq = session.summary.text, session.summary.through_seq
        await sessions.set_summary(scope, row.id, text, through_seq, estimator.count([text])[0])
    flags = dict.fromkeys((*extra, *session.flags, *history.watch.flags()))
    return ImportedSessionOut(row.id, shown, history.count, [FlagOut(flag.part, flag.reason) for flag in flags])


class _History:
    """The messages of one session, taken in stretches."""

    def __init__(self, session: ImportedSession, writer: str | None) -> None:
        self._waiting = iter(session.messages)
        self._writer = writer
        self.watch = Watch()
        self.count = 0
        self.first_words: str | None = None

    def take(self) -> list[NewMessage]:
        """The next messages, ready to store; none at the end. Raises Invalid that names the part at fault."""
        taken: list[tuple[ImportedMessage, str]] = []
        chars = 0
        for message in islice(self._waiting, STRETCH_MESSAGES):
            self.count += 1
            self.watch.see(self.count, message)
            content = content_json(message.content)
            taken.append((message, content))
            chars += len(content)
            if chars > STRETCH_CHARS:
                break
        self.first_words = self.first_words or _first_words([message for message, _ in taken])
        written = [Message(m.role, m.content, self._model(m)) for m, _ in taken]
        return [
            NewMessage(
                role=message.role,
                content=content,
                digest=digest,
                model=message.model,
                created_at=given.created_at,
            )
            for message, (given, content), digest in zip(written, taken, digests(written), strict=True)
        ]

    def _model(self, message: ImportedMessage) -> str | None:
        return message.model or (self._writer if message.role is MessageRole.ASSISTANT else None)


def _first_words(stretch: Sequence[ImportedMessage]) -> str | None:
    """The start of the first text of a user, for a session that has no title."""
    texts = (b.view.text or "" for m in stretch if m.role is MessageRole.USER for b in m.content if b.type == "text")
    return next((words for text in texts if (words := _one_line(text, DERIVED_TITLE_CHARS))), None)


def _one_line(text: str, most: int) -> str:
    """The text on one line, without control characters, cut at `most`."""
    return _NOT_SHOWN.sub(" ", text[: 4 * most]).strip()[:most].strip()
