"""The digest of a message: all that rules, totals and the list need of it, computed once, at the write."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from hashlib import sha256

import msgspec

from hango import jsontext
from hango.chain import estimator
from hango.digests import BlockDigest, Form, MessageDigest
from hango.messages import Block, Message, MessageRole, content_json, is_blank, is_call, is_result

PREVIEW_CHARS = 200  # code points

# Ids that every provider takes as they are.
_SOUND_ID = re.compile(r"[a-zA-Z0-9_-]{1,64}", re.ASCII)


def digest(role: str, blocks: Sequence[Block], model: str | None) -> MessageDigest:
    """The digest of one message that has no place yet (seq 0)."""
    return digests([Message(MessageRole(role), tuple(blocks), model)])[0]


def digests(messages: Iterable[Message]) -> list[MessageDigest]:
    """Digests of many messages with one call of the tokenizer."""
    batch = [(message, [estimator.block_texts(block) for block in message.content]) for message in messages]
    counted = iter(estimator.count([text for _, parts in batch for texts, _ in parts for text in texts]))
    made = []
    for message, parts in batch:
        tokens = [sized + sum(next(counted) for _ in texts) for texts, sized in parts]
        made.append(_digest(message, tokens))
    return made


def body_sha256(role: str, content: str, model: str | None) -> str:
    """Hex digest over role, model and the stored text of the blocks."""
    return sha256(f"{role}\n{model or ''}\n{content}".encode()).hexdigest()


def shown(block: Block) -> str:
    """A block as text for people. Binary, encrypted and redacted content is described, never shown."""
    view = block.view
    if view.type == "text":
        return view.text or ""
    if is_call(view.type):
        return f"{view.name or ''}({jsontext.plain(bytes(view.input).decode())})"
    if view.type in ("tool_result", "mcp_tool_result"):
        return _shown_content(view.content)
    if view.type == "thinking":
        return view.thinking or "[thinking, encrypted]"
    if view.type == "redacted_thinking":
        return "[thinking, redacted]"
    if view.type in ("image", "document"):
        return _shown_source(view.type, view.source)
    return f"[{view.type}, {len(block.json):,} characters]"


def shown_text(blocks: Sequence[Block]) -> str:
    """A message as text: its blocks, one under the other."""
    return "\n".join(shown(block) for block in blocks) if len(blocks) != 1 else shown(blocks[0])


def _digest(message: Message, tokens: Sequence[int]) -> MessageDigest:
    blocks = tuple(_block(block, count, message.model) for block, count in zip(message.content, tokens, strict=True))
    text = shown_text(message.content)
    form = form_of(message.role, blocks)
    return MessageDigest(
        seq=0,
        role=str(message.role),
        model=message.model,
        chars=len(text),
        tokens=sum(tokens),
        preview=text[:PREVIEW_CHARS],
        sha256=body_sha256(message.role, content_json(message.content), message.model),
        form=form,
        ids="\n".join(sorted(block.id or "" for block in blocks if block.type in ("tool_use", "tool_result")))
        if form in (Form.CALLS, Form.RESULTS)
        else "",
        raw_blocks=msgspec.Raw(msgspec.json.encode(blocks)),
    )


def _block(block: Block, tokens: int, model: str | None) -> BlockDigest:
    view = block.view
    call = is_call(view.type)
    return BlockDigest(
        type=view.type,
        tokens=tokens,
        id=view.id if call else view.tool_use_id if is_result(view.type) else None,
        name=view.name if call else None,
        signer=_signer(block, model),
        blank=_is_blank(block),
        odd=call and not bytes(view.input).startswith(b"{"),
    )


def _is_blank(block: Block) -> bool:
    view = block.view
    if view.type in ("image", "document"):
        return estimator.read_source(view.source).empty
    return view.type == "text" and is_blank(view.text or "")


def _signer(block: Block, model: str | None) -> str | None:
    view = block.view
    if (view.type == "thinking" and view.signature) or (view.type == "redacted_thinking" and view.data):
        return model or ""
    return None


def form_of(role: str, blocks: Sequence[BlockDigest]) -> Form:
    """The form of a message by its role and blocks."""
    if role == "system" or not blocks or any(block.blank or block.odd for block in blocks):
        return Form.OTHER
    types = [block.type for block in blocks]
    if all(type == "text" for type in types):
        return Form.PLAIN
    ids = [block.id or "" for block in blocks if block.type != "text"]
    if len(set(ids)) != len(ids) or not all(_SOUND_ID.fullmatch(id) for id in ids):
        return Form.OTHER
    if role == "assistant" and set(types) <= {"text", "tool_use"}:
        return Form.CALLS
    if role == "user" and types == ["tool_result"] * len(ids) + ["text"] * (len(types) - len(ids)):
        return Form.RESULTS
    return Form.OTHER


def _shown_content(content: msgspec.Raw) -> str:
    raw = bytes(content)
    if not raw or raw == b"null":
        return ""
    if raw.startswith(b'"'):
        return msgspec.json.decode(raw, type=str)
    inner = estimator.nested_blocks(content)
    return "\n".join(shown(block) for block in inner) if inner else jsontext.plain(raw.decode())


def _shown_source(type: str, raw: msgspec.Raw) -> str:
    source = estimator.read_source(raw)
    if source.type == "text":
        return source.data
    if source.type == "base64":
        size = len(source.data) * 3 // 4
        return f"[{type} {source.media_type}, {size:,} bytes]"
    return f"[{type} by {source.type or 'reference'}]"
