"""Two contexts compared: what came, went and changed, and where a cache of the first would break."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given

from hango.agent_definition import AgentDefinition
from hango.chain.context import Drafted
from hango.chain.context_diff import CacheBreak, diff
from hango.chain.draft import Draft
from hango.chain.measure import measure
from hango.chain.middleware.base import block
from hango.chain.parts import system_part
from hango.domain import AgentID, Override, SessionID
from hango.messages import Message
from tests.drafts import exclude, mended, swap
from tests.histories import OWN_MODEL, Said, build, said, turns
from tests.states import state_of

HISTORY = [said("user", "Where?"), said("assistant", "There."), said("user", "And now?")]


def drafted(
    messages: Sequence[Message] = HISTORY,
    overrides: Sequence[Override] = (),
    *,
    system: Sequence[tuple[str, str]] = (("agent", "You sort."), ("house", "Be kind.")),
    model: str = OWN_MODEL,
    params: Mapping[str, Any] | None = None,
) -> Drafted:
    draft: Draft = mended(messages, overrides=overrides)
    made = replace(draft, system=tuple(block(system_part(name), text) for name, text in system))
    state = state_of(AgentDefinition(model, params=params or {}), messages=messages)
    sized = replace(made, size=measure(made, state.factor))
    return Drafted(SessionID(UUID(int=1)), AgentID(UUID(int=2)), state, sized, sha256="")


def seen(before: Drafted, after: Drafted) -> dict[str, Any]:
    found = diff(before, after)
    return {
        "added": [part.id for part in found.added],
        "removed": [part.id for part in found.removed],
        "changed": [one.part for one in found.changed],
        "at": found.cache_broken_at,
        "why": found.cache_reason,
    }


NOTHING: dict[str, Any] = {"added": [], "removed": [], "changed": [], "at": None, "why": None}
CASES: dict[str, tuple[Drafted, dict[str, Any]]] = {
    "nothing": (drafted(), {}),
    "more messages": (drafted([*HISTORY, said("assistant", "Here.")]), {"added": ["message:4"]}),
    "another text of the agent": (
        drafted(system=(("agent", "You count."), ("house", "Be kind."))),
        {"changed": ["system:agent"], "at": "system:agent", "why": CacheBreak.CHANGED},
    ),
    "one block less": (
        drafted(system=(("house", "Be kind."),)),
        {"removed": ["system:agent"], "at": "system:agent", "why": CacheBreak.REMOVED},
    ),
    "a block between": (
        drafted(system=(("agent", "You sort."), ("tone", "Short."), ("house", "Be kind."))),
        {"added": ["system:tone"], "at": "system:tone", "why": CacheBreak.ADDED},
    ),
    "blocks in another order": (
        drafted(system=(("house", "Be kind."), ("agent", "You sort."))),
        {"at": "system:house", "why": CacheBreak.ADDED},
    ),
    "a message left out": (
        drafted(overrides=exclude("message:2")),
        {"removed": ["message:2"], "at": "message:2", "why": CacheBreak.REMOVED},
    ),
    "a message replaced": (
        drafted(overrides=swap(m2="Elsewhere.")),
        {"changed": ["message:2"], "at": "message:2", "why": CacheBreak.CHANGED},
    ),
    "the last message left out": (
        drafted(overrides=exclude("message:3")),
        {"removed": ["message:3"], "at": "message:3", "why": CacheBreak.REMOVED},
    ),
    "other thinking": (
        drafted(
            [*HISTORY, said("assistant", "Here.")], params={"thinking": {"type": "enabled", "budget_tokens": 1024}}
        ),
        {"added": ["message:4"], "at": "message:1", "why": CacheBreak.PARAMS},
    ),
    "a forced tool and another block": (
        drafted(system=(("house", "Be kind."),), params={"tool_choice": {"type": "any"}}),
        {"removed": ["system:agent"], "at": "system:agent", "why": CacheBreak.REMOVED},
    ),
    "another temperature": (drafted(params={"temperature": 0.5}), {}),
    "another model": (drafted(model="anthropic/other"), {"at": "system:agent", "why": CacheBreak.MODEL}),
}


@pytest.mark.parametrize(("after", "wanted"), CASES.values(), ids=CASES)
def test_what_changed_and_where_the_cache_broke(after: Drafted, wanted: dict[str, Any]) -> None:
    """The first part, in the order in which providers read, from which the later call is no continuation."""
    assert seen(drafted(), after) == {**NOTHING, **wanted}


@given(turns())
def test_a_context_differs_from_itself_in_nothing(history: list[Said]) -> None:
    """Over all histories: no part came, went or changed, no cache broke, and the tokens are the same."""
    this = drafted(build(history))

    assert seen(this, this) == NOTHING
    assert diff(this, this).tokens_before == diff(this, this).tokens_after
