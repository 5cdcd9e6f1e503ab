"""Totals by a provider's own counter: kept by request, and never a reason to fail."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from hango import logs
from hango.chain.deps import Deps
from hango.chain.draft import Draft
from hango.chain.state import State
from hango.errors import ProviderFailed, ProviderTimeout
from hango.logs import Log
from hango.messages import Block, Request


async def totals(
    deps: Deps, draft: Draft, state: State, key: str, bodies: Mapping[int, Sequence[Block]]
) -> tuple[int, int] | None:
    """Tokens before and after overrides by the provider's counter; None when it has none or fails."""
    counter = deps.providers.counter(state.agent.provider)
    if counter is None:
        return None
    if (kept := deps.counts.get(key)) is not None:
        return kept
    try:
        after = await counter.count_tokens(draft.to_request(state.agent, bodies))
        changed = any(mark.excluded or mark.replacement is not None for mark in draft.marks.values())
        before = await counter.count_tokens(_without_overrides(draft, state, bodies)) if changed else after
    except (ProviderFailed, ProviderTimeout) as error:
        logs.warning(Log.COUNTER_FAILED, error, provider=state.agent.provider)
        return None
    deps.counts.put(key, (before, after))
    return before, after


def _without_overrides(draft: Draft, state: State, bodies: Mapping[int, Sequence[Block]]) -> Request:
    plain = replace(draft, marks={}, messages=tuple(draft.stored_messages()), originals={}, repair=draft.unmarked)
    return plain.to_request(state.agent, bodies)
