"""What the model saw then: the calls of a run, the context of each, and what changed from one to another."""

from __future__ import annotations

import re
from typing import Annotated
from uuid import UUID

import msgspec
from pydantic import Field

from hango import __version__
from hango.api import authz
from hango.api.endpoint import Call
from hango.api.fields import Moment, PageQuery, Query, parse_id
from hango.api.listing import Listing
from hango.api.try_replies import TryUsageOut
from hango.chain import context_diff, past_calls
from hango.chain.context_diff import CacheBreak, ContextDiff
from hango.chain.past_calls import PastCall
from hango.chain.snapshot import Part, Snapshot
from hango.domain import Purpose
from hango.errors import Invalid, NotFound, Reason
from hango.messages import StopReason
from hango.runs import Run, RunCall, RunError
from hango.store import run_calls, runs
from hango.store.connection import Scope
from hango.store.pages import number_of, page

NEXT = "next"
_NUMBER = re.compile(r"[1-9][0-9]{0,8}", re.ASCII)


class CallContextQuery(Query):
    """`against`: another call to compare with, `<run id>:<n>`, or `next`, the call after this one."""

    against: Annotated[str, Field(max_length=60)] | None = None


class RunCallOut(msgspec.Struct, frozen=True):
    """One model call of a run. `exact`: made by this release of hango, which makes the same request again."""

    n: int
    purpose: Purpose
    model: str
    request_sha256: str
    exact: bool
    overrides: int
    excluded_tokens: int
    usage: TryUsageOut | None
    stop_reason: StopReason | None
    error: RunError | None
    created_at: Moment
    ended_at: Moment | None

    @classmethod
    def of(cls, call: RunCall) -> RunCallOut:
        return cls(
            n=call.n,
            purpose=call.purpose,
            model=call.model,
            request_sha256=call.request_sha256,
            exact=call.version == __version__,
            overrides=call.overrides,
            excluded_tokens=call.excluded_tokens,
            usage=TryUsageOut.of(call.usage),
            stop_reason=call.stop_reason,
            error=call.error,
            created_at=call.created_at,
            ended_at=call.ended_at,
        )


class ChangedPartOut(msgspec.Struct, frozen=True):
    part: str
    before: Part
    after: Part


class ContextDiffOut(msgspec.Struct, frozen=True):
    """From one call to another, of what was sent. `cache_broken_at` is the first part that a cache could not serve."""

    added: list[Part]
    removed: list[Part]
    changed: list[ChangedPartOut]
    tokens_before: int
    tokens_after: int
    cache_broken_at: str | None
    cache_reason: CacheBreak | None

    @classmethod
    def of(cls, made: ContextDiff) -> ContextDiffOut:
        return cls(
            added=[*made.added],
            removed=[*made.removed],
            changed=[ChangedPartOut(one.part, one.before, one.after) for one in made.changed],
            tokens_before=made.tokens_before,
            tokens_after=made.tokens_after,
            cache_broken_at=made.cache_broken_at,
            cache_reason=made.cache_reason,
        )


class PastContextOut(Snapshot):
    """A snapshot made again. `exact`: the request is the one that was sent, byte for byte."""

    exact: bool = False


async def list_calls(call: Call[Run, None, PageQuery]) -> Listing[RunCallOut]:
    query = call.query
    async with call.deps.store.read(call.principal) as scope:
        found = await run_calls.list_all(scope, call.target.id, after=number_of(query.cursor), most=query.limit + 1)
    shown = page(found, query.limit, RunCallOut.of, lambda one: one.n)
    return Listing([*shown.data], shown.next_cursor)


async def show_call(call: Call[Run, None, CallContextQuery]) -> PastContextOut | ContextDiffOut:
    """The context of a call, or with `against` what changed between it and another one."""
    n = _number(call.request.path_params["n"])
    async with call.deps.store.read(call.principal) as scope:
        past = await _rebuild(call, scope, call.target.id, n)
        if call.query.against is None:
            return _snapshot(past)
        other = await _other(call, scope, n, call.query.against)
    return ContextDiffOut.of(context_diff.diff(past.drafted, other.drafted))


async def _other(call: Call[Run, None, CallContextQuery], scope: Scope, n: int, against: str) -> PastCall:
    """The call to compare with. Raises NotFound for one that the caller may not see."""
    if against == NEXT:
        return await _next(call, scope, n)
    run_text, colon, number = against.partition(":")
    if not colon:
        message = "`against` is `next`, or another call as <run id>:<n>."
        raise Invalid.because(Reason.BAD_FIELD, message)
    run = await runs.get(scope, parse_id(run_text))
    if run is None or not authz.READ_RUN.allows(call.principal, run):
        raise NotFound
    return await _rebuild(call, scope, run.id, _number(number))


async def _next(call: Call[Run, None, CallContextQuery], scope: Scope, n: int) -> PastCall:
    """The next call of the same conversation: a subagent's and a summary's lie between. Raises NotFound."""
    this, *later = await run_calls.list_all(scope, call.target.id, after=n - 1)
    found = next((one for one in later if (one.session_id, one.purpose) == (this.session_id, this.purpose)), None)
    if found is None:
        raise NotFound
    return await past_calls.rebuild(scope, call.deps, found)


async def _rebuild(call: Call[Run, None, CallContextQuery], scope: Scope, run_id: UUID, n: int) -> PastCall:
    found = await run_calls.get(scope, run_id, n)
    if found is None:
        raise NotFound
    return await past_calls.rebuild(scope, call.deps, found)


def _snapshot(past: PastCall) -> PastContextOut:
    made = past.snapshot
    return PastContextOut(**{name: getattr(made, name) for name in Snapshot.__struct_fields__}, exact=past.exact)


def _number(text: str) -> int:
    """Raises NotFound: a malformed number names nothing that is here."""
    if not _NUMBER.fullmatch(text):
        raise NotFound
    return int(text)
