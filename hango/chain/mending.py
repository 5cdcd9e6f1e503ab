"""The block-by-block part of a repair: filter blocks, drop what is unpaired, put results right after their calls."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hango.chain.pairs import Blocks, Call, Pairing, Place, Scan, pair
from hango.chain.parts import message_part
from hango.chain.refusal import SENTENCES, refusal
from hango.dialect import Dialect, takes_system
from hango.digests import MessageDigest
from hango.errors import Detail, Reason
from hango.messages import THINKING_TYPES, is_call, is_result


@dataclass(frozen=True, slots=True)
class Ref:
    """One block of a turn: a stored block, or the error result of a call that has none (`missing`: its id)."""

    item: int = -1
    block: int = -1
    missing: str | None = None


@dataclass(frozen=True, slots=True)
class Turn:
    """A message of the wire that is not a stored message as it stands."""

    role: str
    blocks: tuple[Ref, ...]
    model: str | None = None


@dataclass(frozen=True, slots=True)
class Mended:
    """The turns of the wire; the blocks that are sent of each irregular item, and the ids of the client calls."""

    turns: Sequence[int | Turn]
    kept: dict[int, list[int]]
    problems: list[Detail]
    call_ids: frozenset[str] = frozenset()


def mend(
    items: Sequence[MessageDigest], seen: Scan, blocks: Blocks, dialect: Dialect, models: tuple[str, str]
) -> Mended:
    """Mend the irregular items; a history without any is its own turns. `models`: the called one, the agent's own."""
    if not seen.irregular:
        return Mended(range(len(items)), {}, [])
    return _Mender(items, seen, blocks, dialect, models).run()


class _Mender:
    def __init__(
        self, items: Sequence[MessageDigest], seen: Scan, blocks: Blocks, dialect: Dialect, models: tuple[str, str]
    ) -> None:
        self.items, self.seen, self.blocks = items, seen, blocks
        self.dialect, self.models = dialect, models
        self.dropped: dict[Place, Reason] = {}
        self.problems: list[Detail] = []
        self.turns: list[int | Turn] = []
        self.kept: dict[int, list[int]] = {}
        self.results: dict[int, list[Ref]] = {}  # of the items with client calls: what must follow them
        self.moved: set[Place] = set()  # results that stand where their calls want them

    def run(self) -> Mended:
        pairing = pair(self.items, self.seen, self.blocks)
        for i, blocks in self.blocks.items():
            for at, block in enumerate(blocks):
                if (reason := refusal(block, self.items[i].role, self.dialect, *self.models)) is not None:
                    self.dropped[i, at] = reason
        self._drop_unpaired(pairing)
        self.kept = {
            i: [at for at in range(len(blocks)) if (i, at) not in self.dropped] for i, blocks in self.blocks.items()
        }
        self._drop_last_thinking()
        self._follow_calls(pairing)
        self._report_blocks()
        self._assemble()
        self._report_system()
        ids = frozenset(call.id for call in pairing.calls if call.client and call.place not in self.dropped)
        return Mended(self.turns, self.kept, self.problems, ids)

    def _drop_unpaired(self, pairing: Pairing) -> None:
        open_end = self._open_end()
        for i, at in pairing.orphans:
            is_use = is_call(self.blocks[i][at].type)
            reason = Reason.UNPAIRED_TOOL_USE if is_use else Reason.UNPAIRED_TOOL_RESULT
            self.dropped.setdefault((i, at), reason)
        for place in pairing.doubled:
            self.dropped.setdefault(place, Reason.DUPLICATE_TOOL_USE_ID)
        for place, _ in pairing.late:
            self.dropped.setdefault(place, Reason.DUPLICATE_TOOL_RESULT)
        for call in pairing.calls:
            for place in call.more:
                self.dropped.setdefault(place, Reason.DUPLICATE_TOOL_RESULT)
            # A provider's own call may stand open at the end: the model goes on from there.
            if not call.client and call.result is None and call.place[0] != open_end:
                self.dropped.setdefault(call.place, Reason.UNPAIRED_TOOL_USE)
            if call.result is not None and call.place in self.dropped:
                self.dropped.setdefault(call.result, Reason.UNPAIRED_TOOL_RESULT)

    def _drop_last_thinking(self) -> None:
        """Thinking goes out with what it led to: a provider that takes it refuses a message that ends with it."""
        for i, kept in self.kept.items():
            while kept and self.blocks[i][kept[-1]].type in THINKING_TYPES:
                kept.pop()
                self._report(i, Reason.BLOCK_NOT_TAKEN, "Thinking at the end of a message is shown and not sent.")

    def _open_end(self) -> int:
        """The last item but for results: code that a provider runs may wait for those of the client."""
        i = len(self.items) - 1
        while i > 0 and self.items[i].role == "user" and all(one.type == "tool_result" for one in self.items[i].blocks):
            i -= 1
        return i

    def _follow_calls(self, pairing: Pairing) -> None:
        for call in pairing.calls:
            if not call.client or call.place in self.dropped:
                continue
            item = call.place[0]
            if call.result is None or call.result in self.dropped:
                ref = Ref(missing=call.id)
                message = "A call has no result: an error result is sent for it."
                self._report(item, Reason.UNPAIRED_TOOL_USE, message)
            else:
                ref = Ref(*call.result)
                self.moved.add(call.result)
                if self._is_far(call, call.result):
                    self._report(call.result[0], Reason.RESULT_MOVED, "A result is sent right after its call.")
            self.results.setdefault(item, []).append(ref)

    def _is_far(self, call: Call, result: Place) -> bool:
        """True when something other than results of the same turn stands between a call and its result."""
        return any(
            i not in self.blocks or not all(is_result(self.blocks[i][at].type) for at in self.kept[i])
            for i in range(call.place[0] + 1, result[0])
        )

    def _assemble(self) -> None:
        pending: list[Ref] = []
        for i, item in enumerate(self.items):
            own = self.kept.get(i)
            if own is None:
                self._flush(pending)
                self.turns.append(i)
                continue
            if pending and item.role == "user" and any(ref.item == i for ref in pending):
                self._merge(i, own, pending)
                pending.clear()
            else:
                self._flush(pending)
                self._own_turn(i, own)
            pending.extend(self.results.get(i, ()))
        self._flush(pending)

    def _flush(self, pending: list[Ref]) -> None:
        if pending:
            self.turns.append(Turn("user", tuple(pending)))
            pending.clear()

    def _merge(self, i: int, own: list[int], pending: list[Ref]) -> None:
        """The user message after the calls holds results: all results of the turn go into it, and come first."""
        here = sorted(ref.block for ref in pending if ref.item == i)
        rest = [at for at in own if (i, at) not in self.moved]
        if rest and rest[0] < here[-1]:
            self._report(i, Reason.RESULT_BEFORE_TEXT, "Results are sent before the other blocks of the message.")
        if len(here) == len(pending):  # in the stored order
            if here == list(range(len(here))) and len(here) + len(rest) == len(self.blocks[i]):
                self.turns.append(i)
                return
            pending = [Ref(i, at) for at in here]
        self.turns.append(Turn("user", (*pending, *(Ref(i, at) for at in rest)), self.items[i].model))

    def _own_turn(self, i: int, own: list[int]) -> None:
        rest = [at for at in own if (i, at) not in self.moved]
        if rest and len(rest) == len(self.blocks[i]):
            self.turns.append(i)
        elif rest:
            self.turns.append(Turn(self.items[i].role, tuple(Ref(i, at) for at in rest), self.items[i].model))

    def _report(self, i: int, reason: Reason, message: str) -> None:
        detail = Detail(reason, message, part=message_part(self.items[i].seq))
        if detail not in self.problems[-4:]:  # one entry for several blocks of a message
            self.problems.append(detail)

    def _report_blocks(self) -> None:
        for (i, _), reason in sorted(self.dropped.items()):
            # A blank text beside other blocks is nothing that anybody misses.
            if reason is not Reason.EMPTY_TEXT or not self.kept[i]:
                self._report(i, reason, SENTENCES[reason])
        for i, kept in self.kept.items():
            if not self.blocks[i]:
                self._report(i, Reason.EMPTY_MESSAGE, "The message has no content and is not sent.")
            if any(self.blocks[i][at].odd for at in kept):
                self._report(i, Reason.BAD_TOOL_ARGUMENTS, "The arguments of a call are no JSON object.")

    def _report_system(self) -> None:
        """System messages that this place of the history, or the provider, makes a marked turn of the user."""
        roles = [None, *(self._role(turn) for turn in self.turns), None]
        for turn, before, after in zip(self.turns, roles, roles[2:], strict=False):
            i = turn if isinstance(turn, int) else turn.blocks[0].item
            if self._role(turn) != "system":
                continue
            only_text = all(self.blocks[i][at].type == "text" for at in self.kept[i])
            if not takes_system(self.dialect, before, after, only_text=only_text):
                message = "A system message of the history is sent as a turn of the user that is marked as such."
                self._report(i, Reason.SYSTEM_IN_HISTORY, message)

    def _role(self, turn: int | Turn) -> str:
        return self.items[turn].role if isinstance(turn, int) else turn.role
