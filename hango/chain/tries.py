"""A try: what it would send, worked out when it is accepted, and worked out again by the worker that sends it.

Both go through the same chain from the same base, and the hash says that they agree: what was inspected is what is
paid.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol

from hango.chain import base as bases
from hango.chain import context, part_lists, sendable
from hango.chain.context import Drafted, draft_state, request_of
from hango.chain.context_overrides import read
from hango.chain.deps import Deps
from hango.chain.draft import Bodies, Draft
from hango.chain.kept_bases import KeptBase
from hango.chain.parts import message_part, message_seq
from hango.chain.stack import build_chain
from hango.chain.state import State, Trunk, Wanted
from hango.domain import BaseID, OverrideAction, PartID, SessionID
from hango.errors import Detail, HangoError, Invalid, NotFound
from hango.messages import Request, Usage
from hango.store import context_bases, token_factors
from hango.store.connection import Scope
from hango.store.context_bases import CurrentBase
from hango.tries import Changes, ClaimedRequest, NewRequest, Texts

# The estimate may be short of what is billed; the most that an answer may have is known.
RESERVED_SHARE = 1.1

# A factor follows what is billed, but no single odd call: a call weighs a fifth, and the table's value is never more
# than twice wrong. A short request tells little: what a provider adds by itself weighs too much in it.
FACTOR_WEIGHT = 0.2
FACTOR_SPREAD = 2.0
LEAST_TOKENS = 200


class ContextChanged(HangoError):
    """The context of this try can no longer be made as it was accepted. Start it again."""

    status, code = 409, "context_changed"


@dataclass(frozen=True, slots=True)
class Variant:
    """One change of the context, as somebody wants it tried."""

    label: str | None
    wanted: Wanted

    @property
    def changes(self) -> Changes:
        """Which parts it changes, in the caller's order."""
        exclude = [one.part for one in self.wanted.overrides if one.action is OverrideAction.EXCLUDE]
        return Changes(tuple(exclude), tuple(self.texts.replace), tuple(self.wanted.include), self.wanted.until)

    @property
    def texts(self) -> Texts:
        """The caller's own words."""
        replace: dict[str, str] = {
            one.part: one.replacement for one in self.wanted.overrides if one.replacement is not None
        }
        return Texts(replace, self.wanted.message)


@dataclass(frozen=True, slots=True)
class Gathered:
    """All that is read for variants of one base: what is left to do needs no database."""

    base: CurrentBase
    variants: Sequence[Variant]
    trunks: Mapping[Trunk, State]
    is_batch: bool


@dataclass(frozen=True, slots=True)
class Plan:
    """What would be sent, of one base."""

    base: CurrentBase
    requests: tuple[NewRequest, ...]


@dataclass(frozen=True, slots=True)
class Prepared:
    """A claimed try, ready to be sent. `raw_tokens` are those of the counting encoding."""

    request: Request
    provider: str
    model: str
    raw_tokens: int
    overrides: int
    excluded_tokens: int


async def gather(
    scope: Scope, deps: Deps, session_id: SessionID, variants: Sequence[Variant], *, is_batch: bool = False
) -> Gathered:
    """Read what the variants need of the session as it is now. Raises NotFound, and Invalid as `plan` does."""
    async with context.bounded(deps.settings.before_run_max):
        base = await bases.current(scope, session_id)
    trunks: dict[Trunk, State] = {}
    for at, variant in enumerate(variants):
        with in_variant(at if is_batch else None):
            await _trunk(scope, deps, base, trunks, variant.wanted)
    return Gathered(base, variants, trunks, is_batch)


async def plan(deps: Deps, gathered: Gathered) -> Plan:
    """Draft every variant through the chain. Reads nothing, writes nothing, calls no model.

    Raises Invalid for the first variant that could not be sent; of a batch its pointers lead into `/variants/<n>`.
    """
    base, made = gathered.base, []
    for at, variant in enumerate(gathered.variants):
        with in_variant(at if gathered.is_batch else None):
            bases.check_until(base, variant.wanted)
            trunk = gathered.trunks[bases.trunk_of(base, variant.wanted)]
            drafted = await draft_state(base, trunk.with_wanted(variant.wanted))
            sendable.check(deps, drafted)
        made.append(new_request(variant, drafted))
        await asyncio.sleep(0)  # a thousand variants of a long session must not hold up other requests
    return Plan(base, tuple(made))


async def prepare(scope: Scope, deps: Deps, session_id: SessionID, wanted: ClaimedRequest) -> Prepared:
    """The request of a claimed try, from its base. Raises ContextChanged when it is not the one that was accepted."""
    kept = await _kept_base(scope, deps, wanted.base_id)
    texts = wanted.texts or Texts()
    if tuple(texts.replace) != wanted.changes.replace:
        raise ContextChanged  # the texts are purged
    try:
        wishes = wishes_of(wanted.changes, texts, wanted.model)
        async with kept.lock:
            state = await _trunk(scope, deps, kept.base, kept.trunks, wishes)
        drafted = await draft_state(kept.base, state.with_wanted(wishes))
    except (Invalid, NotFound):
        raise ContextChanged from None
    if drafted.sha256 != wanted.request_sha256 or kept.base.session_id != session_id:
        raise ContextChanged
    async with kept.lock:
        bodies = await _bodies(scope, kept, drafted.draft)
    size = drafted.draft.size
    assert size is not None, "the summarization slot sets the sizes"
    return Prepared(
        request=request_of(drafted, bodies),
        provider=state.agent.provider,
        model=state.agent.model,
        raw_tokens=round(size.after / state.factor),
        overrides=sum(mark.override is not None for mark in drafted.draft.marks.values()),
        excluded_tokens=size.before - size.after,
    )


def wishes_of(changes: Changes, texts: Texts, model: str | None) -> Wanted:
    """What a variant of these wants. Raises Invalid naming the part at fault."""
    return Wanted(read(changes.exclude, texts.replace), changes.include, texts.message, changes.until, model)


class Counted(Protocol):
    """A call that was billed. `raw_tokens` are those of the counting encoding."""

    @property
    def model(self) -> str: ...
    @property
    def raw_tokens(self) -> int: ...


async def learn(scope: Scope, deps: Deps, bills: Sequence[tuple[Counted, Usage]]) -> None:
    """Take what calls were billed at, in this order, as lessons for the estimates of their models."""
    ratios: dict[str, list[float]] = {}
    for prepared, usage in bills:
        billed = usage.input_tokens + usage.cache_read_tokens + usage.cache_write_tokens
        if not prepared.model.startswith("offline/") and min(prepared.raw_tokens, billed) >= LEAST_TOKENS:
            ratios.setdefault(prepared.model, []).append(billed / prepared.raw_tokens)
    for model, found in sorted(ratios.items()):  # in the order in which everybody takes these rows
        start = deps.models.row(model).factor
        least, most = start / FACTOR_SPREAD, start * FACTOR_SPREAD
        ratio, weight = weighed([min(max(one, least), most) for one in found])
        first = start + weight * (ratio - start)
        await token_factors.learn(
            scope, model, ratio=ratio, first=first, weight=weight, least=least, most=most, calls=len(found)
        )


def weighed(ratios: Sequence[float]) -> tuple[float, float]:
    """One ratio and its weight that move a factor as far as all these do, one after the other."""
    moved, weight = 0.0, 0.0
    for ratio in ratios:
        moved += FACTOR_WEIGHT * (ratio - moved)
        weight += FACTOR_WEIGHT * (1 - weight)
    return moved / weight, weight


@contextmanager
def in_variant(at: int | None) -> Iterator[None]:
    """A refusal inside says of which variant it is; None: there is one alone."""
    try:
        yield
    except Invalid as fault:
        if at is None:
            raise
        place = f"/variants/{at}"
        errors = [Detail(one.reason, one.message, one.part, place + (one.pointer or "")) for one in fault.errors]
        raise Invalid(f"Variant {at}: {fault}", errors=errors) from None


async def _trunk(scope: Scope, deps: Deps, base: CurrentBase, trunks: dict[Trunk, State], wanted: Wanted) -> State:
    """The state that calls like this one have in common. Those of a base share what is read, whatever their model."""
    key = bases.trunk_of(base, wanted)
    trunk = trunks.get(key)
    if trunk is None:
        like = next((one for known, one in trunks.items() if known.without_summary == key.without_summary), None)
        async with context.bounded(deps.settings.before_run_max):
            trunk = await bases.build_trunk(scope, deps, base, key, through=base.through_seq, like=like)
            await build_chain(trunk.agent.builtin).before_run(trunk, scope)
        trunks[key] = trunk
    return trunk


async def _kept_base(scope: Scope, deps: Deps, base_id: BaseID) -> KeptBase:
    """A base, as this process may have it already. Raises ContextChanged when its session is gone."""
    kept = deps.bases.get((scope.tenant_id, base_id))
    if kept is None:
        found = await context_bases.get(scope, base_id)
        loaded = None if found is None else await context_bases.load(scope, found)
        if loaded is None:
            raise ContextChanged
        kept = KeptBase(loaded)
        deps.bases.put((scope.tenant_id, base_id), kept)
    return kept


async def _bodies(scope: Scope, kept: KeptBase, draft: Draft) -> Bodies:
    """The blocks of all persisted messages that a call sends, and of those that others of its base have sent."""
    sent = (item.seq for item in draft.kept_messages() if item.seq > 0)
    if missing := [seq for seq in sent if seq not in kept.bodies]:
        kept.bodies |= await context.read_bodies(scope, kept.base.session_id, missing[0] - 1, missing[-1])
    return kept.bodies


def new_request(variant: Variant, drafted: Drafted) -> NewRequest:
    """What is written down of a call that somebody wants tried."""
    agent, draft = drafted.state.agent, drafted.draft
    size = draft.size
    assert size is not None, "the summarization slot sets the sizes"
    return NewRequest(
        label=variant.label,
        model=agent.model,
        changes=variant.changes,
        texts=variant.texts,
        sent=part_lists.encode(_sent(draft)),
        excluded=part_lists.encode(_excluded(draft)),
        request_sha256=drafted.sha256,
        tokens_before=size.before,
        tokens_after=size.after,
        max_output_tokens=agent.max_output_tokens,
        reserved=math.ceil(RESERVED_SHARE * size.after) + agent.max_output_tokens,
    )


def _sent(draft: Draft) -> Iterable[PartID | int]:
    """What something of is sent, in the order of the request; persisted messages by their seq."""
    assert draft.repair is not None, "the context_overrides slot sets the repair"
    yield from (part for part, _ in draft.kept_system())
    yield from (item.part for item in draft.kept_tools())
    kept, unsent = draft.kept_messages(), draft.repair.unsent
    for item in (one for at, one in enumerate(kept) if at not in unsent) if unsent else kept:
        yield item.seq if item.seq > 0 else message_part(item.seq)


def _excluded(draft: Draft) -> list[PartID | int]:
    """What overrides leave out, partners among them: messages in their order, after the others."""
    gone = [part for part, mark in draft.marks.items() if mark.excluded]
    seqs = {part: seq for part in gone if (seq := message_seq(part)) is not None and seq > 0}
    return [*(part for part in gone if part not in seqs), *sorted(seqs.values())]
