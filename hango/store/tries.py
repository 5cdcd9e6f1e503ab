"""Tries as their owners see them: accepted, read, listed, cancelled. What a worker does is in try_claims.py."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any
from uuid import UUID

import msgspec

from hango import jsontext
from hango.domain import AuditAction, BaseID, BatchID, Purpose, SessionID, TryID, UserID
from hango.errors import NotFound
from hango.messages import StopReason, Usage
from hango.store.connection import Scope, one
from hango.store.db import tries as rows
from hango.store.db import try_batches as batch_rows
from hango.store.ids import new_id
from hango.store.pages import DEFAULT_LIMIT, Page, id_of, page
from hango.tries import Admission, Changes, NewRequest, Texts, Try, TryError, TryStatus, TryUsage

_Row = rows.GetTryRow | rows.ListTriesRow | batch_rows.ListBatchTriesRow

# How many have ended: tries, and previews of summaries, which wait in their queue.
Ended = Counter[Purpose]

_changes = msgspec.json.Decoder(Changes)
_texts = msgspec.json.Decoder(Texts)


async def create(
    scope: Scope,
    session_id: UUID,
    base_id: UUID,
    requests: Sequence[NewRequest],
    admission: Admission,
    *,
    repeats: int = 1,
    batch_id: UUID | None = None,
    first_id: TryID | None = None,
) -> list[TryID]:
    """New tries of the caller, `repeats` of each request in their order; one audit event each.

    Their quota is reserved by the caller, in the same transaction. `first_id` is the id of the first of them.
    """
    request_ids = [new_id() for _ in requests]
    await rows.add_try_requests(
        scope.conn,
        tenant_id=scope.tenant_id,
        session_id=session_id,
        base_id=base_id,
        batch_id=batch_id,
        retention_seconds=admission.retention_seconds,
        ids=request_ids,
        variants=range(len(requests)),
        labels=[request.label for request in requests],
        models=[request.model for request in requests],
        changes=[_text(request.changes) for request in requests],
        texts=[_text(request.texts) for request in requests],
        sents=[request.sent for request in requests],
        excludeds=[request.excluded for request in requests],
        request_sha256s=[request.request_sha256 for request in requests],
        tokens_befores=[request.tokens_before for request in requests],
        tokens_afters=[request.tokens_after for request in requests],
        max_output_tokens=[request.max_output_tokens for request in requests],
        through_seqs=[request.through_seq for request in requests],
    )
    every = [(request, id) for request, id in zip(requests, request_ids, strict=True) for _ in range(repeats)]
    ids = [TryID(new_id()) for _ in every]
    ids[0] = first_id or ids[0]
    await rows.add_tries(
        scope.conn,
        tenant_id=scope.tenant_id,
        session_id=session_id,
        user_id=scope.user_id,
        api_key_id=scope.principal.key_id,
        batch_id=batch_id,
        ttl_seconds=admission.ttl_seconds,
        timeout_ms=int(admission.timeout_seconds * 1000),
        quota_period=admission.quota_period,
        traceparent=admission.traceparent,
        ids=ids,
        request_ids=[id for _, id in every],
        reserveds=[request.reserved for request, _ in every],
    )
    await rows.add_try_audits(
        scope.conn,
        tenant_id=scope.tenant_id,
        user_id=scope.user_id,
        ids=[new_id() for _ in ids],
        target_ids=ids,
        actions=[_audited(request)[0] for request, _ in every],
        target_kinds=[_audited(request)[1] for request, _ in every],
        details=[jsontext.dumps(_detail(session_id, request)) for request, _ in every],
    )
    return ids


async def hold_session(scope: Scope, session_id: UUID) -> None:
    """Keep a session from being deleted until the transaction ends. Raises NotFound."""
    if await rows.keep_session(scope.conn, tenant_id=scope.tenant_id, id=session_id) is None:
        raise NotFound


async def count_outstanding(scope: Scope) -> int:
    """Tries of the tenant that wait or run."""
    return one(await rows.count_outstanding(scope.conn, tenant_id=scope.tenant_id))


async def get(scope: Scope, try_id: UUID) -> Try | None:
    """A try of a session that is not deleted, with its texts and its answer."""
    row = await rows.get_try(scope.conn, tenant_id=scope.tenant_id, id=try_id, is_preview=False)
    return None if row is None else _try(row, row.texts, row.sent, row.answer, row.said)


async def get_preview(scope: Scope, try_id: UUID) -> Try | None:
    """The preview of a summary, which is a try of another kind."""
    row = await rows.get_try(scope.conn, tenant_id=scope.tenant_id, id=try_id, is_preview=True)
    if row is None:
        return None
    return replace(_try(row, row.texts, row.sent, row.answer, row.said), through_seq=row.through_seq)


async def list_all(
    scope: Scope,
    session_id: UUID,
    *,
    batch_id: UUID | None = None,
    limit: int = DEFAULT_LIMIT,
    cursor: str | None = None,
) -> Page[Try]:
    """Tries of a session, or of one batch of it; the newest first, without texts and answers."""
    found = await _find(scope, session_id, batch_id, before=id_of(cursor), most=limit + 1)
    return page(found, limit, _listed, lambda made: made.id)


async def cancel(
    scope: Scope,
    *,
    try_id: UUID | None = None,
    batch_id: UUID | None = None,
    session_id: UUID | None = None,
    agent_id: UUID | None = None,
) -> Ended:
    """Cancel the tries of one of these that have not ended: those that wait at once, those that run by their worker.

    Returns those that have ended with it.
    """
    assert sum(one is not None for one in (try_id, batch_id, session_id, agent_id)) == 1
    found = await rows.hold_open_tries(
        scope.conn,
        tenant_id=scope.tenant_id,
        id=try_id,
        batch_id=batch_id,
        session_id=session_id,
        agent_id=agent_id,
    )
    waiting = [row.id for row in found if row.status == TryStatus.QUEUED]
    running = [row.id for row in found if row.status == TryStatus.RUNNING]
    if running:
        await rows.request_cancel(scope.conn, tenant_id=scope.tenant_id, ids=running)
    return await end_waiting(scope, waiting, TryStatus.CANCELLED, TryError.CANCELLED) if waiting else Counter()


async def end_waiting(scope: Scope, ids: Sequence[UUID], status: TryStatus, error: TryError) -> Ended:
    """The end of tries that no worker has: nothing is billed."""
    ended = await rows.end_uncalled(
        scope.conn,
        tenant_id=scope.tenant_id,
        status=status,
        error_code=error,
        from_status=TryStatus.QUEUED,
        attempt=None,
        ids=ids,
        audit_ids=[new_id() for _ in ids],
    )
    return Counter(Purpose(row.purpose) for row in ended)


async def expire(scope: Scope, most: int) -> Ended:
    """The end of up to `most` tries that waited for too long: nothing is billed."""
    ids = await rows.hold_expired(scope.conn, tenant_id=scope.tenant_id, most=most)
    return await end_waiting(scope, ids, TryStatus.EXPIRED, TryError.QUEUE_EXPIRED) if ids else Counter()


async def _find(
    scope: Scope, session_id: UUID, batch_id: UUID | None, *, before: UUID | None, most: int
) -> Sequence[_Row]:
    if batch_id is None:
        return await rows.list_tries(
            scope.conn, tenant_id=scope.tenant_id, session_id=session_id, before=before, most=most
        )
    return await batch_rows.list_batch_tries(
        scope.conn, tenant_id=scope.tenant_id, session_id=session_id, batch_id=batch_id, before=before, most=most
    )


def read_changes(text: str) -> Changes:
    return _changes.decode(text)


def read_texts(text: str | None) -> Texts | None:
    return None if text is None else _texts.decode(text)


def _text(value: Changes | Texts) -> str:
    return msgspec.json.encode(value).decode()


def _audited(request: NewRequest) -> tuple[AuditAction, str]:
    """The action of its acceptance, and the kind of thing that was accepted."""
    if request.through_seq is None:
        return AuditAction.CONTEXT_TRY, "try"
    return AuditAction.SUMMARY_PREVIEW, "summary_preview"


def _detail(session_id: UUID, request: NewRequest) -> Mapping[str, Any]:
    """For the audit log: ids alone."""
    if request.through_seq is not None:
        return {"session_id": str(session_id), "through_seq": request.through_seq, "model": request.model}
    return {
        "session_id": str(session_id),
        "excluded": request.changes.exclude,
        "replaced": request.changes.replace,
        "included": request.changes.include,
        "model": request.model,
    }


def _try(row: _Row, texts: str | None, sent: str | None, answer: str | None, said: str | None) -> Try:
    return Try(
        id=TryID(row.id),
        session_id=SessionID(row.session_id),
        session_owner=UserID(row.session_owner),
        batch_id=None if row.batch_id is None else BatchID(row.batch_id),
        variant=row.variant,
        label=row.label,
        status=TryStatus(row.status),
        base_id=BaseID(row.base_id),
        model=row.model,
        changes=read_changes(row.changes),
        texts=read_texts(texts),
        sent=sent,
        excluded=row.excluded,
        request_sha256=row.request_sha256,
        tokens_before=row.tokens_before,
        tokens_after=row.tokens_after,
        answer=answer,
        said=said,
        stop_reason=None if row.stop_reason is None else StopReason(row.stop_reason),
        usage=_usage(row),
        error=None if row.error_code is None else TryError(row.error_code),
        provider_status=row.provider_status,
        attempts=row.attempt,
        created_at=row.created_at,
        started_at=row.started_at,
        finished_at=row.finished_at,
        purged=row.purged_at is not None,
    )


def _listed(row: _Row) -> Try:
    return _try(row, None, None, None, None)


def _usage(row: _Row) -> TryUsage | None:
    if row.input_tokens is None:
        return None
    tokens = Usage(row.input_tokens, row.output_tokens or 0, row.cache_read_tokens or 0, row.cache_write_tokens or 0)
    return TryUsage(tokens, None if row.cost_usd is None else float(row.cost_usd), bool(row.estimated))
