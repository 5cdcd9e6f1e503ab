"""Runs as their owners see them: accepted, read, listed, cancelled. What a worker does is in run_claims.py."""

from __future__ import annotations

from uuid import UUID

from hango.domain import AuditAction, RunID, RunStatus, SessionID, UserID
from hango.errors import RunActive
from hango.messages import StopReason, Usage
from hango.runs import NewRun, Run, RunError
from hango.store import audit
from hango.store.connection import Scope
from hango.store.db import runs as rows
from hango.store.pages import DEFAULT_LIMIT, Page, id_of, page
from hango.tries import TryUsage


async def create(scope: Scope, run_id: RunID, session_id: UUID, new: NewRun) -> None:
    """A run of the caller that waits for a worker. Raises RunActive while another one of the session has not ended."""
    made = await rows.add_run(
        scope.conn,
        tenant_id=scope.tenant_id,
        id=run_id,
        session_id=session_id,
        user_id=scope.user_id,
        api_key_id=scope.principal.key_id,
        base_id=new.base_id,
        model=new.model,
        first_seq=new.first_seq,
        overrides=new.overrides,
        ttl_seconds=new.ttl_seconds,
        timeout_ms=int(new.timeout_seconds * 1000),
        traceparent=new.traceparent,
    )
    if made is None:
        raise RunActive
    await rows.set_last_run(scope.conn, tenant_id=scope.tenant_id, session_id=session_id, run_id=run_id)
    await audit.record(scope, AuditAction.RUN_START, "run", run_id, {"session_id": str(session_id), "model": new.model})


async def get(scope: Scope, run_id: UUID) -> Run | None:
    """A run of a session that is not deleted."""
    row = await rows.get_run(scope.conn, tenant_id=scope.tenant_id, id=run_id)
    return None if row is None else _run(row)


async def list_all(
    scope: Scope, session_id: UUID, *, limit: int = DEFAULT_LIMIT, cursor: str | None = None
) -> Page[Run]:
    """The runs of a session, the newest first."""
    found = await rows.list_runs(
        scope.conn, tenant_id=scope.tenant_id, session_id=session_id, before=id_of(cursor), most=limit + 1
    )
    return page(found, limit, _run, lambda run: run.id)


async def refuse_active(scope: Scope, session_id: UUID) -> None:
    """Raise RunActive while a run of the session has not ended."""
    if await rows.find_active_run(scope.conn, tenant_id=scope.tenant_id, session_id=session_id) is not None:
        raise RunActive


async def cancel(
    scope: Scope, *, run_id: UUID | None = None, session_id: UUID | None = None, agent_id: UUID | None = None
) -> int:
    """Cancel the runs of one of these that have not ended: those that wait at once, those that run by their worker.

    Returns how many have ended with it.
    """
    assert sum(one is not None for one in (run_id, session_id, agent_id)) == 1
    found = await rows.hold_open_runs(
        scope.conn, tenant_id=scope.tenant_id, id=run_id, session_id=session_id, agent_id=agent_id
    )
    waiting = [RunID(row.id) for row in found if row.status == RunStatus.QUEUED]
    for one in waiting:
        await end(scope, one, None, RunStatus.CANCELLED, error=RunError.CANCELLED)
    if running := [row.id for row in found if row.status == RunStatus.RUNNING]:
        await rows.request_run_cancel(scope.conn, tenant_id=scope.tenant_id, ids=running)
    return len(waiting)


async def end(
    scope: Scope,
    run_id: RunID,
    attempt: int | None,
    status: RunStatus,
    *,
    stop_reason: StopReason | None = None,
    error: RunError | None = None,
) -> bool:
    """The end of a run, with its audit event. False: the claim is no longer in force.

    `attempt` None: of one that waits.
    """
    done = await rows.end_run(
        scope.conn,
        tenant_id=scope.tenant_id,
        id=run_id,
        attempt=attempt,
        from_status=RunStatus.QUEUED if attempt is None else RunStatus.RUNNING,
        status=status,
        stop_reason=stop_reason,
        error_code=error,
    )
    if done is None:
        return False
    detail = {"outcome": status.value, "error": error.value if error else None}
    await audit.record(scope, AuditAction.RUN_FINISH, "run", run_id, detail)
    return True


def _run(row: rows.GetRunRow | rows.ListRunsRow) -> Run:
    tokens = Usage(row.input_tokens, row.output_tokens, row.cache_read_tokens, row.cache_write_tokens)
    return Run(
        id=RunID(row.id),
        session_id=SessionID(row.session_id),
        session_owner=UserID(row.session_owner),
        status=RunStatus(row.status),
        turns=row.turns,
        model=row.model,
        overrides=row.overrides,
        stop_reason=None if row.stop_reason is None else StopReason(row.stop_reason),
        usage=TryUsage(tokens, row.cost_usd if row.priced else None, row.estimated) if row.calls else None,
        error=None if row.error_code is None else RunError(row.error_code),
        attempts=row.attempt,
        created_at=row.created_at,
        started_at=row.started_at,
        finished_at=row.finished_at,
    )
