"""The context of a session: the next model request part by part, one part in full, or the body a provider would get."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Annotated, Literal

import msgspec
from pydantic import Field

from hango.api.changes import ChangesIn
from hango.api.endpoint import Call
from hango.api.fields import Query, Whole
from hango.chain import context, frames, saved_overrides
from hango.chain.draft import Draft
from hango.chain.frames import Frame
from hango.chain.full_part import FullPart
from hango.chain.snapshot import Snapshot
from hango.chain.state import UNCHANGED, Wanted
from hango.chain.window import Window
from hango.domain import PartID, Session
from hango.errors import Reason
from hango.telemetry import Attr, Event, Metric, Seen, Span, span
from hango.telemetry.names import EVENTS_MOST

MAX_WINDOW = 1000


class ContextQuery(Query):
    """What of the context is wanted: all of it, one part, the provider's body, or a stretch of one group."""

    full: Annotated[str, Field(max_length=1200)] | None = None
    format: Literal["provider"] | None = None
    group: Literal["system", "tools", "messages"] | None = None
    after: Annotated[Whole, Field(ge=0)] | None = None
    limit: Annotated[Whole, Field(ge=1, le=MAX_WINDOW)] | None = None
    count: Literal["estimate", "provider"] | None = None


class PreviewIn(ChangesIn):
    """Unsaved overrides for one look. `message` is extra text of the user, `until` an earlier end of the history."""


class ProviderRequest(msgspec.Struct):
    """The body as the provider would get it, with no secret in it."""

    provider: str
    request: msgspec.Raw


async def show_context(call: Call[Session, None, ContextQuery]) -> Snapshot | FullPart | ProviderRequest:
    """GET: with the provider's count where there is one, unless `count=estimate`."""
    query, count = call.query, call.query.count != "estimate"
    with _inspect() as seen:
        estimated = await _estimated(seen, call, count=count) if query.full is None and query.format is None else None
        return estimated or await _look(seen, call, UNCHANGED, count=count)


async def preview_context(
    call: Call[Session, PreviewIn, ContextQuery],
) -> Snapshot | FullPart | ProviderRequest:
    """POST: by estimates, unless `count=provider`."""
    wanted = call.body.wanted()
    with _inspect() as seen:
        return await _look(seen, call, wanted, count=call.query.count == "provider")


async def _estimated(seen: Seen, call: Call[Session, None, ContextQuery], *, count: bool) -> Snapshot | None:
    """The snapshot by estimates; None when a provider shall count."""
    window = _window(call.query)
    async with call.deps.store.read(call.principal) as scope:
        found = await context.look(scope, call.deps, call.target.id, window, count=count)
    if found is None:
        return None
    frame, items = found
    _measure(seen, _of_frame(frame))
    return frames.fill(frame, window, items)


async def _look(
    seen: Seen,
    call: Call[Session, None, ContextQuery] | Call[Session, PreviewIn, ContextQuery],
    wanted: Wanted,
    *,
    count: bool,
) -> Snapshot | FullPart | ProviderRequest:
    query = call.query
    async with call.deps.store.read(call.principal) as scope:
        drafted = await context.draft_next_call(scope, call.deps, call.target.id, wanted)
        _measure(seen, _of_draft(drafted.draft))
        if query.full is not None:
            return await context.full_part(scope, drafted, query.full)
        bodies = None
        if query.format or (count and context.has_counter(call.deps, drafted)):
            bodies = await context.load_bodies(scope, drafted)
    if query.format and bodies is not None:
        body = context.provider_body(call.deps, drafted, bodies)
        return ProviderRequest(drafted.state.agent.provider, msgspec.Raw(body))
    return await context.take_snapshot(call.deps, drafted, _window(query), bodies)


def _window(query: ContextQuery) -> Window:
    return Window(query.group, query.after, query.limit)


@dataclass(frozen=True, slots=True)
class _Measures:
    """What the span of an inspect says: of the whole request, whatever stretch of it is shown."""

    parts: tuple[int, int, int]
    before: int
    after: int
    would_compact: bool
    stale: Sequence[tuple[PartID, Reason]]
    paired: Sequence[tuple[PartID, PartID]]


def _of_draft(draft: Draft) -> _Measures:
    assert draft.size is not None
    return _Measures(
        (len(draft.system), len(draft.tools), len(draft.messages)),
        draft.size.before,
        draft.size.after,
        draft.would_compact,
        [(stale.override.part, stale.reason) for stale in draft.stale],
        [(added.part, added.because) for added in saved_overrides.added(draft)],
    )


def _of_frame(frame: Frame) -> _Measures:
    head, partners = frame.head, (part for part in frame.odd.values() if part.paired)
    return _Measures(
        frame.counts,
        head.estimate_before,
        head.estimate_after,
        head.would_compact,
        [(PartID(stale.part), Reason(stale.reason)) for stale in head.stale],
        [(PartID(part.id), PartID(str(part.paired_with))) for part in partners],
    )


def _inspect() -> AbstractContextManager[Seen]:
    return span(Span.CONTEXT_INSPECT, seconds=Metric.CONTEXT_INSPECT_DURATION)


def _measure(seen: Seen, measures: _Measures) -> None:
    for attr, count in zip((Attr.PARTS_SYSTEM, Attr.PARTS_TOOLS, Attr.PARTS_MESSAGES), measures.parts, strict=True):
        seen.set(attr, count)
    seen.set(Attr.TOKENS_BEFORE, measures.before)
    seen.set(Attr.TOKENS_AFTER, measures.after)
    seen.set(Attr.WOULD_COMPACT, measures.would_compact)
    for part, reason in measures.stale[:EVENTS_MOST]:
        seen.happened(Event.OVERRIDE_STALE, {Attr.PART: part, Attr.REASON: reason})
    for part, because in measures.paired[:EVENTS_MOST]:
        seen.happened(Event.OVERRIDE_PAIRED, {Attr.PART: part, Attr.BECAUSE: because})
