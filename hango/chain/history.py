"""Repair of a history on the wire: what is sent of each item, and in which turns. What is stored never changes.

A history can be bad before any override: a run broke off, an export lost lines. Each such fault is mended for this
request only and reported by part and reason. Works on digests, so that an inspect and a real request share it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hango.chain.mending import Mended, Ref, Turn, mend
from hango.chain.pairs import Scan, scan
from hango.chain.parts import message_part
from hango.dialect import Dialect
from hango.digests import BlockDigest, MessageDigest
from hango.errors import Detail, Reason
from hango.messages import THINKING_TYPES, is_call, is_result

__all__ = ["Ref", "Repair", "Turn", "repair"]


@dataclass(frozen=True, slots=True)
class Repair:
    """How the items go on the wire: the index of an item that is sent as it is, or a turn put together.

    `tokens` corrects the items of which not every block is sent (by index); `unsent` are those with nothing to send.
    """

    turns: Sequence[int | Turn]
    tokens: Mapping[int, int]
    unsent: frozenset[int]
    problems: tuple[Detail, ...]


def repair(
    items: Sequence[MessageDigest],
    dialect: Dialect,
    model: str,
    *,
    has_tools: bool,
    prefill: bool,
    own_model: str | None = None,
) -> Repair:
    """Repair for one provider and model ("<provider>/<name>"). `prefill`: the model may go on from an assistant.

    `own_model` is the agent's, when another one is called: it signed the thinking that names no signer.
    """
    seen = scan(items)
    blocks = {i: items[i].blocks for i in seen.irregular}
    mended = mend(items, seen, blocks, dialect, (model, own_model or model))
    unsent = frozenset(i for i, kept in mended.kept.items() if not kept)
    tokens = {
        i: sum(blocks[i][at].tokens for at in kept) for i, kept in mended.kept.items() if len(kept) != len(blocks[i])
    }
    problems = (
        *mended.problems,
        *_ends(items, mended, blocks, unsent, prefill=prefill),
        *_tool_blocks(mended, seen, blocks, dialect, has_tools=has_tools),
    )
    return Repair(mended.turns, tokens, unsent, problems)


def _ends(
    items: Sequence[MessageDigest],
    mended: Mended,
    blocks: Mapping[int, Sequence[BlockDigest]],
    unsent: frozenset[int],
    *,
    prefill: bool,
) -> list[Detail]:
    """A request starts with a user message that is more than results, and ends with the user."""

    def speaks(i: int) -> bool:
        if items[i].role != "user":
            return False
        kept = mended.kept.get(i)
        return items[i].plain or any(
            not is_result(block.type)
            for at, block in enumerate(blocks.get(i) or items[i].blocks)
            if kept is None or at in kept
        )

    def is_sent(i: int) -> bool:
        return i not in unsent and items[i].role != "system"

    first = next((i for i in range(len(items)) if is_sent(i)), None)
    found = []
    if not any(is_sent(i) and speaks(i) for i in range(len(items))):
        found.append(Detail(Reason.NO_USER_MESSAGE, "No message of the user is left to answer."))
    elif first is not None and not speaks(first):
        message = "The history does not start with a message of the user."
        found.append(Detail(Reason.STARTS_WITH_ASSISTANT, message, part=message_part(items[first].seq)))
    last = mended.turns[-1] if mended.turns else None
    if isinstance(last, Turn):  # an error result, or what is left of the last message
        last = None if last.role == "user" else last.blocks[0].item
    if last is not None and items[last].role == "assistant" and not (prefill and _is_prefill(mended, blocks, last)):
        message = "The history ends with the assistant: the next call needs a message of the user."
        found.append(Detail(Reason.ENDS_WITH_ASSISTANT, message, part=message_part(items[last].seq)))
    return found


def _is_prefill(mended: Mended, blocks: Mapping[int, Sequence[BlockDigest]], last: int) -> bool:
    """Whether a model could go on from the words of the last message: not from those that thinking led to.

    A turn that its provider paused ends with a call and is gone on with, thinking and all.
    """
    kept = [blocks[last][at].type for at in mended.kept.get(last, ())]
    return not THINKING_TYPES.intersection(kept) or is_call(kept[-1])


def _tool_blocks(
    mended: Mended, seen: Scan, blocks: Mapping[int, Sequence[BlockDigest]], dialect: Dialect, *, has_tools: bool
) -> list[Detail]:
    found = []
    bad = {id for id in mended.call_ids if not dialect.tool_id.fullmatch(id)}
    if bad:
        message = f"{len(bad)} call ids are written in another form on the wire, one for one."
        found.append(Detail(Reason.BAD_TOOL_ID, message))
    if has_tools or not dialect.tool_blocks_need_tools:
        return found
    if seen.settled or any(is_call(blocks[i][at].type) for i, kept in mended.kept.items() for at in kept):
        message = "No tool is sent, so calls and results of the history are sent as text."
        found.append(Detail(Reason.TOOL_BLOCKS_AS_TEXT, message))
    return found
