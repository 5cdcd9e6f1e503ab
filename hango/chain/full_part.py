"""One part in full: what is sent of it, and the text that a replacement would take the place of."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from hango import jsontext
from hango.chain.digest import shown
from hango.chain.draft import Draft
from hango.chain.parts import PartKind, message_part
from hango.chain.replacement import is_replaceable, replaced_blocks
from hango.chain.snapshot import Part, message_parts, system_parts, tool_parts
from hango.domain import PartID
from hango.messages import Block, ToolSpec, content_json


class FullPart(msgspec.Struct):
    """`content` is text for system and summary, blocks for messages, the definition for tools.

    `text` is what a replacement would swap; None where a replacement is refused.
    """

    id: str
    kind: str
    label: str
    content: Any
    text: str | None
    tokens: int
    included: bool
    override: str
    content_original: Any | UnsetType = UNSET


def find(draft: Draft, part: PartID) -> Part | None:
    """The listed part with this id; None when the draft has none."""
    assert draft.size is not None
    if part.startswith("system:"):
        listed = system_parts(draft, draft.size.system)
    elif part.startswith("tool:"):
        listed = tool_parts(draft, draft.size.tools)
    else:
        at = next((i for i, item in enumerate(draft.messages) if message_part(item.seq) == part), None)
        listed = [] if at is None else message_parts(draft, draft.size.messages, at, at + 1)
    return next((item for item in listed if item.id == part), None)


def full_text(draft: Draft, part: Part) -> FullPart:
    """A system block, the summary or the extra text."""
    original = _text_of(draft, part)
    replacement = draft.mark(PartID(part.id)).replacement
    made = _full(part, replacement or original, text=replacement or original)
    if replacement is not None:
        made.content_original = original
    return made


def full_tool(part: Part, tool: ToolSpec) -> FullPart:
    if tool.definition is not None:
        return _full(part, msgspec.Raw(tool.definition.encode()), text=None)
    definition = {
        "name": tool.name,
        **({"description": tool.description} if tool.description else {}),
        "input_schema": msgspec.Raw(tool.input_schema.encode()),
    }
    return _full(part, msgspec.Raw(jsontext.dumps(definition).encode()), text=None)


def full_message(draft: Draft, part: Part, stored: tuple[Block, ...]) -> FullPart:
    replacement = draft.mark(PartID(part.id)).replacement
    blocks = stored if replacement is None else replaced_blocks(stored, replacement)
    made = _full(part, _json(blocks), text=_replaceable_text(blocks))
    if replacement is not None:
        made.content_original = _json(stored)
    return made


def _json(blocks: tuple[Block, ...]) -> msgspec.Raw:
    return msgspec.Raw(content_json(blocks).encode())


def _replaceable_text(blocks: tuple[Block, ...]) -> str | None:
    """The text blocks, else the content of the single result, else "" (put last); None where it is refused."""
    if not is_replaceable([block.type for block in blocks]):
        return None
    texts = [block.view.text or "" for block in blocks if block.type == "text"]
    results = [block for block in blocks if block.type == "tool_result"]
    return "\n".join(texts) if texts else shown(results[0]) if results else ""


def _text_of(draft: Draft, part: Part) -> str:
    if part.kind == PartKind.SYSTEM:
        return next(item.value for item in draft.system if item.part == part.id)
    return next(text for seq, text in draft.texts.items() if message_part(seq) == part.id)


def _full(part: Part, content: Any, *, text: str | None) -> FullPart:
    return FullPart(
        id=part.id,
        kind=part.kind,
        label=part.label,
        content=content,
        text=text,
        tokens=part.tokens,
        included=part.included,
        override=part.override,
    )
