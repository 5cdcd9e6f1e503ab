"""What a conversation needs next, from its last message alone. Pure.

A run's progress is its history: whoever takes it over after a crash looks at the last message and goes on from there.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from enum import StrEnum

from hango.messages import Block, MessageRole, StopReason

# With these the last message's calls may be cut, or nobody wants them to be carried out.
_UNFINISHED = frozenset({StopReason.MAX_TOKENS, StopReason.REFUSAL, StopReason.CONTEXT_EXCEEDED})


class Need(StrEnum):
    CALL = "call"  # a model call
    TOOLS = "tools"  # results of built-in tools
    ACTION = "action"  # results of the client's tools
    NOTHING = "nothing"  # the model has stopped


@dataclass(frozen=True, slots=True)
class Next:
    """`calls` are those of built-in tools that wait for a result; `clients` those that only the client can answer."""

    need: Need
    calls: tuple[Block, ...] = ()
    clients: tuple[Block, ...] = ()


def next_of(
    role: str, content: Sequence[Block], stop_reason: StopReason | None, declared: Collection[str], *, is_own: bool
) -> Next:
    """What comes after the last message. `declared` are the client's tools; `is_own`: the run itself wrote the message.

    `stop_reason` is that of the call which wrote it.
    """
    if role != MessageRole.ASSISTANT or not is_own:
        return Next(Need.CALL)
    if stop_reason is StopReason.PAUSE_TURN:
        return Next(Need.CALL)
    waiting = [block for block in content if block.type == "tool_use"]
    if not waiting or stop_reason in _UNFINISHED:
        return Next(Need.NOTHING)
    clients = tuple(block for block in waiting if block.view.name in declared)
    calls = tuple(block for block in waiting if block.view.name not in declared)
    return Next(Need.TOOLS if calls else Need.ACTION, calls, clients)
