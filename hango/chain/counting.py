"""Totals by a provider's own counter: kept by request, and never a reason to fail."""

from __future__ import annotations

from hango import logs
from hango.chain.deps import Deps
from hango.chain.draft import Bodies, Draft
from hango.chain.providers.base import TokenCounter
from hango.chain.request_hash import request_sha256
from hango.chain.state import State
from hango.errors import ProviderFailed, ProviderTimeout
from hango.logs import Log


async def totals(deps: Deps, draft: Draft, state: State, bodies: Bodies) -> tuple[int, int] | None:
    """Tokens before and after overrides by the provider's counter; None when it has none or fails."""
    counter = deps.providers.counter(state.agent.provider)
    if counter is None:
        return None
    changed = any(mark.excluded or mark.replacement is not None for mark in draft.marks.values())
    try:
        after = await _count(deps, counter, draft, state, bodies)
        before = await _count(deps, counter, draft.without_overrides(), state, bodies) if changed else after
    except (ProviderFailed, ProviderTimeout) as error:
        logs.warning(Log.COUNTER_FAILED, error, provider=state.agent.provider)
        return None
    return before, after


async def _count(deps: Deps, counter: TokenCounter, draft: Draft, state: State, bodies: Bodies) -> int:
    key = request_sha256(state, draft)
    if (kept := deps.counts.get(key)) is not None:
        return kept
    counted = await counter.count_tokens(draft.to_request(state.agent, bodies))
    deps.counts.put(key, counted)
    return counted
