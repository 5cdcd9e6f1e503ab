"""Override sets that are about to be saved, or are: what they add, what of them is stale. Saves nothing.

A set is judged through the real chain, in the same transaction in which it is saved.
"""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from dataclasses import dataclass, replace

from hango.chain import base as bases
from hango.chain.context import bounded, draft_base
from hango.chain.deps import Deps
from hango.chain.draft import Draft
from hango.chain.marking import text_sha256
from hango.chain.parts import PartKind, parse
from hango.chain.state import Wanted
from hango.domain import AgentID, Override, OverrideScope, PartID, SavedOverride, SessionID
from hango.errors import Invalid, Reason
from hango.store.connection import Scope
from hango.store.context_bases import CurrentBase
from hango.store.context_overrides import NewOverride

SCOPES = {
    PartKind.SYSTEM: OverrideScope.AGENT,
    PartKind.TOOL: OverrideScope.AGENT,
    PartKind.MESSAGE: OverrideScope.SESSION,
    PartKind.SUMMARY: OverrideScope.SESSION,
}


@dataclass(frozen=True, slots=True)
class Added:
    """A message that leaves because of its partner `because`, which the person named."""

    part: PartID
    because: PartID


@dataclass(frozen=True, slots=True)
class Plan:
    """A set as it would be stored, the partners it adds, and its parts that are not there now."""

    stored: tuple[NewOverride, ...]
    added: tuple[Added, ...]
    stale: tuple[PartID, ...]


@dataclass(frozen=True, slots=True)
class Shown:
    """A saved set, the partners it adds now, and its parts that are not there now."""

    saved: tuple[SavedOverride, ...]
    added: tuple[Added, ...]
    stale: tuple[PartID, ...]


def check_scope(overrides: Sequence[Override], scope: OverrideScope) -> None:
    """Raise Invalid (`wrong_scope`) for a part that is saved elsewhere."""
    for override in overrides:
        if SCOPES[parse(override.part).kind] is not scope:
            place = "session" if scope is OverrideScope.AGENT else "agent"
            message = f"The part '{override.part}' is saved with the {place}, not with the {scope.value}."
            raise Invalid.because(Reason.WRONG_SCOPE, message, part=override.part)


async def plan_for_session(scope: Scope, deps: Deps, session_id: SessionID, overrides: Sequence[Override]) -> Plan:
    """Judge a session's new set on its history as it is now.

    Raises NotFound, Invalid (`wrong_scope`, `unknown_part`, `replace_breaks_pair`, and the faults of `validity.py`).
    """
    check_scope(overrides, OverrideScope.SESSION)
    base = await _base(deps, bases.current(scope, session_id))
    return await _plan(scope, deps, base, overrides, OverrideScope.SESSION)


async def plan_for_agent(scope: Scope, deps: Deps, agent_id: AgentID, overrides: Sequence[Override]) -> Plan:
    """Judge an agent's new set on the system blocks and tools of its present version. Raises as for a session."""
    check_scope(overrides, OverrideScope.AGENT)
    base = await _base(deps, bases.current_of_agent(scope, agent_id))
    return await _plan(scope, deps, base, overrides, OverrideScope.AGENT)


async def show_for_session(scope: Scope, deps: Deps, session_id: SessionID) -> Shown:
    """A session's saved set and what it does now. Raises NotFound."""
    return await _show(scope, deps, await _base(deps, bases.current(scope, session_id)), OverrideScope.SESSION)


async def show_for_agent(scope: Scope, deps: Deps, agent_id: AgentID) -> Shown:
    """An agent's saved set and what of it is stale. Raises NotFound."""
    return await _show(scope, deps, await _base(deps, bases.current_of_agent(scope, agent_id)), OverrideScope.AGENT)


async def _base(deps: Deps, read: Awaitable[CurrentBase]) -> CurrentBase:
    async with bounded(deps.settings.before_run_max):
        return await read


async def _show(scope: Scope, deps: Deps, base: CurrentBase, own: OverrideScope) -> Shown:
    saved = tuple(one for one in base.overrides if one.scope is own)
    draft = (await draft_base(scope, deps, base)).draft
    return Shown(saved, added(draft), stale(draft, saved))


async def _plan(scope: Scope, deps: Deps, base: CurrentBase, overrides: Sequence[Override], own: OverrideScope) -> Plan:
    others = tuple(one for one in base.overrides if one.scope is not own)
    judged = replace(base, overrides=others)
    draft = (await draft_base(scope, deps, judged, Wanted(overrides))).draft
    before = original(draft)
    # What is put again unchanged was made against the text of then: saving another override must not hide a change.
    kept = {(one.part, one.action, one.replacement): one.against for one in base.overrides if one.scope is own}
    stored = tuple(
        NewOverride(
            one.part,
            one.action,
            one.replacement,
            kept.get((one.part, one.action, one.replacement)) or text_sha256(before, one.part),
        )
        for one in overrides
    )
    return Plan(stored, added(draft), stale(draft, overrides))


def original(draft: Draft) -> Draft:
    """The draft with the replaced messages as they are stored: what an override is made against."""
    return replace(draft, messages=tuple(draft.stored_messages()))


def added(draft: Draft) -> tuple[Added, ...]:
    return tuple(Added(part, mark.because) for part, mark in draft.marks.items() if mark.because is not None)


def stale(draft: Draft, overrides: Sequence[Override] | Sequence[SavedOverride]) -> tuple[PartID, ...]:
    """Those of a set that do nothing now, in its order."""
    idle = {one.override.part for one in draft.stale}
    return tuple(one.part for one in overrides if one.part in idle)
