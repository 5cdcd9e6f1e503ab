"""Token estimates that add up: the estimate of a request is the sum of its parts, each rounded once.

Texts are counted with the o200k encoding, which is exact for several models and near for others; a factor per model
(models.toml) brings a part to the model's own count. Pictures and documents are counted by size, never as text.
"""

from __future__ import annotations

import base64
import binascii
import math
import re
from collections.abc import Sequence
from functools import lru_cache

import msgspec
import toktok

from hango import jsontext
from hango.messages import Block, ToolSpec, is_blank, is_call

ENCODING = "o200k_base"
# Longer texts are not kept with their count.
KEPT_CHARS = 16_384
# Role, separators and end mark of one message in common chat formats.
MESSAGE_OVERHEAD = 3
# A picture is billed by its area: about one token for 750 pixels, scaled down to at most 1,568 tokens' worth
# (provider's vision guide); a picture whose size cannot be read counts as a large one.
PIXELS_PER_TOKEN = 750
PICTURE_MIN, PICTURE_MAX = 64, 1600
# A page of a PDF is billed as its text and as a picture: 1,500 to 3,000 tokens (provider's PDF guide).
TOKENS_PER_PAGE = 2250
BYTES_PER_PAGE = 50_000
DOCUMENT_MIN, DOCUMENT_MAX = 300, 110_000

_PDF_PAGE = re.compile(rb"/Type\s*/Page(?![a-zA-Z])")


class Source(msgspec.Struct, frozen=True):
    """Where a picture or document comes from (base64, url, text, file or content)."""

    type: str = ""
    media_type: str = ""
    data: str = ""
    url: str = ""
    file_id: str = ""
    content: msgspec.Raw = msgspec.Raw(b"")

    @property
    def empty(self) -> bool:
        """True when it names nothing: no provider takes a picture or document of nothing."""
        if self.type == "content":
            inner, raw = nested_blocks(self.content), bytes(self.content)
            if raw.startswith(b'"'):
                return is_blank(msgspec.json.decode(raw, type=str))
            only_blanks = all(block.type == "text" and is_blank(block.view.text or "") for block in inner)
            return raw in (b"", b"null", b"[]") or (bool(inner) and only_blanks)
        held = {"base64": self.data, "text": self.data, "url": self.url, "file": self.file_id, "": ""}
        return is_blank(held.get(self.type, self.type))


_source = msgspec.json.Decoder(Source)


def count(texts: Sequence[str]) -> list[int]:
    """Tokens of each text. Text that looks like a special token is text. Never raises."""
    try:
        counted: list[int] = toktok.batch_count(list(texts), ENCODING)
        return counted
    except Exception:  # the encoder is a native library: a fault in it must not hide the context
        return [math.ceil(len(text.encode("utf-8", "replace")) / 4) for text in texts]


def text_tokens(text: str) -> int:
    """Tokens of one text. Texts of usual length come back at every call and are counted once."""
    return _counted(text) if len(text) <= KEPT_CHARS else count([text])[0]


@lru_cache(maxsize=4096)
def _counted(text: str) -> int:
    return count([text])[0]


def scaled(tokens: int, factor: float) -> int:
    """A part's tokens for a model: rounded once, here."""
    return math.ceil(tokens * factor - 1e-6)


def tool_text(tool: ToolSpec) -> str:
    """The one canonical text by which a tool is counted."""
    if tool.definition is not None:
        return jsontext.plain(tool.definition)
    head = jsontext.dumps({"name": tool.name, "description": tool.description})
    return f'{head[:-1]},"input_schema":{jsontext.plain(tool.input_schema)}}}'


def block_texts(block: Block) -> tuple[list[str], int]:
    """The texts of a block to be counted, and the tokens of what is counted by size."""
    view = block.view
    if view.type == "text":
        return [view.text or ""], 0
    if is_call(view.type):
        return [f"{view.name or ''} {jsontext.plain(bytes(view.input).decode() or '{}')}"], 0
    if view.type == "tool_result":
        return _content_texts(view.content)
    if view.type == "thinking":
        return [view.thinking or ""], 0
    if view.type == "redacted_thinking":
        # Four base64 letters are three bytes; an encrypted token takes about four of those.
        return [], math.ceil(len(view.data or "") * 3 / 16)
    if view.type == "image":
        return [], _picture(read_source(view.source))
    if view.type == "document":
        return _document(view.source)
    return [jsontext.plain(block.json)], 0


def _content_texts(content: msgspec.Raw) -> tuple[list[str], int]:
    raw = bytes(content)
    if not raw or raw == b"null":
        return [], 0
    if raw.startswith(b'"'):
        return [msgspec.json.decode(raw, type=str)], 0
    texts: list[str] = []
    sized = 0
    for inner in nested_blocks(content):
        more, tokens = block_texts(inner)
        texts += more
        sized += tokens
    if not texts and not sized:
        texts = [jsontext.plain(raw.decode())]
    return texts, sized


def nested_blocks(content: msgspec.Raw) -> list[Block]:
    """The blocks inside a tool result's content list; empty when it is no list of blocks."""
    try:
        return [Block.of(raw) for raw in msgspec.json.decode(bytes(content), type=list[msgspec.Raw])]
    except Exception:  # not a list, or items without a type: the caller counts the text as it stands
        return []


def read_source(raw: msgspec.Raw) -> Source:
    try:
        return _source.decode(bytes(raw) or b"{}")
    except msgspec.ValidationError:
        return Source()


def _document(raw: msgspec.Raw) -> tuple[list[str], int]:
    source = read_source(raw)
    if source.type == "text":
        return [source.data], 0
    if source.type == "content":
        return [jsontext.plain(bytes(raw).decode())], 0
    if source.type != "base64":
        return [], TOKENS_PER_PAGE
    size = len(source.data) * 3 // 4
    pages = len(_PDF_PAGE.findall(_decoded(source.data))) or max(1, size // BYTES_PER_PAGE)
    return [], min(max(pages * TOKENS_PER_PAGE, DOCUMENT_MIN), DOCUMENT_MAX)


def _picture(source: Source) -> int:
    size = picture_size(_decoded(source.data[:65_536])) if source.type == "base64" else None
    if size is None:
        return PICTURE_MAX
    return min(max(math.ceil(size[0] * size[1] / PIXELS_PER_TOKEN), PICTURE_MIN), PICTURE_MAX)


def picture_size(data: bytes) -> tuple[int, int] | None:
    """Width and height in pixels of a PNG, GIF, JPEG or WebP from its first bytes; None when they do not tell."""
    if data.startswith(b"\x89PNG\r\n\x1a\n") and len(data) >= 24:
        return _positive(int.from_bytes(data[16:20], "big"), int.from_bytes(data[20:24], "big"))
    if data[:6] in (b"GIF87a", b"GIF89a") and len(data) >= 10:
        return _positive(int.from_bytes(data[6:8], "little"), int.from_bytes(data[8:10], "little"))
    if data.startswith(b"RIFF") and data[8:16] == b"WEBPVP8X" and len(data) >= 30:
        return (1 + int.from_bytes(data[24:27], "little"), 1 + int.from_bytes(data[27:30], "little"))
    if data.startswith(b"\xff\xd8"):
        return _jpeg_size(data)
    return None


def _jpeg_size(data: bytes) -> tuple[int, int] | None:
    at = 2
    while at + 9 < len(data) and data[at] == 0xFF:
        marker, length = data[at + 1], int.from_bytes(data[at + 2 : at + 4], "big")
        if 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):  # a frame header
            height, width = data[at + 5 : at + 7], data[at + 7 : at + 9]
            return _positive(int.from_bytes(width, "big"), int.from_bytes(height, "big"))
        at += 2 + max(length, 2)
    return None


def _positive(width: int, height: int) -> tuple[int, int] | None:
    return (width, height) if width and height else None


def _decoded(data: str) -> bytes:
    try:
        return base64.b64decode(data[: len(data) // 4 * 4], validate=False)
    except (binascii.Error, ValueError):
        return b""
