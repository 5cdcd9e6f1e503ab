"""Tries: one model call with a changed context, queued. Its session gets no message and no run."""

from __future__ import annotations

import asyncio
from typing import Any
from uuid import UUID

from hango.api import admission, waiting
from hango.api.changes import VariantIn
from hango.api.endpoint import Call, Reply, ReplyT
from hango.api.fields import PageQuery
from hango.api.try_replies import TryOut, tries_json
from hango.api.waiting import WaitQuery, Wish
from hango.domain import Session
from hango.errors import NotFound
from hango.store import tries
from hango.tries import ENDED, Try, TryStatus
from hango.workers import counting

RETRY_AFTER = {"Retry-After": "1"}


class TryIn(VariantIn):
    """What to change for one call."""


async def start_try(call: Call[Session, TryIn, WaitQuery]) -> Reply[TryOut]:
    """Accept a try, or give back the first one of a repeated request."""
    wish = waiting.wish_of(call)
    wanted = admission.Wanted([call.body.variant()])
    try_id = await admission.admit(call, wanted)
    found = await _wait(call, try_id, wish)
    return started(TryOut.of(found), f"/v1/tries/{try_id}", wish, is_ended=found.status in ENDED)


def started(body: ReplyT, location: str, wish: Wish, *, is_ended: bool) -> Reply[ReplyT]:
    """200 for what ended within the wait that was asked for, else 202."""
    headers = {"Location": location}
    if not is_ended:
        return Reply(body, 202, headers | RETRY_AFTER)
    return Reply(body, 200, headers | wish.headers()) if wish.seconds else Reply(body, 202, headers)


async def show_try(call: Call[Try, None, WaitQuery]) -> Reply[TryOut]:
    """The try as it is, or as it is when it ends or the wait is over."""
    wish = waiting.wish_of(call)
    found = await _wait(call, call.target.id, wish) if call.target.status not in ENDED else call.target
    if found.status in ENDED:
        return Reply(TryOut.of(found), headers=wish.headers())
    return Reply(TryOut.of(found), headers=RETRY_AFTER)


async def cancel_try(call: Call[Try, None]) -> Reply[TryOut]:
    """A waiting one ends at once; a running one is told to; one that has ended stays as it is."""
    async with call.deps.store.begin(call.principal) as scope:
        cancelled = await tries.cancel(scope, try_id=call.target.id)
    counting.ended(TryStatus.CANCELLED, cancelled)
    found = await _look(call, call.target.id)
    return Reply(TryOut.of(found), 200 if found.status in ENDED else 202)


async def list_tries(call: Call[Session, None, PageQuery]) -> bytes:
    query = call.query
    async with call.deps.store.read(call.principal) as scope:
        page = await tries.list_all(scope, call.target.id, limit=query.limit, cursor=query.cursor)
    return await asyncio.to_thread(tries_json, page)


async def _wait(call: Call[Any, Any, WaitQuery], try_id: UUID, wish: Wish) -> Try:
    return await waiting.until(call, try_id, lambda: _look(call, try_id), lambda one: one.status in ENDED, wish)


async def _look(
    call: Call[Session, TryIn, WaitQuery] | Call[Try, None, WaitQuery] | Call[Try, None], try_id: UUID
) -> Try:
    async with call.deps.store.read(call.principal) as scope:
        found = await tries.get(scope, try_id)
    if found is None:  # its session was deleted meanwhile
        raise NotFound
    return found
