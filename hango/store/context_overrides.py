"""Saved override sets: an agent's for its system and tool parts, a session's for its messages and summary.

A set is replaced as a whole. Which sets are valid is not decided here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from uuid import UUID

import msgspec

from hango.domain import OverrideAction, OverrideScope, PartID, SavedOverride, UserID
from hango.errors import NotFound
from hango.store.connection import Scope, one
from hango.store.db import context_overrides as rows
from hango.store.ids import new_id

# An override in the order of SavedOverride's fields.
_Saved = tuple[str, OverrideAction, str | None, str, OverrideScope, UUID, datetime]
_saved = msgspec.json.Decoder(list[_Saved])


@dataclass(frozen=True, slots=True)
class NewOverride:
    """An override to save. `against` is the hash of the part's text as it is, "" when there is no such part."""

    part: PartID
    action: OverrideAction
    replacement: str | None
    against: str


async def hold_agent(scope: Scope, agent_id: UUID) -> None:
    """Hold an agent until the transaction ends: two sets come one after another. Raises NotFound.

    What a set is checked against, the saved one among it, is read afterwards.
    """
    if await rows.hold_agent(scope.conn, tenant_id=scope.tenant_id, id=agent_id) is None:
        raise NotFound


async def hold_session(scope: Scope, session_id: UUID) -> None:
    """The same of a session; its history cannot grow meanwhile."""
    if await rows.hold_session(scope.conn, tenant_id=scope.tenant_id, id=session_id) is None:
        raise NotFound


async def list_for_agent(scope: Scope, agent_id: UUID) -> list[SavedOverride]:
    """The agent's set, in the order it was given."""
    return await _list(scope, OverrideScope.AGENT, agent_id)


async def list_for_session(scope: Scope, session_id: UUID) -> list[SavedOverride]:
    """The session's set, in the order it was given."""
    return await _list(scope, OverrideScope.SESSION, session_id)


async def replace_for_agent(scope: Scope, agent_id: UUID, new: Sequence[NewOverride]) -> list[SavedOverride]:
    """The agent's set from now on, made by the caller; an empty one clears. Holds the agent. Raises NotFound."""
    await hold_agent(scope, agent_id)
    return await _replace(scope, OverrideScope.AGENT, agent_id, new)


async def replace_for_session(scope: Scope, session_id: UUID, new: Sequence[NewOverride]) -> list[SavedOverride]:
    """The session's set from now on, made by the caller; an empty one clears. Holds the session. Raises NotFound."""
    await hold_session(scope, session_id)
    return await _replace(scope, OverrideScope.SESSION, session_id, new)


async def count_active(scope: Scope) -> int:
    """How many overrides the tenant has, of agents and sessions that are not deleted."""
    return one(await rows.count_overrides(scope.conn, tenant_id=scope.tenant_id))


def from_json(text: str) -> tuple[tuple[SavedOverride, ...], str]:
    """The overrides of a base, and their key: equal sets, equal keys; "" for none."""
    found = _saved.decode(text)
    if not found:
        return (), ""
    overrides = tuple(
        SavedOverride(PartID(part), action, replacement, against, scope, UserID(created_by), created_at)
        for part, action, replacement, against, scope, created_by, created_at in found
    )
    return overrides, sha256(text.encode()).hexdigest()


def to_json(overrides: Sequence[SavedOverride]) -> str:
    """The text of which `from_json` makes them again."""
    items = [
        (one.part, one.action, one.replacement, one.against, one.scope, one.created_by, one.created_at)
        for one in overrides
    ]
    return msgspec.json.encode(items).decode()


async def _list(scope: Scope, of: OverrideScope, target_id: UUID) -> list[SavedOverride]:
    agent_id, session_id = _target(of, target_id)
    found = await rows.list_overrides(scope.conn, tenant_id=scope.tenant_id, agent_id=agent_id, session_id=session_id)
    return [
        SavedOverride(
            part=PartID(row.part),
            action=OverrideAction(row.action),
            replacement=row.replacement,
            against=row.against,
            scope=of,
            created_by=UserID(row.created_by),
            created_at=row.created_at,
        )
        for row in found
    ]


async def _replace(scope: Scope, of: OverrideScope, target_id: UUID, new: Sequence[NewOverride]) -> list[SavedOverride]:
    agent_id, session_id = _target(of, target_id)
    await rows.delete_overrides(scope.conn, tenant_id=scope.tenant_id, agent_id=agent_id, session_id=session_id)
    if not new:
        return []
    await rows.add_overrides(
        scope.conn,
        tenant_id=scope.tenant_id,
        agent_id=agent_id,
        session_id=session_id,
        user_id=scope.user_id,
        ids=[new_id() for _ in new],
        positions=range(len(new)),
        parts=[override.part for override in new],
        actions=[override.action for override in new],
        replacements=[override.replacement for override in new],
        againsts=[override.against for override in new],
    )
    return await _list(scope, of, target_id)


def _target(of: OverrideScope, target_id: UUID) -> tuple[UUID | None, UUID | None]:
    """The two columns, of which one is set."""
    return (target_id, None) if of is OverrideScope.AGENT else (None, target_id)
