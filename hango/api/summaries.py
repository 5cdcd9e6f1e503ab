"""The compaction summary of a session: put in force, or taken back. The messages that it covers are still there."""

from __future__ import annotations

import asyncio
from typing import Annotated

import msgspec
from pydantic import Field

from hango.api.endpoint import Call
from hango.api.fields import Body
from hango.api.session_messages import SEQ_MOST
from hango.chain import estimator, summaries
from hango.chain.base import current
from hango.chain.calls import draft
from hango.domain import AuditAction, Session
from hango.errors import Invalid, NotFound, Reason
from hango.store import audit, context_overrides, runs, sessions
from hango.store.connection import Scope

MAX_TEXT = 1024 * 1024


class SummaryIn(Body):
    """`through_seq` is the last message that the text stands for."""

    text: Annotated[str, Field(max_length=MAX_TEXT)]
    through_seq: Annotated[int, Field(ge=1, le=SEQ_MOST)]


class SummaryOut(msgspec.Struct, frozen=True):
    text: str
    through_seq: int


async def put_summary(call: Call[Session, SummaryIn]) -> SummaryOut:
    """Put a text in force in the place of the messages up to one. A cut never separates a call from its result."""
    text, through = call.body.text, call.body.through_seq
    if not text.strip():
        raise Invalid.because(Reason.EMPTY_TEXT, "A summary is not blank.", pointer="/text")
    tokens = (await asyncio.to_thread(estimator.count, [text]))[0]
    async with call.deps.store.begin(call.principal) as scope:
        await context_overrides.hold_session(scope, call.target.id)
        await runs.refuse_active(scope, call.target.id)
        await _check_cut(call, scope, through)
        await sessions.set_summary(scope, call.target.id, text, through, tokens)
        await audit.record(
            scope, AuditAction.SUMMARY_SAVE, "session", call.target.id, {"through_seq": through, "chars": len(text)}
        )
    return SummaryOut(text, through)


async def undo_summary(call: Call[Session, None]) -> None:
    """Take the last one back: the one before it is in force again, or none."""
    async with call.deps.store.begin(call.principal) as scope:
        await context_overrides.hold_session(scope, call.target.id)
        await runs.refuse_active(scope, call.target.id)
        if not await sessions.undo_summary(scope, call.target.id):
            raise NotFound
        await audit.record(scope, AuditAction.SUMMARY_UNDO, "session", call.target.id, {})


async def _check_cut(call: Call[Session, SummaryIn], scope: Scope, through: int) -> None:
    """Raise Invalid when the cut is inside a pair, or before the end of the summary in force."""
    base = await current(scope, call.target.id)
    if base.summary is not None and base.summary.through_seq == through:
        return  # another text for the same messages
    drafted = await draft(scope, call.deps, base)
    if not summaries.may_cut(drafted.draft, through):
        message = (
            f"A summary through message {through} would separate a tool call from its result, or cover less than the"
            " one in force. Choose another end."
        )
        raise Invalid.because(Reason.BAD_FIELD, message, pointer="/through_seq")
