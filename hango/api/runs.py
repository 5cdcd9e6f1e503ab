"""Runs: user's words in, model calls and tools, until the model stops. One at a time in a session."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any, ClassVar
from uuid import UUID

import msgspec
from pydantic import WithJsonSchema

from hango import telemetry
from hango.api import idempotency, waiting
from hango.api.bodies import pointer
from hango.api.endpoint import Call, Reply
from hango.api.fields import Body, Moment, PageQuery, RawJson
from hango.api.listing import Listing
from hango.api.run_errors import SENTENCES
from hango.api.session_messages import BLOCKS
from hango.api.tries import RETRY_AFTER
from hango.api.try_replies import TryUsageOut
from hango.api.waiting import WaitQuery, Wish
from hango.chain import base as bases
from hango.chain import calls, sendable
from hango.chain.digest import digest
from hango.domain import RunID, RunStatus, Session
from hango.errors import Detail, Invalid, NotFound, Reason
from hango.messages import Block, MessageRole, StopReason, content_json, is_blank, read_content
from hango.runs import OPEN, NewRun, Run, RunError
from hango.store import context_bases, context_overrides, idempotency_keys, messages, runs, usage
from hango.store.connection import Scope
from hango.store.ids import new_id
from hango.store.messages import NewMessage
from hango.workers import counting


class RunIn(Body):
    """`message`: what the user says, a string or a list of blocks. Without it the history must end with the user."""

    raw_fields: ClassVar[tuple[tuple[str, ...], ...]] = (("message",),)

    message: Annotated[RawJson, WithJsonSchema({"anyOf": [{"type": "string"}, BLOCKS]})] | None = None


class RunErrorOut(msgspec.Struct, frozen=True):
    code: RunError
    message: str


class RunOut(msgspec.Struct, frozen=True):
    """A run. `turns` counts its own model calls, `usage` sums all that it made; `overrides` are those in force."""

    id: UUID
    session_id: UUID
    status: RunStatus
    turns: int
    model: str
    overrides: int
    stop_reason: StopReason | None
    error: RunErrorOut | None
    usage: TryUsageOut | None
    attempts: int
    created_at: Moment
    started_at: Moment | None
    finished_at: Moment | None

    @classmethod
    def of(cls, run: Run) -> RunOut:
        return cls(
            id=run.id,
            session_id=run.session_id,
            status=run.status,
            turns=run.turns,
            model=run.model,
            overrides=run.overrides,
            stop_reason=run.stop_reason,
            error=None if run.error is None else RunErrorOut(run.error, SENTENCES[run.error]),
            usage=TryUsageOut.of(run.usage),
            attempts=run.attempts,
            created_at=run.created_at,
            started_at=run.started_at,
            finished_at=run.finished_at,
        )


async def start_run(call: Call[Session, RunIn, WaitQuery]) -> Reply[RunOut]:
    """Accept a run, or give back the first one of a repeated request."""
    wish = waiting.wish_of(call)
    said = await asyncio.to_thread(_read, call.body)
    run_id = await _accept(call, said)
    await call.runtime.doorbell.ring()
    found = await _wait(call, run_id, wish)
    headers = {"Location": f"/v1/runs/{run_id}"}
    if found.status not in OPEN and wish.seconds:
        return Reply(RunOut.of(found), 200, headers | wish.headers())
    return Reply(RunOut.of(found), 202, headers | RETRY_AFTER)


async def show_run(call: Call[Run, None, WaitQuery]) -> Reply[RunOut]:
    """The run as it is, or as it is when it ends or the wait is over."""
    wish = waiting.wish_of(call)
    found = await _wait(call, call.target.id, wish)
    return Reply(RunOut.of(found), headers=RETRY_AFTER if found.status in OPEN else wish.headers())


async def cancel_run(call: Call[Run, None]) -> Reply[RunOut]:
    """A waiting one ends at once; a running one is told to; one that has ended stays as it is."""
    async with call.deps.store.begin(call.principal) as scope:
        cancelled = await runs.cancel(scope, run_id=call.target.id)
    counting.run_ended(RunStatus.CANCELLED, cancelled)
    found = await _look(call, call.target.id)
    return Reply(RunOut.of(found), 202 if found.status in OPEN else 200)


async def list_runs(call: Call[Session, None, PageQuery]) -> Listing[RunOut]:
    query = call.query
    async with call.deps.store.read(call.principal) as scope:
        page = await runs.list_all(scope, call.target.id, limit=query.limit, cursor=query.cursor)
    return Listing([RunOut.of(run) for run in page.data], page.next_cursor)


def _read(body: RunIn) -> tuple[Block, ...] | None:
    """The message's blocks. Raises Invalid leading into `/message`."""
    if body.message is None or bytes(body.message) == b"null":
        return None
    try:
        said = read_content(body.message)
    except Invalid as fault:
        errors = [Detail(one.reason, one.message, pointer=pointer("message")) for one in fault.errors]
        raise Invalid(str(fault), errors=errors) from None
    if all(block.type == "text" and is_blank(block.view.text or "") for block in said):
        message = "The message says nothing. Leave it out to let the agent go on with the history as it is."
        raise Invalid.because(Reason.EMPTY_MESSAGE, message, pointer=pointer("message"))
    return said


async def _accept(call: Call[Session, RunIn, WaitQuery], said: tuple[Block, ...] | None) -> UUID:
    """The id of the new run: its message, its base and its place in the queue in one transaction.

    Raises RunActive, QuotaExceeded, NotFound, and Invalid for a context that a provider would refuse.
    """
    repeatable = idempotency.read(call)
    run_id = RunID(new_id())
    async with call.deps.store.begin(call.principal) as scope:
        await context_overrides.hold_session(scope, call.target.id)
        if repeatable is not None:
            first = await idempotency_keys.take(scope, repeatable.key, repeatable.request_hash, run_id)
            if first != run_id:
                return first
        await usage.ensure_quota(scope)
        await _write(call, scope, run_id, said)
    return run_id


async def _write(
    call: Call[Session, RunIn, WaitQuery], scope: Scope, run_id: RunID, said: tuple[Block, ...] | None
) -> None:
    settings, session_id = call.deps.settings, call.target.id
    base = await bases.current(scope, session_id)
    agent = await call.deps.definition(scope, base.agent_version_id)
    new = NewRun(
        base_id=await context_bases.find_or_create(scope, base),
        model=agent.model,
        first_seq=base.through_seq,
        overrides=len(base.overrides),
        ttl_seconds=settings.run_timeout,
        timeout_seconds=settings.run_timeout,
        traceparent=telemetry.traceparent(),
    )
    await runs.create(scope, run_id, session_id, new)
    if said is not None:
        digested = digest(MessageRole.USER, said, None)
        message = NewMessage(MessageRole.USER, content_json(said), digested, run_id=run_id)
        await messages.append(scope, session_id, [message])
    # What would be refused is refused now, and leaves nothing behind.
    drafted = await calls.draft(scope, call.deps, await bases.current(scope, session_id))
    sendable.check(call.deps, drafted, compacts=calls.compacts(drafted), of_run=True)
    if said is not None and not sendable.is_last_sent(drafted):
        fault = "Nothing of the message would be sent: its results answer no waiting call, or its blocks say nothing."
        raise Invalid.because(Reason.EMPTY_MESSAGE, fault, pointer=pointer("message"))


async def _wait(call: Call[Any, Any, WaitQuery], run_id: UUID, wish: Wish) -> Run:
    return await waiting.until(call, run_id, lambda: _look(call, run_id), lambda run: run.status not in OPEN, wish)


async def _look(call: Call[Any, Any, Any], run_id: UUID) -> Run:
    async with call.deps.store.read(call.principal) as scope:
        found = await runs.get(scope, run_id)
    if found is None:  # its session was deleted meanwhile
        raise NotFound
    return found
