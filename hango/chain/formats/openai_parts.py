"""Content parts of OpenAI's two APIs in hango's blocks, and back. A part without a block stays as it came."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from hango.chain.formats.reading import decode, is_array, is_nothing, is_string
from hango.errors import Invalid, Reason
from hango.messages import Block, text_block

_DATA_URL = re.compile(r"data:([\w.+-]+/[\w.+-]+);base64,", re.ASCII)
_TEXT_TYPES = frozenset({"text", "input_text", "output_text", "summary_text"})


class _ImageURL(msgspec.Struct):
    url: str


class _File(msgspec.Struct):
    file_data: str | None = None
    filename: str | None = None


class _Part(msgspec.Struct):
    type: str
    text: str | None = None
    image_url: msgspec.Raw = msgspec.Raw(b"")  # an object in Chat, a string in Responses
    file: _File | None = None  # Chat
    file_data: str | None = None  # Responses
    filename: str | None = None


def content(raw: msgspec.Raw, at: str) -> tuple[Block, ...]:
    """Blocks of a content: a string, a list of parts, or nothing."""
    if is_nothing(raw):
        return ()
    if is_string(raw):
        return (text_block(decode(raw, str, at)),)
    if not is_array(raw):
        sentence = f"The content at '{at}' is neither a string nor a list of parts."
        raise Invalid.because(Reason.BAD_FIELD, sentence, pointer=at)
    return tuple(block(item, f"{at}/{n}") for n, item in enumerate(decode(raw, list[msgspec.Raw], at)))


def texts(raw: msgspec.Raw, at: str) -> list[str]:
    """The texts of a system prompt: of the string, or of each part."""
    return [block.view.text or "" for block in content(raw, at) if block.type == "text"]


def block(raw: msgspec.Raw, at: str) -> Block:
    if is_string(raw):
        return text_block(decode(raw, str, at))
    part = decode(raw, _Part, at)
    if part.type in _TEXT_TYPES and part.text is not None:
        return text_block(part.text)
    if part.type in ("image_url", "input_image"):
        url = _image_url(part.image_url, f"{at}/image_url")
        return image(url) if url else Block.of(raw)
    if part.type in ("file", "input_file"):
        return _document(part) or Block.of(raw)
    return Block.of(raw)


def image(url: str) -> Block:
    """An image block of a data URL or of an address."""
    source = _base64_source(url) or {"type": "url", "url": url}
    return Block.make("image", source=source)


def part_of(block: Block) -> Any:
    """A Chat content part of a block that is neither a call nor a result."""
    view = block.view
    if view.type == "text":
        return {"type": "text", "text": view.text or ""}
    if view.type == "image":
        source = msgspec.json.decode(view.source)
        if source.get("type") == "base64":
            return _url_part(f"data:{source['media_type']};base64,{source['data']}")
        if source.get("type") == "url":
            return _url_part(source["url"])
    return msgspec.Raw(block.json.encode())


def _url_part(url: str) -> dict[str, Any]:
    return {"type": "image_url", "image_url": {"url": url}}


def _image_url(raw: msgspec.Raw, at: str) -> str | None:
    if is_nothing(raw):
        return None
    return decode(raw, str, at) if is_string(raw) else decode(raw, _ImageURL, at).url


def _document(part: _Part) -> Block | None:
    file = part.file or _File(part.file_data, part.filename)
    source = _base64_source(file.file_data or "")
    return Block.make("document", source=source, title=file.filename) if source else None


def _base64_source(url: str) -> dict[str, str] | None:
    match = _DATA_URL.match(url)
    if match is None:
        return None
    return {"type": "base64", "media_type": match.group(1), "data": url[match.end() :]}
