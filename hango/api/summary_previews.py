"""The preview of a summary: a queued call as a try is, and what its text no longer mentions. Changes nothing."""

from __future__ import annotations

import asyncio
from typing import Any
from uuid import UUID

import msgspec

from hango.api import admission, waiting
from hango.api.endpoint import Call, Reply
from hango.api.tries import RETRY_AFTER, started
from hango.api.try_replies import TryErrorOut, TryUsageOut, error_of
from hango.api.waiting import WaitQuery, Wish
from hango.chain import summaries, summary_previews
from hango.domain import Session
from hango.errors import NotFound
from hango.messages import read_content
from hango.store import tries
from hango.tries import ENDED, Try, TryStatus


class SummaryPreviewOut(msgspec.Struct, frozen=True):
    """`missing`: paths, numbers, URLs, identifiers and commands of the covered messages that `text` does not have.

    `text` is null before the end, and once it is purged.
    """

    id: UUID
    status: TryStatus
    text: str | None
    through_seq: int
    missing: list[str]
    usage: TryUsageOut | None
    error: TryErrorOut | None


async def start_preview(call: Call[Session, None, WaitQuery]) -> Reply[SummaryPreviewOut]:
    """Accept a preview, or give back the first one of a repeated request."""
    wish = waiting.wish_of(call)
    preview_id = await admission.admit(call, admission.Wanted(is_summary=True))
    found = await _wait(call, preview_id, wish)
    path = f"/v1/summary-previews/{preview_id}"
    return started(await _shown(call, found), path, wish, is_ended=found.status in ENDED)


async def show_preview(call: Call[Try, None, WaitQuery]) -> Reply[SummaryPreviewOut]:
    """The preview as it is, or as it is when it ends or the wait is over."""
    wish = waiting.wish_of(call)
    found = await _wait(call, call.target.id, wish)
    return Reply(await _shown(call, found), headers=wish.headers() if found.status in ENDED else RETRY_AFTER)


async def _shown(call: Call[Any, None, WaitQuery], found: Try) -> SummaryPreviewOut:
    assert found.through_seq is not None, "it is the preview of a summary"
    text, missing = None, list[str]()
    if found.answer is not None:
        said = (block.view.text or "" for block in read_content(found.answer) if block.type == "text")
        text = "\n\n".join(said).strip()
        async with call.deps.store.read(call.principal) as scope:
            what = await summary_previews.covered(scope, call.deps, found.base_id, found.through_seq)
        missing = await asyncio.to_thread(summaries.missing, what, text)
    return SummaryPreviewOut(
        id=found.id,
        status=found.status,
        text=text,
        through_seq=found.through_seq,
        missing=missing,
        usage=TryUsageOut.of(found.usage),
        error=error_of(found),
    )


async def _wait(call: Call[Any, None, WaitQuery], preview_id: UUID, wish: Wish) -> Try:
    return await waiting.until(call, preview_id, lambda: _look(call, preview_id), lambda one: one.status in ENDED, wish)


async def _look(call: Call[Any, None, WaitQuery], preview_id: UUID) -> Try:
    async with call.deps.store.read(call.principal) as scope:
        found = await tries.get_preview(scope, preview_id)
    if found is None:  # its session was deleted meanwhile
        raise NotFound
    return found
