"""What a request is made of, by id, and the state built from it: the one way into the chain."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from uuid import UUID

from hango.agent_definition import AgentDefinition, Builtin
from hango.chain.deps import MAX_HEAD_CHARS, Deps
from hango.chain.kept_histories import KeptHistory, missing
from hango.chain.middleware.memory import MAX_FILES
from hango.chain.middleware.skills import read_skill
from hango.chain.state import UNCHANGED, State, Trunk, Wanted
from hango.digests import MessageDigest
from hango.domain import AgentID, FileVersion, SessionID, Summary
from hango.errors import Invalid, NotFound, Reason
from hango.store import context_bases, messages
from hango.store.connection import Scope
from hango.store.context_bases import CurrentBase

NO_SESSION = SessionID(UUID(int=0))
# A learnt factor changes a little with every call: what is worked out from it may stay for a while.
FACTOR_DIGITS = 2


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
    messages are sent. Raises Invalid: `unknown_part` when there is no such message, `bad_model` for no such model.
    """
    check_until(base, wanted)
    trunk = await build_trunk(scope, deps, base, trunk_of(base, wanted), through=wanted.until or base.through_seq)
    return trunk.with_wanted(wanted)


def check_until(base: CurrentBase, wanted: Wanted) -> None:
    """Raise Invalid (`unknown_part`) when the base has no message to end with."""
    if wanted.until is not None and not 0 < wanted.until <= base.through_seq:
        message = f"There is no message {wanted.until}: the session ends with message {base.through_seq}."
        raise Invalid.because(Reason.UNKNOWN_PART, message, pointer="/until")


def trunk_of(base: CurrentBase, wanted: Wanted) -> Trunk:
    """Which state calls like this one have in common."""
    covered = base.summary is not None and wanted.until is not None and wanted.until <= base.summary.through_seq
    return Trunk(wanted.model, without_summary=covered)


async def build_trunk(
    scope: Scope,
    deps: Deps,
    base: CurrentBase,
    trunk: Trunk,
    *,
    through: int,
    like: State | None = None,
    known: KeptHistory | None = None,
) -> State:
    """The state of all calls on a base that differ in no more than their wishes. Raises Invalid (`bad_model`).

    `like` differs from it by its model alone: its history and its files are taken, not read again. Of `known` only what
    is missing is read, into it.
    """
    summary = None if trunk.without_summary else base.summary
    own = await deps.definition(scope, base.agent_version_id)
    agent = own if trunk.model in (None, own.model) else _with_model(deps, own, str(trunk.model))
    if trunk.is_child:  # a subagent starts none of its own
        agent = replace(agent, builtin=agent.builtin - {Builtin.SUBAGENT})
    row, learnt = deps.models.row(agent.model), base.factors.get(agent.model)
    dialect = deps.providers.get(agent.provider).dialect_for(agent.model_name)
    if like is None:
        history = await _history(scope, base, summary, through, KeptHistory() if known is None else known)
        files: Mapping[str, FileVersion] = {file.path: file for file in await _files(scope, deps, agent, base)}
    else:
        history, files = like.messages, like.files
    return State(
        session_id=base.session_id,
        agent=agent,
        dialect=dialect,
        messages=history,
        summary=summary,
        files=files,
        saved=base.overrides,
        last_seq=base.through_seq,
        window=row.window,
        factor=row.factor if learnt is None else round(learnt.factor, FACTOR_DIGITS),
        calibrated_from=0 if learnt is None else learnt.calls,
        own_model=own.model,
        narrowed_to=_narrowed(base, files),
        prefill=row.prefill,
    )


def _narrowed(base: CurrentBase, files: Mapping[str, FileVersion]) -> frozenset[str] | None:
    """The tools that the skill allows which the run has loaded last; None when it says nothing of tools."""
    loaded = next((file for file in files.values() if file.version_id == base.skill_version_id), None)
    skill = None if loaded is None else read_skill(loaded)
    return None if skill is None or skill.allowed_tools is None else frozenset(skill.allowed_tools)


def _with_model(deps: Deps, own: AgentDefinition, model: str) -> AgentDefinition:
    """The agent as another model gets it, which may write less at once. Raises Invalid (`bad_model`)."""
    most = deps.models.row(model).output_limit
    return replace(own, model=model, max_output_tokens=min(own.max_output_tokens, most))


async def _history(
    scope: Scope, base: CurrentBase, summary: Summary | None, through: int, known: KeptHistory
) -> tuple[MessageDigest, ...]:
    """The messages after the summary."""
    seqs = range(summary.through_seq + 1 if summary else 1, through + 1)
    if stretch := missing(known.digests, seqs):
        known.add_digests(await messages.digests(scope, base.session_id, after_seq=stretch[0], through_seq=stretch[1]))
    return tuple(known.digests[seq] for seq in seqs if seq in known.digests)


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
