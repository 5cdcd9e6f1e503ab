"""What a worker does with a run that it has claimed: hold it, count its turns, give it to another.

What happens in a run is written in transactions that hold the run's row: a claim that is no longer in force writes
nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from hango.domain import AgentID, BaseID, FileVersionID, RunID, SessionID
from hango.runs import RunState
from hango.store.connection import Scope
from hango.store.db import runs as rows
from hango.store.ids import new_id


@dataclass(frozen=True, slots=True)
class Hold:
    """A claim that is in force; `cancelled`: somebody asked the run to end."""

    cancelled: bool
    turns: int
    skill_version_id: FileVersionID | None


async def hold(scope: Scope, run_id: RunID, attempt: int) -> Hold | None:
    """The claim, held until the transaction ends. None: it is no longer in force, and nothing may be written."""
    row = await rows.hold_run(scope.conn, tenant_id=scope.tenant_id, id=run_id, attempt=attempt)
    if row is None:
        return None
    skill = None if row.skill_version_id is None else FileVersionID(row.skill_version_id)
    return Hold(row.cancelled, row.turns, skill)


async def state(scope: Scope, run_id: RunID) -> RunState | None:
    """Where the run stands."""
    row = await rows.get_claimed_run(scope.conn, tenant_id=scope.tenant_id, id=run_id)
    if row is None:
        return None
    return RunState(
        session_id=SessionID(row.session_id),
        base_id=BaseID(row.base_id),
        model=row.model,
        first_seq=row.first_seq,
        skill_version_id=None if row.skill_version_id is None else FileVersionID(row.skill_version_id),
        turns=row.turns,
        overrides=row.overrides,
        has_compacted=row.has_compacted,
    )


async def count_turn(scope: Scope, run_id: RunID) -> None:
    await rows.count_turn(scope.conn, tenant_id=scope.tenant_id, id=run_id)


async def use_skill(scope: Scope, run_id: RunID, version_id: FileVersionID) -> None:
    """The run has loaded a skill: from its next call on it narrows the tools."""
    await rows.use_skill(scope.conn, tenant_id=scope.tenant_id, id=run_id, skill_version_id=version_id)


async def rescue(scope: Scope, run_id: RunID, attempt: int) -> bool:
    """Its worker fell silent: it waits for another. False when it may not: cancelled, or no longer this claim's."""
    return await _requeue(scope, run_id, attempt, rescues=1)


async def give_back(scope: Scope, run_id: RunID, attempt: int) -> bool:
    """Its worker ends: it waits for another. False as of `rescue`."""
    return await _requeue(scope, run_id, attempt, rescues=0)


async def child_session(scope: Scope, run_id: RunID, agent_id: AgentID, call: str) -> SessionID:
    """The conversation of the subagent that a call started, made when there is none yet."""
    found = await rows.find_child_session(scope.conn, tenant_id=scope.tenant_id, run_id=run_id, parent_call=call)
    if found is not None:
        return SessionID(found)
    session_id: UUID = new_id()
    await rows.add_child_session(
        scope.conn,
        tenant_id=scope.tenant_id,
        id=session_id,
        agent_id=agent_id,
        user_id=scope.user_id,
        run_id=run_id,
        parent_call=call,
    )
    return SessionID(session_id)


async def _requeue(scope: Scope, run_id: RunID, attempt: int, *, rescues: int) -> bool:
    done = await rows.requeue_run(scope.conn, tenant_id=scope.tenant_id, id=run_id, attempt=attempt, rescues=rescues)
    return done is not None
