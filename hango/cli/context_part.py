"""One part in full, as text with its structure. Pure: a reply in, lines out; lines are as long as they are.

Pictures, documents, encrypted and redacted content are described, not shown.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec

from hango.cli.output import Line, Span, Style
from hango.cli.replies import FullPart
from hango.cli.text import lines as text_lines
from hango.cli.text import number, one_line

INDENT = "  "
TEXT = {"text": "text", "thinking": "thinking"}  # block type: the field that is its text


def lines(part: FullPart) -> Iterator[Line]:
    """A heading, then the content that is sent; for a replaced part the original after it."""
    state = "excluded" if not part.included else "replaced" if part.override == "replace" else ""
    words = (one_line(part.id), one_line(part.label), f"{number(part.tokens)} tokens", state)
    yield Line.of(Span(" · ".join(word for word in words if word), Style.STRONG))
    yield Line()
    yield from _content(part.content)
    if bytes(part.content_original) != b"null":
        yield Line()
        yield Line.of(Span("original", Style.STRONG))
        yield Line()
        yield from _content(part.content_original)


def _content(content: msgspec.Raw) -> Iterator[Line]:
    """Text, a list of blocks, or a tool's definition."""
    first = bytes(content).lstrip()[:1]
    if first == b'"':
        yield from _text(string(content), "")
    elif first == b"[":
        for i, block in enumerate(msgspec.json.decode(content, type=list[msgspec.Raw])):
            if i:
                yield Line()
            yield from block_lines(block)
    else:
        yield from _json(content, "")


def block_lines(raw: msgspec.Raw) -> Iterator[Line]:
    """One content block: its type and names, then what it holds."""
    if bytes(raw).lstrip()[:1] != b"{":
        yield from _json(raw, "")
        return
    block = fields(raw)
    kind = string(block.get("type"))
    yield Line.of(Span(one_line(" ".join(word for word in (kind or "block", *_names(block)) if word)), Style.STRONG))
    if (field := TEXT.get(kind)) and field in block:
        yield from _text(string(block[field]), INDENT)
        if kind == "thinking" and (signature := string(block.get("signature"))):
            yield Line.of(f"{INDENT}(signed, {number(len(signature))} characters)")
    elif "source" in block:
        yield Line.of(INDENT + _source(block["source"]))
    elif kind == "redacted_thinking":
        yield Line.of(f"{INDENT}(encrypted, {number(len(string(block.get('data'))))} characters)")
    elif kind.endswith("tool_use"):
        yield from _json(block.get("input", msgspec.Raw(b"{}")), INDENT)
    elif kind.endswith("tool_result"):
        yield from _result(block.get("content"))
    else:
        yield from _json(raw, INDENT)


def _names(block: Mapping[str, msgspec.Raw]) -> Iterator[str]:
    """What tells one call from another: the tool, the id, the call that a result answers, a failure."""
    yield string(block.get("name"))
    if call := string(block.get("id")):
        yield f"({call})"
    if call := string(block.get("tool_use_id")):
        yield f"for {call}"
    if bytes(block.get("is_error", msgspec.Raw(b""))) == b"true":
        yield "(error)"


def _result(content: msgspec.Raw | None) -> Iterator[Line]:
    if content is None:
        yield Line.of(f"{INDENT}(no content)")
        return
    for line in _content(content):
        yield Line.of(INDENT, *line.spans) if line.spans else line


def _source(raw: msgspec.Raw) -> str:
    source = fields(raw) if bytes(raw).lstrip()[:1] == b"{" else {}
    kind = one_line(string(source.get("media_type")) or string(source.get("type")) or "file")
    if url := string(source.get("url")):
        return f"{kind}: {one_line(url)}"
    return f"({kind}, {number(len(string(source.get('data'))))} characters; --json has them)"


def _text(text: str, indent: str) -> Iterator[Line]:
    for line in text_lines(text):
        yield Line.of(indent + line)


def _json(raw: msgspec.Raw, indent: str) -> Iterator[Line]:
    """Indented JSON with the digits of its numbers as they are."""
    yield from _text(msgspec.json.format(bytes(raw), indent=2).decode(), indent)


def fields(raw: msgspec.Raw) -> dict[str, msgspec.Raw]:
    """The fields of a JSON object."""
    return msgspec.json.decode(raw, type=dict[str, msgspec.Raw])


def string(raw: msgspec.Raw | None) -> str:
    """The text of a JSON string; empty for anything else."""
    if raw is None or bytes(raw).lstrip()[:1] != b'"':
        return ""
    return msgspec.json.decode(raw, type=str)
