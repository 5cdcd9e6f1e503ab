"""The inspector: draft the next call of a session without sending it, and turn the draft into a snapshot.

The draft comes through the real chain; a capture handler stands where the provider would. Nothing is written and no
model is called.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace

from msgspec import UNSET

from hango.chain import base as bases
from hango.chain import counting, frames, problems, snapshot
from hango.chain import full_part as full_parts
from hango.chain.chain import Capture
from hango.chain.deps import Deps
from hango.chain.draft import Bodies, Draft
from hango.chain.frames import Frame
from hango.chain.full_part import FullPart
from hango.chain.kept_histories import KeptHistory, missing
from hango.chain.parts import PartKind
from hango.chain.request_hash import request_sha256
from hango.chain.snapshot import Group, Groups, Snapshot
from hango.chain.stack import build_chain
from hango.chain.state import UNCHANGED, State, Wanted
from hango.chain.window import HEAD, WHOLE, Window
from hango.digests import MessageDigest
from hango.domain import AgentID, PartID, SessionID
from hango.errors import NotFound, Unavailable
from hango.messages import Request, read_content, stored_content
from hango.store import messages
from hango.store.connection import Scope
from hango.store.context_bases import CurrentBase


@dataclass(frozen=True, slots=True)
class Drafted:
    """The next call of a session, drafted. `sha256` is equal for equal states, and equal values mean equal bodies."""

    session_id: SessionID
    agent_id: AgentID
    state: State
    draft: Draft
    sha256: str


async def draft_next_call(scope: Scope, deps: Deps, session_id: SessionID, wanted: Wanted = UNCHANGED) -> Drafted:
    """Draft the next call through the real chain. Raises NotFound, Invalid (a part that cannot be), Unavailable."""
    return await draft_base(scope, deps, await _current(scope, deps, session_id), wanted)


async def draft_base(scope: Scope, deps: Deps, base: CurrentBase, wanted: Wanted = UNCHANGED) -> Drafted:
    """Draft the call that a base makes, through the real chain.

    Raises Invalid (a part that cannot be), and Unavailable when reading what it is made of takes longer than the bound.
    """
    async with bounded(deps.settings.before_run_max):
        state = await bases.build_state(scope, deps, base, wanted)
        await build_chain(state.agent.builtin).before_run(state, scope)
    return await draft_state(base, state)


async def draft_state(base: CurrentBase, state: State) -> Drafted:
    """Draft the call of a state on which `before_run` is done. Reads nothing. Raises Invalid (as `draft_base`)."""
    chain, capture = build_chain(state.agent.builtin), Capture()
    await chain.model_call(state, chain.draft(state), capture)
    assert capture.draft is not None, "a slot did not call on"
    done = replace(capture.draft, problems=problems.find(capture.draft, state.agent, state.dialect))
    return Drafted(base.session_id, base.agent_id, state, done, request_sha256(state, done))


async def _current(scope: Scope, deps: Deps, session_id: SessionID) -> CurrentBase:
    async with bounded(deps.settings.before_run_max):
        return await bases.current(scope, session_id)


@asynccontextmanager
async def bounded(seconds: float) -> AsyncIterator[None]:
    """Raises Unavailable when what is read inside takes longer."""
    try:
        async with asyncio.timeout(seconds):
            yield
    except TimeoutError:
        raise Unavailable(
            f"Reading the session took longer than {seconds:g} s. Try again, or raise HANGO_BEFORE_RUN_MAX."
        ) from None


async def look(
    scope: Scope, deps: Deps, session_id: SessionID, window: Window, *, count: bool
) -> tuple[Frame, list[MessageDigest]] | None:
    """The frame of a session as it is now, and the messages of a window: `frames.fill` makes a snapshot of them.

    The first look at a state costs an inspect, a later one what it shows. None when the totals shall be counted
    (`count`) by a provider that can: then the whole request is needed.
    """
    base = await _current(scope, deps, session_id)
    agent = await deps.definition(scope, base.agent_version_id)
    if count and deps.providers.counter(agent.provider) is not None:
        return None
    learnt = base.factors.get(agent.model)
    key = frames.key_of(base, None if learnt is None else round(learnt.factor, bases.FACTOR_DIGITS))
    frame = deps.frames.get(key)
    if frame is not None and learnt is not None:
        frame = frames.calibrated(frame, learnt.calls)
    if frame is None:
        drafted = await draft_base(scope, deps, base)
        frame = frames.frame_of(estimated_snapshot(drafted, HEAD), drafted.draft, drafted.state.factor)
        deps.frames.put(key, frame)
        after, through = frames.stretch(frame, window)
        return frame, [item for item in drafted.draft.messages if after < item.seq <= through]
    after, through = frames.stretch(frame, window)
    if after >= through:
        return frame, []
    return frame, await messages.digests(scope, session_id, after_seq=after, through_seq=through)


async def load_bodies(scope: Scope, drafted: Drafted, known: KeptHistory | None = None) -> Bodies:
    """The blocks of every persisted message of the draft. Only a real request and a provider's count need them.

    Of `known` only what is missing is read, into it.
    """
    known = KeptHistory() if known is None else known
    seqs = (item.seq for item in drafted.draft.messages if item.seq > 0)
    if stretch := missing(known.bodies, seqs):
        known.add_bodies(await read_bodies(scope, drafted.session_id, *stretch))
    return known.bodies


async def read_bodies(scope: Scope, session_id: SessionID, after_seq: int, through_seq: int) -> Bodies:
    """The blocks of a session's messages after one seq and through another."""
    found = await messages.bodies(scope, session_id, after_seq=after_seq, through_seq=through_seq)
    return {seq: stored_content(content) for seq, content in found.items()}


def request_of(drafted: Drafted, bodies: Bodies) -> Request:
    """The provider-neutral request of a draft."""
    return drafted.draft.to_request(drafted.state.agent, bodies)


def provider_body(deps: Deps, drafted: Drafted, bodies: Bodies) -> bytes:
    """The body as the provider would get it: compact JSON text, no secret in it."""
    return deps.providers.get(drafted.state.agent.provider).body(request_of(drafted, bodies))


def has_counter(deps: Deps, drafted: Drafted) -> bool:
    """True when the agent's provider counts by itself, and its key is set."""
    return deps.providers.counter(drafted.state.agent.provider) is not None


async def take_snapshot(deps: Deps, drafted: Drafted, window: Window = WHOLE, bodies: Bodies | None = None) -> Snapshot:
    """The snapshot. With `bodies` the provider's counter is asked for the totals, where there is one."""
    made = estimated_snapshot(drafted, window)
    if bodies is not None:
        totals = await counting.totals(deps, drafted.draft, drafted.state, bodies)
        if totals is not None:
            made.counted = "provider"
            made.total_before, made.total_after = totals
    return made


def estimated_snapshot(drafted: Drafted, window: Window = WHOLE) -> Snapshot:
    """The snapshot by estimates alone. Pure."""
    draft, state = drafted.draft, drafted.state
    size = draft.size
    assert size is not None, "the summarization slot sets the sizes"
    start, stop, next_after = window.of_messages(draft.messages) if window.shows("messages") else (0, 0, None)
    return Snapshot(
        session_id=str(drafted.session_id),
        agent_id=str(drafted.agent_id),
        model=state.agent.model,
        provider=state.agent.provider,
        system=snapshot.system_parts(draft, size.system) if window.shows("system") else [],
        tools=snapshot.tool_parts(draft, size.tools) if window.shows("tools") else [],
        messages=snapshot.message_parts(draft, size.messages, start, stop),
        groups=Groups(
            Group(size.system.before, size.system.after),
            Group(size.tools.before, size.tools.after),
            Group(size.messages.before, size.messages.after),
        ),
        total_before=size.before,
        total_after=size.after,
        counted="estimate",
        estimate_before=size.before,
        estimate_after=size.after,
        would_compact=draft.would_compact,
        compact_at=draft.compact_at,
        window=state.window,
        calibrated_from=state.calibrated_from,
        problems=[snapshot.problem(detail) for detail in draft.problems],
        stale=[snapshot.stale_override(stale) for stale in draft.stale],
        request_sha256=drafted.sha256,
        next_after=next_after if window.limit is not None else UNSET,
    )


async def full_part(scope: Scope, drafted: Drafted, part: str) -> FullPart:
    """One part of the draft in full. Raises NotFound for a part that is not in it."""
    draft = drafted.draft
    found = full_parts.find(draft, PartID(part))
    if found is None:
        raise NotFound
    if found.kind == PartKind.TOOL:
        return full_parts.full_tool(found, next(item.value for item in draft.tools if item.part == part))
    if found.kind == PartKind.MESSAGE and isinstance(found.seq, int):
        body = await messages.body(scope, drafted.session_id, found.seq)
        if body is None:
            raise NotFound
        return full_parts.full_message(draft, found, read_content(body))
    return full_parts.full_text(draft, found)
