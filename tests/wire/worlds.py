"""Made worlds: an agent, a history, files and a summary; and how the chain drafts their next call. No database."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any
from uuid import UUID

from hango.agent_definition import AgentDefinition
from hango.chain import problems
from hango.chain.chain import Capture
from hango.chain.draft import Draft
from hango.chain.stack import build_chain
from hango.chain.state import UNCHANGED, State, Wanted
from hango.digests import MessageDigest
from hango.domain import FileVersion, SavedOverride, Summary, SummaryID
from hango.errors import Reason
from hango.messages import Message, Request
from tests.histories import OWN_MODEL, numbered
from tests.states import NO_DATABASE, state_of
from tests.unit.chain.providers import making
from tests.wire import anthropic, openai, reading
from tests.wire.reading import Takes

# Each refuses something that another takes: a prefill, system messages in the history, tool blocks without tools.
ANTHROPIC_MODELS = (OWN_MODEL, "anthropic/claude-opus-5", "anthropic/claude-opus-4-7", "anthropic/somebody-s-model")
OPENAI_MODELS = ("openai/gpt-4o", "openai/gpt-5", "openai/compatible")

# What a snapshot lists as a reason why a request could not be sent, and the rules that it speaks of.
LISTED = {
    Reason.NO_USER_MESSAGE: {reading.NOT_USER_FIRST, reading.NOT_USER_LAST, reading.NO_MESSAGES},
    Reason.STARTS_WITH_ASSISTANT: {reading.NOT_USER_FIRST},
    Reason.ENDS_WITH_ASSISTANT: {reading.NOT_USER_LAST, anthropic.THINKING_IN_PREFILL},
    Reason.BAD_TOOL_SCHEMA: {reading.BAD_SCHEMA},
}


@dataclass(frozen=True, slots=True)
class World:
    """What the next call of a session is made of. The summary stands for the first `under` messages."""

    agent: AgentDefinition
    messages: tuple[Message, ...]
    files: tuple[FileVersion, ...] = ()
    summary: str | None = None
    under: int = 0

    def of(self, model: str) -> World:
        """The same world with another model."""
        return replace(self, agent=replace(self.agent, model=model))

    def appended(self, more: Sequence[Message]) -> World:
        return replace(self, messages=(*self.messages, *more))


@dataclass(frozen=True, slots=True)
class Call:
    """The next call of a world, drafted and written."""

    world: World
    state: State
    draft: Draft
    request: Request
    body: bytes

    @property
    def reasons(self) -> set[Reason]:
        return {one.reason for one in self.draft.problems}

    def faults(self) -> list[str]:
        """What a strict door finds in the body, but for what the draft lists as unsendable."""
        listed = set().union(*(rules for reason, rules in LISTED.items() if reason in self.reasons))
        check = anthropic.faults if self.state.dialect.name == "anthropic" else openai.faults
        return [fault for fault in check(self.body, self.takes) if reading.rule_of(fault) not in listed]

    @property
    def takes(self) -> Takes:
        agent, row = self.world.agent, making.MODELS.row(self.world.agent.model)
        own = (None, agent.model, agent.model_name)
        return Takes(
            prefill=row.prefill,
            system_in_history=row.system_in_history,
            tools_required=row.tools_required_for_tool_blocks,
            signed=frozenset(
                block.with_fields(cache_control=None).json if "cache_control" in block.json else block.json
                for message in self.world.messages
                if message.model in own
                for block in message.content
                if block.view.signature or block.view.data
            ),
        )


async def next_call(world: World, saved: Sequence[SavedOverride] = (), wanted: Wanted = UNCHANGED) -> Call:
    """The next call through the real slots, as an inspect, a PUT or a run drafts it. Raises Invalid."""
    state = _state(world, tuple(saved), wanted)
    chain = build_chain(world.agent.builtin)
    await chain.before_run(state, NO_DATABASE)
    capture = Capture()
    await chain.model_call(state, chain.draft(state), capture)
    assert capture.draft is not None
    draft = replace(capture.draft, problems=problems.find(capture.draft, state.agent, state.dialect))
    bodies = {seq: message.content for seq, message in enumerate(world.messages, 1) if seq > world.under}
    request = draft.to_request(world.agent, bodies)
    return Call(world, state, draft, request, _provider(world.agent.model).body(request))


def _provider(model: str) -> Any:
    if model.startswith("anthropic/"):
        return making.ANTHROPIC
    return making.COMPATIBLE if model == "openai/compatible" else making.OPENAI


# One history is drafted many times; its digests are counted once.
@lru_cache(maxsize=64)
def _digests(messages: tuple[Message, ...]) -> tuple[MessageDigest, ...]:
    return numbered(messages)


def _state(world: World, saved: tuple[SavedOverride, ...], wanted: Wanted) -> State:
    row = making.MODELS.row(world.agent.model)
    made = state_of(
        world.agent,
        files=world.files,
        dialect=_provider(world.agent.model).dialect_for(world.agent.model_name),
        saved=saved,
        wanted=wanted,
        last_seq=len(world.messages),
        window=row.window,
        factor=row.factor,
        prefill=row.prefill,
    )
    made.messages = _digests(world.messages)[world.under :]
    if world.summary is not None:
        made.summary = Summary(SummaryID(UUID(int=1)), world.summary, world.under)
    return made
