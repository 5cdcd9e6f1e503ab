"""Saved overrides over HTTP: an agent's for its system and tool parts, a session's for its messages and summary.

A set is put as a whole, in one transaction: hold, compare, judge, replace, audit.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Any, Generic, Literal, TypeVar
from uuid import UUID

import msgspec
from pydantic import Field

from hango import telemetry
from hango.api import etags
from hango.api.changes import MAX_PARTS, MAX_TEXT
from hango.api.endpoint import Call, Reply
from hango.api.fields import Body, Moment, Query
from hango.chain import saved_overrides
from hango.chain.context_overrides import check_replacement
from hango.chain.deps import Deps
from hango.chain.parts import parse
from hango.chain.saved_overrides import Added, Plan, Shown
from hango.domain import (
    Agent,
    AgentID,
    AuditAction,
    Override,
    OverrideAction,
    OverrideScope,
    PartID,
    SavedOverride,
    Session,
    SessionID,
)
from hango.errors import Invalid, Reason
from hango.store import audit, context_overrides
from hango.store.connection import Scope
from hango.store.context_overrides import NewOverride
from hango.telemetry import Attr, Metric

TargetID = TypeVar("TargetID", bound=UUID)


class OverrideIn(Body):
    """One part, left out or with another text; `replacement` goes with `replace` alone."""

    part: str
    action: Literal["exclude", "replace"]
    replacement: Annotated[str, Field(max_length=MAX_TEXT)] | None = None


class OverridesIn(Body):
    """The whole set from now on; an empty list clears it."""

    overrides: Annotated[list[OverrideIn], Field(max_length=MAX_PARTS)]


class OverridesQuery(Query):
    """`check=true` answers as if the set were saved, and saves nothing."""

    check: bool = False


class OverrideOut(msgspec.Struct, frozen=True):
    """`stale`: the part is not there now, so the override does nothing until it comes back."""

    part: str
    action: OverrideAction
    replacement: str | None
    stale: bool
    created_by: UUID
    created_at: Moment


class AddedOut(msgspec.Struct, frozen=True):
    """A message that leaves with its partner `because`."""

    part: str
    because: str


class OverridesOut(msgspec.Struct, frozen=True):
    """A set, the partners that leave with it, and its parts that are not there now."""

    overrides: list[OverrideOut]
    added: list[AddedOut]
    stale: list[str]

    @classmethod
    def of(cls, saved: Sequence[SavedOverride], added: Sequence[Added], stale: Sequence[PartID]) -> OverridesOut:
        idle = frozenset(stale)
        return cls(
            [
                OverrideOut(one.part, one.action, one.replacement, one.part in idle, one.created_by, one.created_at)
                for one in saved
            ],
            [AddedOut(one.part, one.because) for one in added],
            list(stale),
        )


@dataclass(frozen=True, slots=True)
class Kind(Generic[TargetID]):
    """What differs between an agent's set and a session's."""

    scope: OverrideScope
    hold: Callable[[Scope, TargetID], Awaitable[None]]
    saved: Callable[[Scope, TargetID], Awaitable[list[SavedOverride]]]
    show: Callable[[Scope, Deps, TargetID], Awaitable[Shown]]
    plan: Callable[[Scope, Deps, TargetID, Sequence[Override]], Awaitable[Plan]]
    replace: Callable[[Scope, TargetID, Sequence[NewOverride]], Awaitable[list[SavedOverride]]]


OF_AGENT: Kind[AgentID] = Kind(
    OverrideScope.AGENT,
    context_overrides.hold_agent,
    context_overrides.list_for_agent,
    saved_overrides.show_for_agent,
    saved_overrides.plan_for_agent,
    context_overrides.replace_for_agent,
)
OF_SESSION: Kind[SessionID] = Kind(
    OverrideScope.SESSION,
    context_overrides.hold_session,
    context_overrides.list_for_session,
    saved_overrides.show_for_session,
    saved_overrides.plan_for_session,
    context_overrides.replace_for_session,
)

Put = Call[Any, OverridesIn, OverridesQuery]


async def show_agent_overrides(call: Call[Agent, None]) -> Reply[OverridesOut]:
    return await _show(call, OF_AGENT, call.target.id)


async def put_agent_overrides(call: Call[Agent, OverridesIn, OverridesQuery]) -> Reply[OverridesOut]:
    return await _put(call, OF_AGENT, call.target.id)


async def show_session_overrides(call: Call[Session, None]) -> Reply[OverridesOut]:
    return await _show(call, OF_SESSION, call.target.id)


async def put_session_overrides(call: Call[Session, OverridesIn, OverridesQuery]) -> Reply[OverridesOut]:
    return await _put(call, OF_SESSION, call.target.id)


async def _show(call: Call[Any, None], kind: Kind[TargetID], id: TargetID) -> Reply[OverridesOut]:
    async with call.deps.store.read(call.principal) as scope:
        shown = await kind.show(scope, call.deps, id)
    return _reply(OverridesOut.of(shown.saved, shown.added, shown.stale), shown.saved)


async def _put(call: Put, kind: Kind[TargetID], id: TargetID) -> Reply[OverridesOut]:
    wanted = read_set(call.body.overrides, kind.scope)
    if call.query.check:
        return await _check(call, kind, id, wanted)
    async with call.deps.store.begin(call.principal) as scope:
        await kind.hold(scope, id)
        etags.check_match(call.request, etag(await kind.saved(scope, id)))
        plan = await kind.plan(scope, call.deps, id, wanted)
        saved = await kind.replace(scope, id, plan.stored)
        detail = {"overrides": [{"part": one.part, "action": one.action} for one in saved]}
        await audit.record(scope, AuditAction.CONTEXT_OVERRIDE, kind.scope, id, detail)
        active = await context_overrides.count_active(scope) if telemetry.is_on() else 0
    telemetry.gauge(Metric.CONTEXT_OVERRIDES_ACTIVE, active, {Attr.TENANT_ID: call.principal.tenant_id})
    return _reply(OverridesOut.of(saved, plan.added, plan.stale), saved)


async def _check(call: Put, kind: Kind[TargetID], id: TargetID, wanted: Sequence[Override]) -> Reply[OverridesOut]:
    """The same answer out of a transaction that cannot write. Its ETag is of the set that is stored."""
    async with call.deps.store.read(call.principal) as scope:
        there = await kind.saved(scope, id)
        etags.check_match(call.request, etag(there))
        plan = await kind.plan(scope, call.deps, id, wanted)
    by, now = call.principal.user_id, datetime.now(UTC)
    made = [
        SavedOverride(one.part, one.action, one.replacement, one.against, kind.scope, by, now) for one in plan.stored
    ]
    return _reply(OverridesOut.of(made, plan.added, plan.stale), there)


def read_set(items: Sequence[OverrideIn], scope: OverrideScope) -> list[Override]:
    """Overrides from a body, in its order. Raises Invalid naming the first part at fault and what would mend it."""
    made: dict[PartID, Override] = {}
    for index, item in enumerate(items):
        part = parse(item.part)
        override = Override(part.id, OverrideAction(item.action), item.replacement)
        saved_overrides.check_scope([override], scope)
        if part.id in made:
            message = f"The part '{part.id}' is named twice. Name it once."
            raise Invalid.because(Reason.DUPLICATE_PART, message, part=part.id)
        _check_replacement_is_given(override, f"/overrides/{index}/replacement")
        if item.replacement is not None:
            check_replacement(part, item.replacement)
        made[part.id] = override
    return list(made.values())


def _check_replacement_is_given(override: Override, pointer: str) -> None:
    """Raise Invalid (`bad_field`) unless there is a replacement exactly where the action is `replace`."""
    if (override.action is OverrideAction.REPLACE) is (override.replacement is not None):
        return
    message = (
        f"The part '{override.part}' is to be replaced and there is no replacement. Give one, or exclude the part."
        if override.action is OverrideAction.REPLACE
        else f"The part '{override.part}' is to be excluded and there is a replacement. Leave it out, or use replace."
    )
    raise Invalid.because(Reason.BAD_FIELD, message, part=override.part, pointer=pointer)


def etag(saved: Sequence[SavedOverride]) -> str:
    """Of what the set does: equal sets have equal tags, whoever saved them and in whatever order."""
    return etags.of(sorted((one.part, one.action.value, one.replacement) for one in saved))


def _reply(body: OverridesOut, stored: Sequence[SavedOverride]) -> Reply[OverridesOut]:
    return Reply(body, headers={"ETag": etag(stored)})
