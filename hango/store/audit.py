"""The audit log: added to and read, never changed. A detail holds ids and names of fields, never content."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from hango import jsontext
from hango.domain import AuditAction, AuditEvent, UserID
from hango.store.connection import Scope
from hango.store.db import audit as rows
from hango.store.ids import new_id
from hango.store.pages import DEFAULT_LIMIT, Page, id_of, page


async def record(
    scope: Scope, action: AuditAction, target_kind: str, target_id: UUID | None, detail: Mapping[str, Any]
) -> None:
    """What the caller does, in the transaction that does it."""
    await rows.add_event(
        scope.conn,
        tenant_id=scope.tenant_id,
        id=new_id(),
        action=action,
        target_kind=target_kind,
        target_id=target_id,
        user_id=scope.user_id,
        detail=jsontext.dumps(detail),
    )


async def list_all(scope: Scope, *, limit: int = DEFAULT_LIMIT, cursor: str | None = None) -> Page[AuditEvent]:
    """The newest first."""
    found = await rows.list_events(scope.conn, tenant_id=scope.tenant_id, before=id_of(cursor), most=limit + 1)
    return page(found, limit, _event, lambda event: event.id)


def _event(row: rows.ListEventsRow) -> AuditEvent:
    return AuditEvent(
        id=row.id,
        action=AuditAction(row.action),
        target_kind=row.target_kind,
        target_id=row.target_id,
        user_id=None if row.user_id is None else UserID(row.user_id),
        detail=row.detail,
        created_at=row.created_at,
    )
