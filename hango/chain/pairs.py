"""Which call a result answers: by place and id, not by id alone.

Ids such as `call_0` come back in every turn, so a result belongs to the nearest earlier unanswered call with its id.
A later result of the same call is its partner too. Server tools and MCP blocks pair the same way, often inside one
message. Pure: works on digests, at every use anew.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from hango.domain import BlockDigest, MessageDigest
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
    pairer = _Pairer()
    for index, item in enumerate(items):
        if not item.plain:
            pairer.take(index, item)
    return pairer.made


class _Pairer:
    """One walk over a history: the calls that wait for a result, and those that have one, by id."""

    def __init__(self) -> None:
        self.made = Pairing()
        self.unanswered: dict[str, list[Call]] = {}
        self.answered: dict[str, Call] = {}

    def take(self, index: int, item: MessageDigest) -> None:
        own: set[str] = set()
        for at, block in enumerate(item.blocks):
            place = (index, at)
            if is_call(block.type):
                self._call(place, item.role, block, own)
            elif is_result(block.type):
                self._result(place, item.role, block)

    def _call(self, place: Place, role: str, block: BlockDigest, own: set[str]) -> None:
        client = block.type == "tool_use"
        if not block.id or (client and role != "assistant"):
            self.made.orphans.append(place)
        elif block.id in own:
            self.made.doubled.append(place)
        else:
            own.add(block.id)
            call = Call(place, block.id, client)
            self.made.calls.append(call)
            self.unanswered.setdefault(block.id, []).append(call)

    def _result(self, place: Place, role: str, block: BlockDigest) -> None:
        id = block.id or ""
        if block.type == "tool_result" and role != "user":
            self.made.orphans.append(place)
        elif waiting := self.unanswered.get(id):
            call = waiting.pop()
            call.result = place
            self.answered[id] = call
        elif id in self.answered:
            self.answered[id].more.append(place)
        else:
            self.made.orphans.append(place)
