"""Repair of a history on the wire: what is sent of each item, and in which turns. What is stored never changes.

A history can be bad before any override: a run broke off, an export lost lines. Each such fault is mended for this
request only and reported by part and reason. Works on digests, so that an inspect and a real request share it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hango.chain.pairs import Call, Pairing, Place, pair
from hango.chain.parts import message_part
from hango.dialect import Dialect
from hango.domain import MessageDigest
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
class Repair:
    """How the items go on the wire: the index of an item that is sent as it is, or a turn put together.

    `tokens` corrects the items of which not every block is sent; 0 means that nothing of the item is.
    """

    turns: tuple[int | Turn, ...]
    tokens: Mapping[int, int]
    unsent: frozenset[int]
    problems: tuple[Detail, ...]


def repair(items: Sequence[MessageDigest], dialect: Dialect, model: str, *, has_tools: bool, prefill: bool) -> Repair:
    """Repair for one provider and model ("<provider>/<name>"). `prefill`: the model may go on from an assistant."""
    return _Repairer(items, dialect, model).run(has_tools=has_tools, prefill=prefill)


def sendable_tokens(item: MessageDigest, dialect: Dialect, model: str) -> int:
    """Tokens of an item's blocks that would be sent, looking at the item alone."""
    if item.plain:
        return item.tokens
    return sum(block.tokens for at, block in enumerate(item.blocks) if _refusal(item, at, dialect, model) is None)


def _refusal(item: MessageDigest, at: int, dialect: Dialect, model: str) -> Reason | None:
    """Why a block is not sent, whatever stands around it; None when it is."""
    block = item.blocks[at]
    if block.blank:
        return Reason.EMPTY_TEXT
    if block.type in THINKING_TYPES:
        if block.signer is None:
            return Reason.UNSIGNED_THINKING
        if not dialect.thinking or item.role != "assistant":
            return Reason.BLOCK_NOT_TAKEN
        # "" is the agent's own model; an import may name the model without its provider.
        if block.signer not in ("", model, model.partition("/")[2]):
            return Reason.FOREIGN_THINKING
    elif dialect.block_types is not None and block.type not in dialect.block_types:
        return Reason.BLOCK_NOT_TAKEN
    return None


class _Repairer:
    """One repair: filters blocks, pairs calls with results, puts results right after their calls."""

    def __init__(self, items: Sequence[MessageDigest], dialect: Dialect, model: str) -> None:
        self.items, self.dialect, self.model = items, dialect, model
        self.dropped: dict[Place, Reason] = {}
        self.problems: list[Detail] = []
        self.turns: list[int | Turn] = []
        self.kept: dict[int, list[int]] = {}  # of the items that are not plain: their blocks that are sent
        self.results: dict[int, list[Ref]] = {}  # of the items with client calls: what must follow them
        self.moved: dict[Place, int] = {}  # result -> the item with its call

    def run(self, *, has_tools: bool, prefill: bool) -> Repair:
        pairing = pair(self.items)
        self._filter()
        self._drop_unpaired(pairing)
        self._keep()
        self._follow_calls(pairing)
        self._report_drops()
        self._assemble()
        unsent = frozenset(i for i, kept in self.kept.items() if not kept)
        self._report_ends(unsent, prefill=prefill)
        self._report_ids(pairing, has_tools=has_tools)
        tokens = {
            i: sum(self.items[i].blocks[at].tokens for at in kept)
            for i, kept in self.kept.items()
            if len(kept) != len(self.items[i].blocks)
        }
        return Repair(tuple(self.turns), tokens, unsent, tuple(self.problems))

    def _filter(self) -> None:
        for i, item in enumerate(self.items):
            if item.plain:
                continue
            for at in range(len(item.blocks)):
                if (reason := _refusal(item, at, self.dialect, self.model)) is not None:
                    self.dropped[i, at] = reason

    def _drop_unpaired(self, pairing: Pairing) -> None:
        last = len(self.items) - 1
        for place in pairing.orphans:
            is_use = is_call(self.items[place[0]].blocks[place[1]].type)
            reason = Reason.UNPAIRED_TOOL_USE if is_use else Reason.UNPAIRED_TOOL_RESULT
            self.dropped.setdefault(place, reason)
        for place in pairing.doubled:
            self.dropped.setdefault(place, Reason.DUPLICATE_TOOL_USE_ID)
        for call in pairing.calls:
            for place in call.more:
                self.dropped.setdefault(place, Reason.DUPLICATE_TOOL_RESULT)
            # A provider's own call may stand open at the end: the model goes on from there.
            if not call.client and call.result is None and call.place[0] != last:
                self.dropped.setdefault(call.place, Reason.UNPAIRED_TOOL_USE)
            if call.place in self.dropped and call.result is not None:
                self.dropped.setdefault(call.result, Reason.UNPAIRED_TOOL_RESULT)

    def _keep(self) -> None:
        for i, item in enumerate(self.items):
            if not item.plain:
                self.kept[i] = [at for at in range(len(item.blocks)) if (i, at) not in self.dropped]

    def _follow_calls(self, pairing: Pairing) -> None:
        for call in pairing.calls:
            if not call.client or call.place in self.dropped:
                continue
            item = call.place[0]
            if call.result is None or call.result in self.dropped:
                ref = Ref(missing=call.id)
                self._report(item, Reason.UNPAIRED_TOOL_USE, "A call has no result; an error result is sent for it.")
            else:
                ref = Ref(*call.result)
                self.moved[call.result] = item
                if self._is_far(call):
                    self._report(call.result[0], Reason.RESULT_MOVED, "A result is sent right after its call.")
            self.results.setdefault(item, []).append(ref)

    def _is_far(self, call: Call) -> bool:
        """True when something other than results of the same turn stands between a call and its result."""
        assert call.result is not None
        between = range(call.place[0] + 1, call.result[0])
        return any(
            not all(is_result(self.items[i].blocks[at].type) for at in self.kept.get(i, [0]))
            if not self.items[i].plain
            else True
            for i in between
        )

    def _assemble(self) -> None:
        pending: list[Ref] = []
        for i, item in enumerate(self.items):
            own = self.kept.get(i)
            if own is None:  # plain
                self._flush(pending)
                self.turns.append(i)
                continue
            here = [ref for ref in pending if ref.item == i]
            if pending and not (here and item.role == "user"):
                self._flush(pending)
                here = []
            if here or pending:
                self._merge(i, own, pending)
                pending.clear()
            else:
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
        whole = len(here) == len(pending) and len(own) == len(self.items[i].blocks)
        if whole and here == list(range(len(here))):
            self.turns.append(i)
            return
        if rest and here and rest[0] < here[-1]:
            self._report(i, Reason.RESULT_BEFORE_TEXT, "Results are sent before the other blocks of a message.")
        results = pending if len(here) != len(pending) else [Ref(i, at) for at in here]
        self.turns.append(Turn("user", (*results, *(Ref(i, at) for at in rest)), self.items[i].model))

    def _own_turn(self, i: int, own: list[int]) -> None:
        rest = [at for at in own if (i, at) not in self.moved]
        if len(rest) == len(self.items[i].blocks) and rest:
            self.turns.append(i)
        elif rest:
            self.turns.append(Turn(self.items[i].role, tuple(Ref(i, at) for at in rest), self.items[i].model))

    def _report(self, i: int, reason: Reason, message: str) -> None:
        detail = Detail(reason, message, part=message_part(self.items[i].seq))
        if detail not in self.problems[-4:]:  # one entry for several blocks of a message
            self.problems.append(detail)

    def _report_drops(self) -> None:
        for (i, _), reason in sorted(self.dropped.items()):
            whole = not self.kept[i]
            if reason is not Reason.EMPTY_TEXT or whole:
                self._report(i, reason, DROPPED[reason])
        for i, kept in self.kept.items():
            if not kept and not self.items[i].blocks:
                self._report(i, Reason.EMPTY_MESSAGE, "The message has no content and is not sent.")

    def _report_ends(self, unsent: frozenset[int], *, prefill: bool) -> None:
        sent = [i for i in range(len(self.items)) if i not in unsent and self.items[i].role != "system"]
        first = next(iter(sent), None)
        if not any(self._speaks(i) for i in sent):
            self.problems.append(Detail(Reason.NO_USER_MESSAGE, "No message of the user is left to answer."))
        elif first is not None and not self._speaks(first):
            self._report(first, Reason.STARTS_WITH_ASSISTANT, "The history does not start with the user.")
        if sent and self.items[sent[-1]].role == "assistant" and not prefill:
            self._report(
                sent[-1],
                Reason.ENDS_WITH_ASSISTANT,
                "The history ends with the assistant: the next call needs a message of the user.",
            )

    def _speaks(self, i: int) -> bool:
        """True for a user message that is more than tool results."""
        item = self.items[i]
        if item.role != "user":
            return False
        return item.plain or any(not is_result(item.blocks[at].type) for at in self.kept[i])

    def _report_ids(self, pairing: Pairing, *, has_tools: bool) -> None:
        bad = {call.id for call in pairing.calls if not self.dialect.tool_id.fullmatch(call.id)}
        if bad:
            message = f"{len(bad)} call ids are written in another form on the wire, one for one."
            self.problems.append(Detail(Reason.BAD_TOOL_ID, message))
        calls = any(call.client and call.place not in self.dropped for call in pairing.calls)
        if calls and not has_tools and self.dialect.tool_blocks_need_tools:
            message = "No tool is sent, so calls and results of the history are sent as text."
            self.problems.append(Detail(Reason.TOOL_BLOCKS_AS_TEXT, message))
        for i, kept in self.kept.items():
            item = self.items[i]
            if item.role == "system" and kept and not self.dialect.system_in_history:
                self._report(i, Reason.SYSTEM_IN_HISTORY, "A system message of the history is sent marked as such.")
            if any(item.blocks[at].odd for at in kept):
                self._report(i, Reason.BAD_TOOL_ARGUMENTS, "The arguments of a call are no JSON object.")


DROPPED: Mapping[Reason, str] = {
    Reason.EMPTY_TEXT: "The message is empty or white space and is not sent.",
    Reason.UNSIGNED_THINKING: "Thinking without a signature is shown and not sent.",
    Reason.FOREIGN_THINKING: "Thinking that another model signed is shown and not sent.",
    Reason.BLOCK_NOT_TAKEN: "A block of a type that the provider does not take is shown and not sent.",
    Reason.UNPAIRED_TOOL_USE: "A call that cannot have a result is shown and not sent.",
    Reason.UNPAIRED_TOOL_RESULT: "A result without its call is shown and not sent.",
    Reason.DUPLICATE_TOOL_USE_ID: "A second call with an id of the same message is shown and not sent.",
    Reason.DUPLICATE_TOOL_RESULT: "A second result of one call is shown and not sent.",
}
