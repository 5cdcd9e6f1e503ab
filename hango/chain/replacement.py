"""What a replacement does to a message: it swaps the text and keeps every other block.

It takes the place of the first text block, and the other text blocks go. Without a text block it replaces the content
of the single tool result, which keeps its id: "keep the call, drop the output". With neither it is put last. Each rule
is written twice, on digests and on bodies, and gives the same blocks in the same places.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256

from msgspec import Raw
from msgspec.json import encode
from msgspec.structs import replace

from hango.chain import estimator
from hango.chain.digest import form_of
from hango.chain.parts import message_part, preview
from hango.digests import BlockDigest, MessageDigest
from hango.errors import Invalid, Reason
from hango.messages import THINKING_TYPES, Block, is_blank, text_block

COMPACTION = "compaction"


def is_replaceable(types: Sequence[str]) -> bool:
    """True when a message of these block types can have its text swapped."""
    return _fault(types) is None


def swaps_result(item: MessageDigest) -> bool:
    """True when a replacement takes the place of a tool result's content."""
    types = [block.type for block in item.blocks]
    return "text" not in types and "tool_result" in types


def check(item: MessageDigest, *, answers: bool = True) -> None:
    """Raise Invalid (`replace_breaks_pair`) for a message whose text cannot be swapped.

    `answers`: its result is the one that answers a call. Another is never sent, nor would its replacement be.
    """
    fault = _fault([block.type for block in item.blocks])
    if fault is None and not answers:
        fault = "no call waits for its tool result, which is not sent. Exclude it instead."
    if fault is not None:
        part = message_part(item.seq)
        message = f"The part '{part}' cannot be replaced: {fault}"
        raise Invalid.because(Reason.REPLACE_BREAKS_PAIR, message, part=part)


def _fault(types: Sequence[str]) -> str | None:
    if COMPACTION in types:
        return "it holds a provider's compaction block. Exclude it instead."
    if types and set(types) <= THINKING_TYPES:
        return "it is thinking alone. Exclude it instead."
    results = types.count("tool_result")
    if "text" not in types and results > 1:
        return f"it holds {results} tool results. Exclude it, or replace a message with one result."
    return None


def replaced_digest(item: MessageDigest, text: str) -> MessageDigest:
    """The digest of the message with its text swapped."""
    tokens = estimator.text_tokens(text)
    new = BlockDigest("text", tokens, blank=is_blank(text))
    stored = item.blocks
    blocks: list[BlockDigest] = []
    types = [block.type for block in stored]
    if "text" in types:
        first = types.index("text")
        for at, block in enumerate(stored):
            if at == first:
                blocks.append(new)
            elif block.type != "text":
                blocks.append(block)
    elif "tool_result" in types:
        blocks = [replace(block, tokens=tokens) if block.type == "tool_result" else block for block in stored]
    else:
        blocks = [*stored, new]
    return replace(
        item,
        chars=len(text),
        tokens=sum(block.tokens for block in blocks),
        preview=preview(text),
        sha256=sha256(f"{item.sha256}\n{text}".encode()).hexdigest(),
        form=form_of(item.role, blocks),
        raw_blocks=Raw(encode(blocks)),
    )


def replaced_blocks(blocks: Sequence[Block], text: str) -> tuple[Block, ...]:
    """The blocks of the message with its text swapped."""
    types = [block.type for block in blocks]
    if "text" in types:
        first = types.index("text")
        return tuple(
            text_block(text) if at == first else block
            for at, block in enumerate(blocks)
            if at == first or block.type != "text"
        )
    if "tool_result" in types:
        return tuple(block.with_fields(content=text) if block.type == "tool_result" else block for block in blocks)
    return (*blocks, text_block(text))
