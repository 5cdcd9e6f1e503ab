"""`hango context show --full`: one part as text with its structure."""

from __future__ import annotations

import json
from typing import Any

from hango.cli import context_part, replies


def shown(content: str, **more: Any) -> list[str]:
    """`content` is JSON text, so that digits stay as they are written."""
    head = {"id": "message:3", "kind": "message", "label": "#3 user", "tokens": 1234, "included": True}
    body = json.dumps({**head, "override": "none", **more})[:-1] + f', "content": {content}}}'
    return [line.text for line in context_part.lines(replies.read(body.encode(), replies.FullPart))]


def test_text_of_a_system_part() -> None:
    """A system part is its text, line by line."""
    assert shown('"# Rules\\n\\n- be \\u001b[1mkind\\n"', id="system:agent", kind="system", label="agent") == [
        "system:agent · agent · 1,234 tokens",
        "",
        "# Rules",
        "",
        "- be ⟨U+001B⟩[1mkind",
        "",
    ]


def test_blocks_of_a_message() -> None:
    """A message is its blocks; numbers of a call keep their digits; bytes and secrets are described."""
    blocks = """[
        {"type": "text", "text": "Look [/bold]"},
        {"type": "thinking", "thinking": "Hm.\\nWell.", "signature": "abcd"},
        {"type": "redacted_thinking", "data": "xxxxxxxx"},
        {"type": "tool_use", "id": "toolu_1", "name": "count",
         "input": {"n": 1.10, "id": 123456789012345678901234567890}},
        {"type": "tool_result", "tool_use_id": "toolu_1", "is_error": true, "content": [
            {"type": "text", "text": "four"},
            {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGVsbG8="}}]},
        {"type": "tool_result", "tool_use_id": "toolu_2", "content": "five"},
        {"type": "tool_result", "tool_use_id": "toolu_3"},
        {"type": "image", "source": {"type": "url", "url": "https://example.com/a.png"}},
        {"type": "novel", "x": 1.0}
    ]"""

    assert shown(blocks) == [
        "message:3 · #3 user · 1,234 tokens",
        "",
        "text",
        "  Look [/bold]",
        "",
        "thinking",
        "  Hm.",
        "  Well.",
        "  (signed, 4 characters)",
        "",
        "redacted_thinking",
        "  (encrypted, 8 characters)",
        "",
        "tool_use count (toolu_1)",
        "  {",
        '    "n": 1.10,',
        '    "id": 123456789012345678901234567890',
        "  }",
        "",
        "tool_result for toolu_1 (error)",
        "  text",
        "    four",
        "",
        "  image",
        "    (image/png, 8 characters; --json has them)",
        "",
        "tool_result for toolu_2",
        "  five",
        "",
        "tool_result for toolu_3",
        "  (no content)",
        "",
        "image",
        "  url: https://example.com/a.png",
        "",
        "novel",
        "  {",
        '    "type": "novel",',
        '    "x": 1.0',
        "  }",
    ]


def test_a_replaced_part_shows_both_texts() -> None:
    """What is sent comes first, the original after it."""
    part = {"id": "system:agent", "label": "agent", "override": "replace", "content_original": "Old"}

    assert shown('"New"', **part) == [
        "system:agent · agent · 1,234 tokens · replaced",
        "",
        "New",
        "",
        "original",
        "",
        "Old",
    ]


def test_a_tool_is_its_definition() -> None:
    """A tool is shown as the definition that is sent."""
    part = {"id": "tool:ls", "kind": "tool", "label": "ls", "included": False, "override": "exclude"}

    assert shown('{"name": "ls", "input_schema": {"type": "object"}}', **part) == [
        "tool:ls · ls · 1,234 tokens · excluded",
        "",
        "{",
        '  "name": "ls",',
        '  "input_schema": {',
        '    "type": "object"',
        "  }",
        "}",
    ]


def test_odd_content_is_shown_as_json() -> None:
    """A block that is no object, and one with fields of other types, are shown as they are."""
    assert shown('["loose", {"type": 3}, {"type": "text", "text": null}]')[2:] == [
        '"loose"',
        "",
        "block",
        "  {",
        '    "type": 3',
        "  }",
        "",
        "text",
        "",
    ]
