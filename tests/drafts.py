"""Drafts for tests of the pure core: no database, no provider; each step is the one that the chain takes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from hango.agent_definition import AgentDefinition
from hango.chain import estimator, history
from hango.chain.context_overrides import effective
from hango.chain.draft import Draft
from hango.chain.marking import mark
from hango.chain.measure import measure
from hango.dialect import Dialect
from hango.domain import Override, OverrideAction, PartID
from hango.messages import Block, Message, Request
from tests.histories import OWN_MODEL, numbered

ANTHROPIC = Dialect("anthropic", None, True, False, False, True)
OPENAI = Dialect(
    "openai",
    frozenset({"text", "image", "document", "search_result", "tool_use", "tool_result"}),
    thinking=False,
    system_in_history=False,
    tool_blocks_need_tools=False,
    cache_marks=False,
)

Bodies = Mapping[int, Sequence[Block]]


def exclude(*parts: str) -> list[Override]:
    return [Override(PartID(part), OverrideAction.EXCLUDE) for part in parts]


def swap(**texts: str) -> list[Override]:
    """Replacements of messages, as `m2="..."`."""
    return [Override(PartID(f"message:{seq[1:]}"), OverrideAction.REPLACE, text) for seq, text in texts.items()]


def mended(
    messages: Sequence[Message],
    dialect: Dialect = ANTHROPIC,
    overrides: Sequence[Override] = (),
    *,
    model: str = OWN_MODEL,
    factor: float = 1.0,
    has_tools: bool = True,
    prefill: bool = False,
) -> Draft:
    """A draft of a history alone: marked, repaired and measured."""
    draft = Draft((), (), numbered(messages))
    marked = mark(draft, effective((), overrides), last_seq=len(messages))
    return remended(marked, dialect, model, factor, has_tools=has_tools, prefill=prefill)


def remended(
    draft: Draft, dialect: Dialect, model: str, factor: float, *, has_tools: bool = True, prefill: bool = False
) -> Draft:
    kept, stored = draft.kept_messages(), draft.stored_messages()
    made = history.repair(kept, dialect, model, has_tools=has_tools, prefill=prefill)
    plain = made if kept is stored else history.repair(stored, dialect, model, has_tools=has_tools, prefill=prefill)
    draft = replace(draft, repair=made, unmarked=plain)
    return replace(draft, size=measure(draft, factor))


def paired(draft: Draft) -> list[str]:
    """The parts that leave with others."""
    return [part for part, mark in draft.marks.items() if mark.paired]


def bodies_of(messages: Sequence[Message]) -> Bodies:
    return {seq: message.content for seq, message in enumerate(messages, 1)}


def request_of(draft: Draft, messages: Sequence[Message], model: str = OWN_MODEL) -> Request:
    return draft.to_request(AgentDefinition(model), bodies_of(messages))


def recounted(request: Request, bodies: Bodies, factor: float) -> dict[int, int]:
    """Tokens of each message of which something is in the request, counted anew from the blocks that are sent.

    Every block of the bodies must be unlike all others, so that it is known where a sent block came from.
    """
    owner = {block.json: seq for seq, blocks in bodies.items() for block in blocks}
    assert len(owner) == sum(map(len, bodies.values())), "a block is there twice"
    sent: dict[int, int] = {}
    for message in request.messages:
        for block in message.content:
            if (seq := owner.get(block.json)) is not None:
                texts, sized = estimator.block_texts(block)
                sent[seq] = sent.get(seq, 0) + sum(estimator.count(texts)) + sized
    return {
        seq: math.ceil(round((tokens + estimator.MESSAGE_OVERHEAD) * factor, 6)) for seq, tokens in sorted(sent.items())
    }
