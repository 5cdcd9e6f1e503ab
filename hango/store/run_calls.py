"""The model calls of runs: written before the first byte goes out, settled once, listed with their bills."""

from __future__ import annotations

from datetime import date
from uuid import UUID

from hango import __version__
from hango.domain import BaseID, CallID, Purpose, RunID, SessionID
from hango.messages import StopReason, Usage
from hango.runs import BegunCall, CallEnd, NewCall, OpenCall, RunCall, RunError
from hango.store import quotas
from hango.store.connection import Scope
from hango.store.db import run_calls as rows
from hango.store.ids import new_id
from hango.store.try_claims import cost_of
from hango.store.usage import total
from hango.tries import TryUsage


async def begin(scope: Scope, run_id: RunID, new: NewCall) -> BegunCall | None:
    """Hold the call's tokens and write it down; the run is held by the caller. None while another is under way.

    Raises QuotaExceeded.
    """
    period: date = await quotas.reserve(scope, new.reserved)
    call_id = CallID(new_id())
    n = await rows.add_run_call(
        scope.conn,
        tenant_id=scope.tenant_id,
        id=call_id,
        run_id=run_id,
        purpose=new.purpose,
        session_id=new.session_id,
        base_id=new.base_id,
        model=new.model,
        request_sha256=new.request_sha256,
        version=__version__,
        overrides=new.overrides,
        excluded_tokens=new.excluded_tokens,
        max_output_tokens=new.max_output_tokens,
        quota_period=period,
        reserved=new.reserved,
    )
    return None if n is None else BegunCall(call_id, n)


async def settle(scope: Scope, call_id: CallID, ended: CallEnd) -> bool:
    """The end of a call with its bill; False when it has ended already."""
    tokens = ended.usage.tokens
    done = await rows.settle_run_call(
        scope.conn,
        tenant_id=scope.tenant_id,
        id=call_id,
        stop_reason=ended.stop_reason,
        error_code=ended.error,
        provider_status=ended.provider_status,
        provider_request_id=ended.provider_request_id,
        usage_id=new_id(),
        input_tokens=tokens.input_tokens,
        output_tokens=tokens.output_tokens,
        cache_read_tokens=tokens.cache_read_tokens,
        cache_write_tokens=tokens.cache_write_tokens,
        cost_usd=cost_of(ended.usage),
        estimated=ended.usage.estimated,
        tokens=total(tokens),
    )
    return done is not None


async def find_open(scope: Scope, run_id: RunID) -> OpenCall | None:
    """The call of a run that is under way, or was when its worker fell silent."""
    row = await rows.find_open_call(scope.conn, tenant_id=scope.tenant_id, run_id=run_id)
    if row is None:
        return None
    return OpenCall(CallID(row.id), row.model, row.reserved, row.max_output_tokens)


async def last_stop_reason(scope: Scope, run_id: RunID, session_id: UUID) -> StopReason | None:
    """How the last call of a run's conversation ended."""
    found = await rows.last_stop_reason(scope.conn, tenant_id=scope.tenant_id, run_id=run_id, session_id=session_id)
    return None if found is None else StopReason(found)


async def tokens_of(scope: Scope, run_id: RunID) -> int:
    """What the calls of a run were billed at so far."""
    return await rows.sum_run_tokens(scope.conn, tenant_id=scope.tenant_id, run_id=run_id) or 0


async def count_of(scope: Scope, run_id: RunID, session_id: UUID) -> int:
    """How many calls a conversation of a run has made, those that failed too."""
    found = await rows.count_conversation_calls(
        scope.conn, tenant_id=scope.tenant_id, run_id=run_id, session_id=session_id
    )
    return found or 0


async def list_all(scope: Scope, run_id: UUID, *, after: int = 0, most: int = 500) -> list[RunCall]:
    """The calls of a run after the nth, in order."""
    found = await rows.list_run_calls(scope.conn, tenant_id=scope.tenant_id, run_id=run_id, after=after, most=most)
    return [_call(row) for row in found]


async def get(scope: Scope, run_id: UUID, n: int) -> RunCall | None:
    """The nth call of a run, from 1."""
    found = await list_all(scope, run_id, after=n - 1, most=1)
    return found[0] if found and found[0].n == n else None


def _call(row: rows.ListRunCallsRow) -> RunCall:
    usage = None
    if row.input_tokens is not None:
        tokens = Usage(
            row.input_tokens, row.output_tokens or 0, row.cache_read_tokens or 0, row.cache_write_tokens or 0
        )
        usage = TryUsage(tokens, None if row.cost_usd is None else float(row.cost_usd), bool(row.estimated))
    return RunCall(
        id=CallID(row.id),
        n=row.n,
        purpose=Purpose(row.purpose),
        session_id=SessionID(row.session_id),
        base_id=BaseID(row.base_id),
        model=row.model,
        request_sha256=row.request_sha256,
        version=row.version,
        overrides=row.overrides,
        excluded_tokens=row.excluded_tokens,
        usage=usage,
        stop_reason=None if row.stop_reason is None else StopReason(row.stop_reason),
        error=None if row.error_code is None else RunError(row.error_code),
        created_at=row.created_at,
        ended_at=row.ended_at,
    )
