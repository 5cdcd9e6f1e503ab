"""What the tenant's model calls used and cost, for its admins."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal
from uuid import UUID

import msgspec
from pydantic import BeforeValidator, Field, WithJsonSchema

from hango.api.endpoint import Call
from hango.api.fields import IdText, Moment, PageQuery, Query, parse_day_or_time, parse_id
from hango.api.listing import Listing
from hango.domain import Purpose, RunID, SessionID, UsageGroup, UsageRecord
from hango.store import usage

DayOrTime = Annotated[
    datetime,
    BeforeValidator(parse_day_or_time),
    WithJsonSchema({"type": "string", "anyOf": [{"format": "date"}, {"format": "date-time"}]}),
]


class UsageQuery(Query):
    """Calls from `from` on and before `to`: days, or times with an offset."""

    from_: Annotated[DayOrTime | None, Field(alias="from")] = None
    to: DayOrTime | None = None
    group_by: Literal["purpose", "model", "user", "session", "day"] = "purpose"


class RecordsQuery(PageQuery):
    purpose: Literal["run", "subagent", "summary", "context_try"] | None = None
    session_id: IdText | None = None


class UsageGroupOut(msgspec.Struct, frozen=True):
    """`cost_usd` is null where a model's price is not known."""

    group: str
    records: int
    input_tokens: int
    output_tokens: int
    cache_read_tokens: int
    cache_write_tokens: int
    cost_usd: float | None

    @classmethod
    def of(cls, group: UsageGroup) -> UsageGroupOut:
        return cls(
            group=group.group,
            records=group.records,
            input_tokens=group.input_tokens,
            output_tokens=group.output_tokens,
            cache_read_tokens=group.cache_read_tokens,
            cache_write_tokens=group.cache_write_tokens,
            cost_usd=group.cost_usd,
        )


class UsageOut(msgspec.Struct, frozen=True):
    data: list[UsageGroupOut]


class UsageRecordOut(msgspec.Struct, frozen=True):
    """One model call. `input_tokens` is without the cached ones; `estimated` where the provider gave no figures."""

    id: UUID
    purpose: Purpose
    run_id: RunID | None
    try_id: UUID | None
    session_id: SessionID | None
    model: str
    input_tokens: int
    output_tokens: int
    cache_read_tokens: int
    cache_write_tokens: int
    cost_usd: float | None
    estimated: bool
    created_at: Moment

    @classmethod
    def of(cls, record: UsageRecord) -> UsageRecordOut:
        return cls(
            id=record.id,
            purpose=record.purpose,
            run_id=record.run_id,
            try_id=record.try_id,
            session_id=record.session_id,
            model=record.model,
            input_tokens=record.input_tokens,
            output_tokens=record.output_tokens,
            cache_read_tokens=record.cache_read_tokens,
            cache_write_tokens=record.cache_write_tokens,
            cost_usd=record.cost_usd,
            estimated=record.estimated,
            created_at=record.created_at,
        )


async def show_usage(call: Call[None, None, UsageQuery]) -> UsageOut:
    query = call.query
    async with call.deps.store.read(call.principal) as scope:
        groups = await usage.summary(scope, query.from_, query.to, query.group_by)
    return UsageOut([UsageGroupOut.of(group) for group in groups])


async def list_records(call: Call[None, None, RecordsQuery]) -> Listing[UsageRecordOut]:
    query = call.query
    async with call.deps.store.read(call.principal) as scope:
        page = await usage.records(
            scope,
            purpose=Purpose(query.purpose) if query.purpose else None,
            session_id=SessionID(parse_id(query.session_id)) if query.session_id else None,
            limit=query.limit,
            cursor=query.cursor,
        )
    return Listing([UsageRecordOut.of(record) for record in page.data], page.next_cursor)
