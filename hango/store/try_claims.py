"""What a worker does with a try that it has claimed: read it, mark the call, settle it, give it back.

Each is one conditional statement that names the fencing numbers of the claims: what is no longer in force changes
nothing, and doing it twice does it once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from uuid import UUID

from hango.domain import BaseID, Purpose, TryID
from hango.messages import Usage
from hango.store.connection import Scope
from hango.store.db import tries as rows
from hango.store.ids import new_id
from hango.store.tries import read_changes, read_texts
from hango.store.usage import total
from hango.tries import ClaimedRequest, Settlement, TryError, TryStatus, TryUsage

Claim = tuple[TryID, int]  # with its fencing number


async def request(scope: Scope, request_id: UUID) -> ClaimedRequest | None:
    return (await requests(scope, [request_id])).get(request_id)


async def requests(scope: Scope, ids: Sequence[UUID]) -> Mapping[UUID, ClaimedRequest]:
    """Those that are there."""
    found = await rows.list_try_requests(scope.conn, tenant_id=scope.tenant_id, ids=ids)
    return {
        row.id: ClaimedRequest(
            base_id=BaseID(row.base_id),
            model=row.model,
            changes=read_changes(row.changes),
            texts=read_texts(row.texts),
            request_sha256=row.request_sha256,
            max_output_tokens=row.max_output_tokens,
            through_seq=row.through_seq,
        )
        for row in found
    }


async def mark_all_called(scope: Scope, claims: Sequence[Claim]) -> frozenset[Claim]:
    """Before the first bytes go out: those whose call may begin."""
    marked = await rows.mark_called(
        scope.conn,
        tenant_id=scope.tenant_id,
        ids=[id for id, _ in claims],
        attempts=[attempt for _, attempt in claims],
    )
    return frozenset((TryID(row.id), row.attempt) for row in marked)


async def settle(
    scope: Scope, try_id: TryID, attempt: int, ended: Settlement, *, retention_seconds: float, lease_over: bool = False
) -> bool:
    """The end of a call, with its bill, answer and audit event. False: the claim is no longer in force.

    `lease_over`: only when its worker has been silent past the lease.
    """
    made = {(try_id, attempt): ended}
    return bool(await settle_all(scope, made, retention_seconds=retention_seconds, lease_over=lease_over))


async def settle_all(
    scope: Scope, made: Mapping[Claim, Settlement], *, retention_seconds: float, lease_over: bool = False
) -> frozenset[Claim]:
    """The ends of calls; returns those whose claim was in force. All or none when it raises."""
    ends = list(made.values())
    settled = await rows.settle_tries(
        scope.conn,
        tenant_id=scope.tenant_id,
        lease_over=lease_over,
        retention_seconds=retention_seconds,
        ids=[id for id, _ in made],
        attempts=[attempt for _, attempt in made],
        statuses=[end.status for end in ends],
        error_codes=[end.error for end in ends],
        stop_reasons=[end.stop_reason for end in ends],
        provider_statuses=[end.provider_status for end in ends],
        provider_request_ids=[end.provider_request_id for end in ends],
        usage_ids=[new_id() for _ in ends],
        input_tokens=[end.usage.tokens.input_tokens for end in ends],
        output_tokens=[end.usage.tokens.output_tokens for end in ends],
        cache_read_tokens=[end.usage.tokens.cache_read_tokens for end in ends],
        cache_write_tokens=[end.usage.tokens.cache_write_tokens for end in ends],
        costs_usd=[cost_of(end.usage) for end in ends],
        estimateds=[end.usage.estimated for end in ends],
        tokens=[total(end.usage.tokens) for end in ends],
        answers=[end.answer for end in ends],
        saids=[end.said for end in ends],
        audit_ids=[new_id() for _ in ends],
    )
    return frozenset((TryID(row.id), row.attempt) for row in settled)


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


async def end_uncalled(scope: Scope, try_id: TryID, attempt: int, status: TryStatus, error: TryError) -> Purpose | None:
    """The end of a claimed try whose call never began: nothing is billed. Returns what it was for, None for no end."""
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
    return Purpose(ended[0].purpose) if ended else None


async def defer(scope: Scope, try_id: TryID, attempt: int, delay_seconds: float) -> bool:
    """The provider did not take the call: it waits again. False when it may not: too often, too late, or cancelled."""
    done = await rows.defer_try(
        scope.conn, tenant_id=scope.tenant_id, id=try_id, attempt=attempt, delay_seconds=delay_seconds
    )
    return done is not None


async def is_cancelled(scope: Scope, try_id: TryID, attempt: int) -> bool | None:
    """Whether somebody wants a claimed try to be cancelled. None when the claim is no longer in force."""
    return await rows.get_cancel(scope.conn, tenant_id=scope.tenant_id, id=try_id, attempt=attempt)


async def rescue(scope: Scope, try_id: TryID, attempt: int) -> bool:
    """Another worker may have it: its own fell silent before the call. False when it may not, or is not so."""
    return await rows.rescue_try(scope.conn, tenant_id=scope.tenant_id, id=try_id, attempt=attempt) is not None


def reservation(reserved: int, max_output_tokens: int) -> Usage:
    """What a call is billed at of which nothing more is known: all that was reserved for it."""
    output = min(max_output_tokens, reserved)
    return Usage(input_tokens=reserved - output, output_tokens=output)


def cost_of(usage: TryUsage) -> Decimal | None:
    return None if usage.cost_usd is None else Decimal(repr(usage.cost_usd))
