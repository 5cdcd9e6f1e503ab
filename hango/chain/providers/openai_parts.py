"""Content parts of Chat Completions: text, pictures and files, made of blocks. Pure."""

from __future__ import annotations

from typing import Any

import msgspec

from hango import jsontext
from hango.chain.providers import blocks as wire_blocks
from hango.messages import Block

Part = dict[str, Any]

ERROR_MARK = "[The tool reports an error]\n"


class _Source(msgspec.Struct, frozen=True):
    type: str = ""
    media_type: str = ""
    data: str = ""
    url: str = ""
    content: msgspec.Raw = msgspec.Raw(b"")


def part(*, text: str) -> Part:
    return {"type": "text", "text": text}


def shown_content(parts: list[Part]) -> str | list[Part]:
    """A single text as a string, which every server takes; several parts as they are, so that they stay apart."""
    if len(parts) == 1 and parts[0]["type"] == "text":
        return str(parts[0]["text"])
    return parts


def parts_of(block: Block, *, only_text: bool = False) -> list[Part]:
    """The parts of a block; none for blocks that the wire does not take and for calls, which stand elsewhere."""
    view = block.view
    if view.type == "text":
        return [part(text=view.text or "")]
    if view.type == "search_result":
        lines = [*_texts(block, "title", "source"), wire_blocks.split_text(view.content)]
        return [part(text="\n".join(line for line in lines if line.strip()) or "[An empty search result]")]
    if view.type == "image":
        return _picture(_source(view.source), only_text)
    if view.type == "document":
        return _document(_source(view.source), block, only_text)
    return []


def split_result(block: Block) -> tuple[str | list[Part], list[Part]]:
    """A result's own content, which may only be text, and the parts that must follow in a turn of the user."""
    inner = block.inner
    if not inner:
        text, _ = wire_blocks.split_result(block)
        return (ERROR_MARK if block.view.is_error else "") + text, []
    texts: list[Part] = []
    others: list[Part] = []
    for one in inner:
        for made in parts_of(one) or [part(text=one.json)]:
            if made["type"] == "text":
                texts.append(made)
            else:
                texts.append(part(text="[A picture or file of this result follows in the next user message]"))
                others += [part(text=f"[Of the result of {block.view.tool_use_id}]"), made]
    if block.view.is_error:
        texts.insert(0, part(text=ERROR_MARK.strip()))
    return shown_content(texts), others


def _texts(block: Block, *names: str) -> list[str]:
    """Those members of a block that are texts and not empty: an import may hold anything there."""
    members = jsontext.fields(block.json)
    found = [bytes(members[name]) for name in names if name in members]
    return [text for raw in found if raw.startswith(b'"') and (text := msgspec.json.decode(raw, type=str)).strip()]


def _source(raw: msgspec.Raw) -> _Source:
    try:
        return msgspec.json.decode(raw, type=_Source)
    except msgspec.DecodeError:
        return _Source()


def _picture(source: _Source, only_text: bool) -> list[Part]:
    if source.type == "base64" and source.data and not only_text:
        return [{"type": "image_url", "image_url": {"url": _data_url(source)}}]
    if source.type == "url" and source.url and not only_text:
        return [{"type": "image_url", "image_url": {"url": source.url}}]
    return [part(text="[A picture that cannot be sent here]")]


def _document(source: _Source, block: Block, only_text: bool) -> list[Part]:
    head = [part(text=line) for line in _texts(block, "title", "context")]
    if source.type == "text" and source.data.strip():
        return [*head, part(text=source.data)]
    if source.type == "content":
        inner = wire_blocks.inner_blocks(source.content)
        if inner:
            made = [one for block in inner for one in parts_of(block, only_text=only_text)]
            return [*head, *(one for one in made if one["type"] != "text" or one["text"].strip())]
        text = wire_blocks.split_text(source.content)
        return [*head, part(text=text)] if text.strip() else head
    if source.type == "base64" and source.data and not only_text:
        name = next(iter(_texts(block, "title")), "document.pdf")
        return [{"type": "file", "file": {"filename": name, "file_data": _data_url(source)}}]
    where = f" at {source.url}" if source.type == "url" and source.url else " that cannot be sent here"
    return [*head, part(text=f"[A document{where}]")]


def _data_url(source: _Source) -> str:
    return f"data:{source.media_type or 'application/octet-stream'};base64,{source.data}"
