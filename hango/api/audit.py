"""The audit log, for the tenant's admins."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID

import msgspec

from hango.api.endpoint import Call
from hango.api.fields import Moment, PageQuery
from hango.api.listing import Listing
from hango.domain import AuditAction, AuditEvent
from hango.store import audit


class AuditOut(msgspec.Struct, frozen=True):
    """`detail` holds ids and names of fields, never content."""

    id: UUID
    action: AuditAction
    target_kind: str
    target_id: UUID | None
    user_id: UUID | None
    detail: Mapping[str, Any]
    created_at: Moment

    @classmethod
    def of(cls, event: AuditEvent) -> AuditOut:
        return cls(
            id=event.id,
            action=event.action,
            target_kind=event.target_kind,
            target_id=event.target_id,
            user_id=event.user_id,
            detail=event.detail,
            created_at=event.created_at,
        )


async def list_audit(call: Call[None, None, PageQuery]) -> Listing[AuditOut]:
    async with call.deps.store.read(call.principal) as scope:
        page = await audit.list_all(scope, limit=call.query.limit, cursor=call.query.cursor)
    return Listing([AuditOut.of(event) for event in page.data], page.next_cursor)
