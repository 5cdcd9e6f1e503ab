"""The hash of a request, from its draft: over all that the body is made of, without reading a message's body."""

from __future__ import annotations

from functools import lru_cache
from hashlib import sha256

from hango import __version__, jsontext
from hango.chain.draft import Draft
from hango.chain.estimator import tool_text
from hango.chain.history import Turn
from hango.chain.state import State
from hango.messages import ToolSpec

_AT_ONCE = 4096  # messages: their checksums are a quarter of a megabyte


def request_sha256(state: State, draft: Draft) -> str:
    """Equal states have equal values; equal values mean equal bodies."""
    assert draft.repair is not None
    agent, kept = state.agent, draft.kept_messages()
    head = {
        "version": __version__,
        "model": agent.model,
        "max_output_tokens": agent.max_output_tokens,
        "params": agent.params,
        "ttl": agent.cache.ttl,
        "mark": draft.breakpoint,
        "system": [(part, text_sha256(text)) for part, text in draft.kept_system()],
        "tools": _tools_sha256(tuple(item.value for item in draft.kept_tools())),
        # Of a turn that is put together its blocks matter; the messages' own digests follow below.
        "turns": [
            turn if isinstance(turn, int) else [turn.role, *((ref.item, ref.block, ref.missing) for ref in turn.blocks)]
            for turn in (draft.repair.turns if any(isinstance(t, Turn) for t in draft.repair.turns) else ())
        ],
        "marks": sorted((part, mark.replacement) for part, mark in draft.marks.items() if mark.replacement is not None),
    }
    made = sha256(jsontext.dumps(head).encode())
    for start in range(0, len(kept), _AT_ONCE):
        made.update("".join([item.sha256 for item in kept[start : start + _AT_ONCE]]).encode())
    return made.hexdigest()


# Texts and tools are immutable and come back at every call: hashed once.
@lru_cache(maxsize=4096)
def text_sha256(text: str) -> str:
    """Of one text."""
    return sha256(text.encode()).hexdigest()


@lru_cache(maxsize=256)
def _tools_sha256(tools: tuple[ToolSpec, ...]) -> str:
    return sha256(jsontext.dumps([tool_text(tool) for tool in tools]).encode()).hexdigest()
