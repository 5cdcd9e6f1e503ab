"""The onion: gather blocks and tools with their parts, wrap the call, hand the draft to whoever ends it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from msgspec.structs import replace

from hango.chain import estimator
from hango.chain.digest import digest
from hango.chain.draft import EXTRA_SEQ, SUMMARY_SEQ, Draft, Sourced, SourcedBlock, SourcedTool
from hango.chain.middleware.base import Handler, Middleware, block
from hango.chain.parts import system_part, tool_part
from hango.chain.providers.schemas import takes_tool
from hango.chain.state import State
from hango.chain.tools import allowed
from hango.dialect import Dialect
from hango.digests import MessageDigest
from hango.domain import PartID
from hango.messages import Response, StopReason, ToolSpec, Usage, text_block
from hango.store.connection import Scope


class Chain:
    """The slots in order, outermost first."""

    def __init__(self, slots: Sequence[Middleware]) -> None:
        self.slots = tuple(slots)

    async def before_run(self, state: State, scope: Scope) -> None:
        """Let every slot read what it needs."""
        for slot in self.slots:
            await slot.before_run(state, scope)

    def system_blocks(self, state: State) -> tuple[SourcedBlock, ...]:
        """The agent's blocks as listed, then each slot's; one part for one contributor."""
        own = [block(system_part(item.name), item.text) for item in state.agent.system]
        return (*own, *(found for slot in self.slots for found in slot.system_blocks(state)))

    def tools(self, state: State) -> tuple[SourcedTool, ...]:
        """The agent's tools as listed, then each slot's; only those that the agent allows."""
        every = (*state.agent.tools, *(tool for slot in self.slots for tool in slot.tools(state)))
        return _sourced_tools(tuple(allowed(state, every)), state.dialect)

    def draft(self, state: State) -> Draft:
        """The next request before any slot has looked at it."""
        messages: list[MessageDigest] = []
        texts = {}
        if state.summary is not None:
            texts[SUMMARY_SEQ] = state.summary.text
            messages.append(_text_item(SUMMARY_SEQ, state.summary.text))
        messages.extend(state.messages)
        if state.wanted.message is not None:
            texts[EXTRA_SEQ] = state.wanted.message
            messages.append(_text_item(EXTRA_SEQ, state.wanted.message))
        tools = self.tools(state)
        return Draft(
            system=self.system_blocks(state),
            tools=tools,
            untaken=_untaken(tools, state.dialect),
            messages=tuple(messages),
            texts=texts,
            problems=tuple(state.problems),
        )

    async def model_call(self, state: State, draft: Draft, core: Handler) -> Response:
        """Pass the draft through every slot to `core`, and the reply back."""
        return await self._from(0, state, draft, core)

    async def _from(self, at: int, state: State, draft: Draft, core: Handler) -> Response:
        if at == len(self.slots):
            return await core(draft)

        async def call_next(marked: Draft) -> Response:
            return await self._from(at + 1, state, marked, core)

        return await self.slots[at].wrap_model_call(state, draft, call_next)


class Capture:
    """The core of an inspect: keeps the draft and answers nothing."""

    draft: Draft | None = None

    async def __call__(self, draft: Draft) -> Response:
        self.draft = draft
        return Response(content=(), stop_reason=StopReason.END_TURN, usage=Usage())


# An agent's tools are immutable and come back at every call: looked at once, and all of them in one look-up.
@lru_cache(maxsize=256)
def _sourced_tools(tools: tuple[ToolSpec, ...], dialect: Dialect) -> tuple[SourcedTool, ...]:
    """Each tool with its part and size; what cannot go out weighs nothing."""
    counted = iter(estimator.count([estimator.tool_text(tool) for tool in tools if takes_tool(tool, dialect)]))
    return tuple(
        Sourced(tool_part(tool.name), tool, next(counted) if takes_tool(tool, dialect) else 0) for tool in tools
    )


@lru_cache(maxsize=256)
def _untaken(tools: tuple[SourcedTool, ...], dialect: Dialect) -> frozenset[PartID]:
    return frozenset(item.part for item in tools if not takes_tool(item.value, dialect))


def _text_item(seq: int, text: str) -> MessageDigest:
    return replace(digest("user", (text_block(text),), None), seq=seq)
