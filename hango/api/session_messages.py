"""The persisted messages of a session: list and append. Overrides never change them."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Annotated, Any, ClassVar, Literal
from uuid import UUID

import msgspec
from pydantic import Field, WithJsonSchema

from hango.api.bodies import pointer
from hango.api.endpoint import Call, Reply, created
from hango.api.fields import PAGE_DEFAULT, PAGE_MOST, Body, Moment, Query, RawJson, Time, Whole
from hango.chain.digest import digests
from hango.domain import AuditAction, Session, SessionMessage
from hango.errors import Detail, Invalid
from hango.messages import Message, MessageRole, content_json, read_content
from hango.store import audit, context_overrides, messages, runs
from hango.store.messages import NewMessage

SEQ_MOST = 2**31 - 1  # a Postgres integer

# Only `type` is asked of a block; an unknown type is kept as it came.
BLOCKS: dict[str, Any] = {
    "type": "array",
    "items": {"type": "object", "properties": {"type": {"type": "string"}}, "required": ["type"]},
}


class MessageIn(Body):
    """`content` is a string or a list of content blocks, kept as it comes. No `model` means the agent's."""

    role: Literal["user", "assistant", "system"]
    content: Annotated[RawJson, WithJsonSchema({"anyOf": [{"type": "string"}, BLOCKS]})]
    model: Annotated[str, Field(min_length=1, max_length=256)] | None = None
    created_at: Time | None = None


class MessagesIn(Body):
    """Messages to append, in order."""

    raw_fields: ClassVar[tuple[tuple[str, ...], ...]] = (("messages", "*", "content"),)

    messages: Annotated[list[MessageIn], Field(min_length=1)]


class MessagesQuery(Query):
    """The messages behind seq `after`."""

    after: Annotated[Whole, Field(ge=0, le=SEQ_MOST)] = 0
    limit: Annotated[Whole, Field(ge=1, le=PAGE_MOST)] = PAGE_DEFAULT


class MessageOut(msgspec.Struct, frozen=True):
    """`content` is the list of blocks as they came."""

    seq: int
    role: MessageRole
    content: Annotated[msgspec.Raw, msgspec.Meta(extra_json_schema=BLOCKS)]
    run_id: UUID | None
    model: str | None
    created_at: Moment

    @classmethod
    def of(cls, message: SessionMessage) -> MessageOut:
        return cls(
            seq=message.seq,
            role=MessageRole(message.role),
            content=msgspec.Raw(message.content.encode()),
            run_id=message.run_id,
            model=message.model,
            created_at=message.created_at,
        )


class MessagesOut(msgspec.Struct, frozen=True):
    """`next_after` is the `after` of the next page, null on the last one."""

    data: list[MessageOut]
    next_after: int | None


class SeqOut(msgspec.Struct, frozen=True):
    seq: int


class AppendedOut(msgspec.Struct, frozen=True):
    data: list[SeqOut]


async def list_messages(call: Call[Session, None, MessagesQuery]) -> MessagesOut:
    query = call.query
    async with call.deps.store.read(call.principal) as scope:
        # One more than asked tells whether there is a next page.
        found = await messages.page(scope, call.target.id, query.after, query.limit + 1)
    page = found[: query.limit]
    next_after = page[-1].seq if len(found) > len(page) else None
    return MessagesOut([MessageOut.of(message) for message in page], next_after)


async def append_messages(call: Call[Session, MessagesIn]) -> Reply[AppendedOut]:
    history = await read_messages(call.body.messages)
    async with call.deps.store.begin(call.principal) as scope:
        await context_overrides.hold_session(scope, call.target.id)
        await runs.refuse_active(scope, call.target.id)
        seqs = await messages.append(scope, call.target.id, history)
        await audit.record(scope, AuditAction.SESSION_APPEND, "session", call.target.id, {"messages": len(seqs)})
    location = f"/v1/sessions/{call.target.id}/messages?after={seqs[0] - 1}"
    return created(location, AppendedOut([SeqOut(seq) for seq in seqs]))


async def read_messages(wanted: Sequence[MessageIn]) -> list[NewMessage]:
    """Messages with their digests, ready to store. Raises Invalid with the pointer of the message at fault."""
    return await asyncio.to_thread(_read_messages, wanted)


def _read_messages(wanted: Sequence[MessageIn]) -> list[NewMessage]:
    read = [_read(message, index) for index, message in enumerate(wanted)]
    return [
        NewMessage(
            role=given.role,
            content=content_json(message.content),
            model=given.model,
            digest=digest,
            created_at=given.created_at,
        )
        for given, message, digest in zip(wanted, read, digests(read), strict=True)
    ]


def _read(message: MessageIn, index: int) -> Message:
    try:
        blocks = read_content(message.content)
    except Invalid as error:
        at = pointer("messages", index, "content")
        placed = [Detail(one.reason, one.message, one.part, at) for one in error.errors]
        raise Invalid(str(error), errors=placed) from None
    return Message(MessageRole(message.role), blocks, message.model)
