"""Batches of tries on one base."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from uuid import UUID

from hango.domain import BatchID, SessionID, TryID, UserID
from hango.messages import Usage
from hango.store.connection import Scope
from hango.store.db import try_batches as rows
from hango.store.pages import DEFAULT_LIMIT, Page, id_of, page
from hango.tries import TryBatch, TryStatus, TryUsage, VariantSum


async def create(
    scope: Scope, batch_id: BatchID, session_id: UUID, base_id: UUID, *, label: str | None, tries: int
) -> None:
    """A batch of the caller; its tries are made in the same transaction."""
    await rows.add_try_batch(
        scope.conn,
        tenant_id=scope.tenant_id,
        id=batch_id,
        session_id=session_id,
        user_id=scope.user_id,
        base_id=base_id,
        label=label,
        tries=tries,
    )


async def get(scope: Scope, batch_id: UUID) -> TryBatch | None:
    """A batch of a session that is not deleted."""
    row = await rows.get_try_batch(scope.conn, tenant_id=scope.tenant_id, id=batch_id)
    return None if row is None else _batch(row)


async def list_all(
    scope: Scope, session_id: UUID, *, limit: int = DEFAULT_LIMIT, cursor: str | None = None
) -> Page[TryBatch]:
    """The batches of a session, the newest first."""
    found = await rows.list_try_batches(
        scope.conn, tenant_id=scope.tenant_id, session_id=session_id, before=id_of(cursor), most=limit + 1
    )
    return page(found, limit, _batch, lambda batch: batch.id)


async def variants(scope: Scope, batch_id: UUID) -> list[VariantSum]:
    """What the variants of a batch came to so far, in the order they were given."""
    return (await all_variants(scope, [batch_id]))[batch_id]


async def all_variants(scope: Scope, batch_ids: Sequence[UUID]) -> Mapping[UUID, list[VariantSum]]:
    """The same of many batches; [] for one that is not here."""
    found = await rows.sum_variants(scope.conn, tenant_id=scope.tenant_id, batch_ids=batch_ids)
    made: dict[UUID, list[VariantSum]] = {id: [] for id in batch_ids}
    for (batch_id, _), group in groupby(found, key=lambda row: (row.batch_id, row.variant)):
        made[batch_id].append(_variant(list(group)))
    return made


def _variant(found: Sequence[rows.SumVariantsRow]) -> VariantSum:
    """One variant out of its rows, one a status."""
    tokens = Usage(
        sum(row.input_tokens for row in found),
        sum(row.output_tokens for row in found),
        sum(row.cache_read_tokens for row in found),
        sum(row.cache_write_tokens for row in found),
    )
    priced = any(row.priced for row in found)
    cost = sum(row.cost_usd for row in found) if priced else None
    usage = TryUsage(tokens, cost, any(row.estimated for row in found)) if any(row.billed for row in found) else None
    return VariantSum(
        variant=found[0].variant,
        label=found[0].label,
        counts={TryStatus(row.status): row.tries for row in found},
        usage=usage,
        tries=tuple(TryID(id) for id in sorted(id for row in found for id in row.ids)),
    )


def _batch(row: rows.GetTryBatchRow | rows.ListTryBatchesRow) -> TryBatch:
    return TryBatch(
        id=BatchID(row.id),
        session_id=SessionID(row.session_id),
        session_owner=UserID(row.session_owner),
        label=row.label,
        tries=row.tries,
        remaining=row.remaining,
        created_at=row.created_at,
        finished_at=row.finished_at,
    )
