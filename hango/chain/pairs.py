"""Which call a result answers: by place and id, not by id alone.

Ids such as `call_0` come back in every turn, so a result belongs to the nearest earlier unanswered call with its id.
A later result of the same call is its partner too. Server tools and MCP blocks pair the same way, often inside one
message. Pure: works on digests, at every use anew.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from hango.domain import MessageDigest
from hango.messages import is_call, is_result

Place = tuple[int, int]  # (index of the item, index of the block in it)


@dataclass(slots=True)
class Call:
    """A call, where it stands and what answered it: `result` first, later ones in `more`."""

    place: Place
    id: str
    client: bool  # its result is a user's tool_result, not the provider's own
    result: Place | None = None
    more: list[Place] = field(default_factory=list)


@dataclass(slots=True)
class Pairing:
    """Calls in order; results that answer nothing; calls that double an id of their own message."""

    calls: list[Call] = field(default_factory=list)
    orphans: list[Place] = field(default_factory=list)
    doubled: list[Place] = field(default_factory=list)


def pair(items: Sequence[MessageDigest]) -> Pairing:
    """Pair every call with its results."""
    made = Pairing()
    unanswered: dict[str, list[Call]] = {}
    answered: dict[str, Call] = {}
    for index, item in enumerate(items):
        if item.plain:
            continue
        own: set[str] = set()
        for at, block in enumerate(item.blocks):
            if is_call(block.type):
                client = block.type == "tool_use"
                if not block.id or (client and item.role != "assistant"):
                    made.orphans.append((index, at))
                elif block.id in own:
                    made.doubled.append((index, at))
                else:
                    own.add(block.id)
                    call = Call((index, at), block.id, client)
                    made.calls.append(call)
                    unanswered.setdefault(block.id, []).append(call)
            elif is_result(block.type):
                _answer(made, unanswered, answered, block.id or "", (index, at), item.role, block.type)
    return made


def _answer(
    made: Pairing,
    unanswered: dict[str, list[Call]],
    answered: dict[str, Call],
    id: str,
    place: Place,
    role: str,
    type: str,
) -> None:
    if type == "tool_result" and role != "user":
        made.orphans.append(place)
    elif waiting := unanswered.get(id):
        call = waiting.pop()
        call.result = place
        answered[id] = call
    elif id in answered:
        answered[id].more.append(place)
    else:
        made.orphans.append(place)
