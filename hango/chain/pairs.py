"""Which call a result answers: by place and id, not by id alone.

Ids such as `call_0` come back in every turn, so a result belongs to the nearest earlier unanswered call with its id.
A later result of the same call is its partner too. Server tools and MCP blocks pair the same way, often inside one
message. Pure: works on digests, at every use anew.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from hango.digests import BlockDigest, MessageDigest
from hango.messages import is_call, is_result

CLIENT = "client"
Place = tuple[int, int]  # (index of the item, index of the block in it)
Blocks = Mapping[int, Sequence[BlockDigest]]  # of items, by index


@dataclass(frozen=True, slots=True)
class Scan:
    """One quick look at a history: `settled` holds the index of each message whose calls all have their results in the
    very next message and nothing wrong; `irregular` what else is not plain, looked at block by block."""

    settled: tuple[int, ...]
    irregular: tuple[int, ...]


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
    """The calls of the irregular items in order, results that answer nothing, calls that double an id of their message.

    `late` are second results of settled calls: (place, index of the message with the call).
    """

    calls: list[Call] = field(default_factory=list)
    orphans: list[Place] = field(default_factory=list)
    doubled: list[Place] = field(default_factory=list)
    late: list[tuple[Place, int]] = field(default_factory=list)


def scan(items: Sequence[MessageDigest]) -> Scan:
    """Sort out what is settled: the most of every history."""
    settled: list[int] = []
    irregular: list[int] = []
    taken = -1  # the results of the pair before
    last = len(items) - 1
    for i in [i for i, item in enumerate(items) if item.form != "plain"]:
        item = items[i]
        if item.form == "calls" and i < last and (after := items[i + 1]).form == "results" and item.ids == after.ids:
            settled.append(i)
            taken = i + 1
        elif i != taken:
            irregular.append(i)
    return Scan(tuple(settled), tuple(irregular))


def pair(items: Sequence[MessageDigest], seen: Scan, blocks: Blocks) -> Pairing:
    """Pair the calls and results of the irregular items; `blocks` holds their blocks."""
    pairer = _Pairer(items, seen)
    for index in seen.irregular:
        pairer.take(index, blocks[index])
    return pairer.made


def together(items: Sequence[MessageDigest]) -> dict[int, set[int]]:
    """Items that share a call and its results, by index: those that leave a request together."""
    seen = scan(items)
    made: dict[int, set[int]] = {}
    for i in seen.settled:
        made[i] = made[i + 1] = {i, i + 1}
    pairing = pair(items, seen, {i: items[i].blocks for i in seen.irregular})
    for call in pairing.calls:
        places = {call.place[0], *(place[0] for place in call.more)}
        if call.result is not None:
            places.add(call.result[0])
        if len(places) > 1:
            for i in places:
                made[i] = made.get(i, set()) | places
    for place, call_index in pairing.late:
        for i, other in ((place[0], call_index), (call_index, place[0])):
            made[i] = made.get(i, set()) | {other}
    return made


def answering(items: Sequence[MessageDigest]) -> set[int]:
    """Items with a result that is the answer to a call, by index: neither a further one of the call nor one of none."""
    seen = scan(items)
    pairing = pair(items, seen, {i: items[i].blocks for i in seen.irregular})
    return {i + 1 for i in seen.settled}.union(call.result[0] for call in pairing.calls if call.result is not None)


class _Pairer:
    """One walk over the irregular items: the calls that wait for a result, and those that have one, by id."""

    def __init__(self, items: Sequence[MessageDigest], seen: Scan) -> None:
        self.items, self.seen = items, seen
        self.made = Pairing()
        self.unanswered: dict[tuple[str, str], list[Call]] = {}
        self.answered: dict[tuple[str, str], Call] = {}
        self.settled_by_id: dict[str, list[int]] | None = None  # made when a result comes late

    def take(self, index: int, blocks: Sequence[BlockDigest]) -> None:
        role, own = self.items[index].role, set[str]()
        for at, block in enumerate(blocks):
            if is_call(block.type):
                self._call((index, at), role, block, own)
            elif is_result(block.type):
                self._result((index, at), role, block)

    def _call(self, place: Place, role: str, block: BlockDigest, own: set[str]) -> None:
        if not block.id or role != "assistant":
            self.made.orphans.append(place)
        elif block.id in own:
            self.made.doubled.append(place)
        else:
            own.add(block.id)
            call = Call(place, block.id, block.type == "tool_use")
            self.made.calls.append(call)
            self.unanswered.setdefault((_maker(block.type), block.id), []).append(call)

    def _result(self, place: Place, role: str, block: BlockDigest) -> None:
        maker, id = _maker(block.type), block.id or ""
        if role != ("user" if maker == CLIENT else "assistant"):
            self.made.orphans.append(place)
        elif (waiting := self.unanswered.get((maker, id))) and (
            maker == CLIENT or not self._speaks_between(waiting[-1].place[0], place[0])
        ):
            call = waiting.pop()
            call.result = place
            self.answered[maker, id] = call
        else:
            self._late_result(maker, id, place)

    def _speaks_between(self, first: int, last: int) -> bool:
        """True when something other than results of the client ends the assistant's turn between two items."""
        return any(
            item.role != "assistant" and (item.plain or any(_ends_turn(block) for block in item.blocks))
            for item in self.items[first + 1 : last]
        )

    def _late_result(self, maker: str, id: str, place: Place) -> None:
        """No call waits: it is a further result of the nearest call with its id, or of none."""
        known = self.answered.get((maker, id))
        settled = self._settled_call(id, before=place[0]) if maker == CLIENT else None
        if known is not None and (settled is None or known.place[0] > settled):
            known.more.append(place)
        elif settled is not None:
            self.made.late.append((place, settled))
        else:
            self.made.orphans.append(place)

    def _settled_call(self, id: str, *, before: int) -> int | None:
        """The nearest earlier settled message that calls with this id."""
        if self.settled_by_id is None:
            self.settled_by_id = {}
            for i in self.seen.settled:
                for one in self.items[i].ids.split("\n"):
                    self.settled_by_id.setdefault(one, []).append(i)
        found = self.settled_by_id.get(id, [])
        at = bisect_left(found, before)
        return found[at - 1] if at else None


def _ends_turn(block: BlockDigest) -> bool:
    return block.type != "tool_result" and not block.blank


def _maker(type: str) -> str:
    """Who answers a call of this type, or gave a result of it: one's result is never an answer to another's call."""
    if type in ("tool_use", "tool_result"):
        return CLIENT
    return "mcp" if type.startswith("mcp_") else "server"
