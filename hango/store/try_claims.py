"""What a worker does with a try that it has claimed: read it, mark the call, settle it, give it back.

Each is one conditional statement that names the fencing number of the claim: what is no longer in force changes
nothing, and doing it twice does it once.
"""

from __future__ import annotations

from decimal import Decimal
from uuid import UUID

from hango.domain import BaseID, TryID
from hango.messages import Usage
from hango.store.connection import Scope
from hango.store.db import tries as rows
from hango.store.ids import new_id
from hango.store.tries import read_changes, read_texts
from hango.store.usage import total
from hango.tries import ClaimedRequest, Settlement, TryError, TryStatus, TryUsage


async def request(scope: Scope, request_id: UUID) -> ClaimedRequest | None:
    row = await rows.get_try_request(scope.conn, tenant_id=scope.tenant_id, id=request_id)
    if row is None:
        return None
    return ClaimedRequest(
        base_id=BaseID(row.base_id),
        model=row.model,
        changes=read_changes(row.changes),
        texts=read_texts(row.texts),
        request_sha256=row.request_sha256,
        max_output_tokens=row.max_output_tokens,
    )


async def mark_called(scope: Scope, try_id: TryID, attempt: int) -> bool:
    """Before the first byte goes out. False: do not call."""
    return await rows.mark_called(scope.conn, tenant_id=scope.tenant_id, id=try_id, attempt=attempt) is not None


async def settle(
    scope: Scope, try_id: TryID, attempt: int, ended: Settlement, *, retention_seconds: float, lease_over: bool = False
) -> bool:
    """The end of a call, with its bill, answer and audit event. False: the claim is no longer in force.

    `lease_over`: only when its worker has been silent past the lease.
    """
    tokens = ended.usage.tokens
    done = await rows.settle_try(
        scope.conn,
        tenant_id=scope.tenant_id,
        id=try_id,
        attempt=attempt,
        lease_over=lease_over,
        status=ended.status,
        error_code=ended.error,
        stop_reason=ended.stop_reason,
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
        answer=ended.answer,
        said=ended.said,
        retention_seconds=retention_seconds,
        audit_id=new_id(),
    )
    return done is not None


async def correct_lost(scope: Scope, try_id: TryID, attempt: int, usage: TryUsage) -> bool:
    """The figures of a call that was given up as lost: they take the place of the estimate, once."""
    tokens = usage.tokens
    done = await rows.correct_lost(
        scope.conn,
        tenant_id=scope.tenant_id,
        id=try_id,
        attempt=attempt,
        input_tokens=tokens.input_tokens,
        output_tokens=tokens.output_tokens,
        cache_read_tokens=tokens.cache_read_tokens,
        cache_write_tokens=tokens.cache_write_tokens,
        cost_usd=cost_of(usage),
        tokens=total(tokens),
    )
    return done is not None


async def end_uncalled(scope: Scope, try_id: TryID, attempt: int, status: TryStatus, error: TryError) -> bool:
    """The end of a claimed try whose call never began: nothing is billed."""
    ended = await rows.end_uncalled(
        scope.conn,
        tenant_id=scope.tenant_id,
        status=status,
        error_code=error,
        from_status=TryStatus.RUNNING,
        attempt=attempt,
        ids=[try_id],
        audit_ids=[new_id()],
    )
    return bool(ended)


async def defer(scope: Scope, try_id: TryID, attempt: int, delay_seconds: float) -> bool:
    """The provider did not take the call: it waits again. False when it may not: too often, too late, or cancelled."""
    done = await rows.defer_try(
        scope.conn, tenant_id=scope.tenant_id, id=try_id, attempt=attempt, delay_seconds=delay_seconds
    )
    return done is not None


async def rescue(scope: Scope, try_id: TryID, attempt: int) -> bool:
    """Another worker may have it: its own fell silent before the call. False when it may not, or is not so."""
    return await rows.rescue_try(scope.conn, tenant_id=scope.tenant_id, id=try_id, attempt=attempt) is not None


def reservation(reserved: int, max_output_tokens: int) -> Usage:
    """What a call is billed at of which nothing more is known: all that was reserved for it."""
    output = min(max_output_tokens, reserved)
    return Usage(input_tokens=reserved - output, output_tokens=output)


def cost_of(usage: TryUsage) -> Decimal | None:
    return None if usage.cost_usd is None else Decimal(repr(usage.cost_usd))
