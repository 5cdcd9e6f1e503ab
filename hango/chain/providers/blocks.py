"""Content blocks on the wire: marks taken off, results taken apart. Pure; other members keep their text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from hango import jsontext
from hango.errors import HangoError
from hango.messages import Block


def without_marks(block: Block) -> Block:
    """The block without `cache_control`, also inside a result or document; the other members keep their text."""
    if not block.may_hold_mark:
        return block
    members = jsontext.fields(block.json)
    changes: dict[str, Any] = {}
    if "cache_control" in members:
        changes["cache_control"] = None
    if content := _without_inner_marks(members.get("content")):
        changes["content"] = content
    if (source := members.get("source")) is not None and bytes(source).startswith(b"{"):
        inner = jsontext.fields(bytes(source).decode())
        if content := _without_inner_marks(inner.get("content")):
            changes["source"] = inner | {"content": content}
    return block.with_fields(**changes) if changes else block


def inner_blocks(content: msgspec.Raw | None) -> tuple[Block, ...]:
    """The blocks of a document's content; none where it is no list of blocks."""
    return Block.all_of(content) if content is not None else ()


def as_arguments(input: msgspec.Raw) -> msgspec.Raw:
    """Arguments that are no JSON object, as one: a wire takes nothing else.

    A string that holds an object is that object; any other value becomes the member `value`.
    """
    raw = bytes(input)
    if raw.startswith(b'"'):
        written = msgspec.json.decode(raw, type=str)
        if _is_object(written):
            return msgspec.Raw(jsontext.compact(written).encode())
    return msgspec.Raw(b'{"value":' + raw + b"}") if raw and raw != b"null" else msgspec.Raw(b"{}")


def _is_object(text: str) -> bool:
    try:
        return isinstance(jsontext.read(text.encode()), dict)
    except HangoError:
        return False


def split_result(block: Block) -> tuple[str, list[Block]]:
    """The text of a result and its other blocks."""
    return _text(block.view.content, block.inner), [item for item in block.inner if item.type != "text"]


def split_text(content: msgspec.Raw) -> str:
    """The text in a content: a string, or the text blocks of a list. What is neither counts as text itself."""
    return _text(content, inner_blocks(content))


def _text(content: msgspec.Raw, inner: Sequence[Block]) -> str:
    raw = bytes(content)
    if raw in (b"", b"null", b"[]"):
        return ""
    if raw.startswith(b'"'):
        return msgspec.json.decode(raw, type=str)
    if not inner:
        return raw.decode()
    return "\n".join(item.view.text or "" for item in inner if item.type == "text")


def _without_inner_marks(content: msgspec.Raw | None) -> msgspec.Raw | None:
    """None when nothing changes."""
    inner = inner_blocks(content)
    cleaned = tuple(without_marks(block) for block in inner)
    if cleaned == inner:
        return None
    return msgspec.Raw(("[" + ",".join(block.json for block in cleaned) + "]").encode())
