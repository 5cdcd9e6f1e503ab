"""What a request is made of, by id, and the state built from it: the one way into the chain."""

from __future__ import annotations

from uuid import UUID

from hango.agent_definition import AgentDefinition, Builtin
from hango.chain.deps import MAX_HEAD_CHARS, Deps
from hango.chain.middleware.memory import MAX_FILES
from hango.chain.state import UNCHANGED, State, Wanted
from hango.digests import MessageDigest
from hango.domain import AgentID, FileVersion, SessionID
from hango.errors import Invalid, NotFound, Reason
from hango.store import context_bases, messages
from hango.store.connection import Scope
from hango.store.context_bases import CurrentBase

NO_SESSION = SessionID(UUID(int=0))


async def current(scope: Scope, session_id: SessionID) -> CurrentBase:
    """What the next call of a session is made of, now. Raises NotFound."""
    base = await context_bases.current(scope, session_id)
    if base is None:
        raise NotFound
    return base


async def current_of_agent(scope: Scope, agent_id: AgentID) -> CurrentBase:
    """What an agent gives to every request of its sessions: a base without a history. Raises NotFound."""
    base = await context_bases.current_agent(scope, agent_id)
    if base is None:
        raise NotFound
    return CurrentBase(
        session_id=NO_SESSION,
        agent_id=base.agent_id,
        agent_version_id=base.agent_version_id,
        through_seq=0,
        summary=None,
        files=base.files,
        overrides=base.overrides,
        override_key=base.override_key,
        factors=base.factors,
    )


async def build_state(scope: Scope, deps: Deps, base: CurrentBase, wanted: Wanted = UNCHANGED) -> State:
    """A fresh state of a base, as a run starts with it, and what a caller wants changed.

    `until` ends the history after that seq; when the summary covers it, the summary is left out and the covered
    messages are sent. Raises Invalid (`unknown_part`) when there is no such message.
    """
    summary, until = base.summary, wanted.until
    if until is not None:
        if not 0 < until <= base.through_seq:
            message = f"There is no message {until}: the session ends with message {base.through_seq}."
            raise Invalid.because(Reason.UNKNOWN_PART, message, pointer="/until")
        if summary is not None and until <= summary.through_seq:
            summary = None
    agent = await deps.definition(scope, base.agent_version_id)
    row = deps.models.row(agent.model)
    after, through = summary.through_seq if summary else 0, until or base.through_seq
    history: list[MessageDigest] = []
    if through > after:
        history = await messages.digests(scope, base.session_id, after_seq=after, through_seq=through)
    return State(
        session_id=base.session_id,
        agent=agent,
        dialect=deps.providers.get(agent.provider).dialect_for(agent.model_name),
        messages=tuple(history),
        summary=summary,
        files={file.path: file for file in await _files(scope, deps, agent, base)},
        saved=base.overrides,
        wanted=wanted,
        last_seq=base.through_seq,
        window=row.window,
        factor=row.factor,
        prefill=row.prefill,
    )


async def _files(scope: Scope, deps: Deps, agent: AgentDefinition, base: CurrentBase) -> list[FileVersion]:
    """The base's files with what is needed of them: the text of memory, the head of a skill, nothing of the rest.

    Memory beyond the first files comes without its text, and the chain says so.
    """
    here = {file.path for file in base.files}
    memory = [path for path in dict.fromkeys(agent.memory) if path in here and Builtin.MEMORY in agent.builtin]
    whole, beyond = set(memory[:MAX_FILES]), set(memory[MAX_FILES:])
    listed = [
        FileVersion(file.version_id, file.path, "", file.version, file.chars, file.updated_at)
        for file in base.files
        if file.path in beyond
    ]
    texts = await deps.with_texts(scope, [file for file in base.files if file.path in whole])
    skills = [file for file in base.files if file.path not in whole and file.path not in beyond]
    return [*texts, *listed, *await deps.with_texts(scope, skills, most_chars=MAX_HEAD_CHARS)]
