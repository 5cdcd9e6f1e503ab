"""`auto` recognises the formats; what it does not know it refuses, and says what it looked for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hango.chain.formats.detect import detect
from hango.chain.formats.transcript import Format
from hango.errors import Invalid, Malformed, Reason, TooDeep
from tests.unit.chain.formats.imported import lines, read, source

SAMPLES = Path(__file__).parents[3] / "samples"


@pytest.mark.parametrize("format", Format)
def test_a_sample_of_each_format_is_recognised(format: Format) -> None:
    """`auto` reads every format as its name would."""
    (sample,) = SAMPLES.glob(f"{format}.*")
    body = sample.read_bytes()

    assert detect(source(body)) is format
    assert read(body) == read(body, format)


USER = {"role": "user", "content": "Hi"}


@pytest.mark.parametrize(
    ("value", "format"),
    [
        ({"messages": [USER]}, Format.OPENAI_CHAT),
        ({"model": "claude-x", "max_tokens": 9, "messages": [USER]}, Format.ANTHROPIC),
        ({"model": "gpt-5", "max_tokens": 9, "messages": [USER]}, Format.OPENAI_CHAT),
        ({"system": "S", "messages": [USER]}, Format.ANTHROPIC),
        ({"tools": [{"name": "a", "input_schema": {}}], "messages": [USER]}, Format.ANTHROPIC),
        ({"tools": [{"type": "function", "function": {}}], "messages": [USER]}, Format.OPENAI_CHAT),
        ([USER, {"role": "assistant", "content": [{"type": "thinking", "thinking": ""}]}], Format.ANTHROPIC),
        ([USER, {"role": "tool", "tool_call_id": "1", "content": ""}], Format.OPENAI_CHAT),
        ([{"messages": [USER]}, {"messages": [USER]}], Format.OPENAI_CHAT),
        ({"provider": "anthropic", "request": {"system": "S", "messages": [USER]}}, Format.ANTHROPIC),
        ({"model": "gpt-5", "input": "Hi"}, Format.OPENAI_RESPONSES),
        ([USER, {"type": "function_call", "call_id": "1", "name": "a", "arguments": ""}], Format.OPENAI_RESPONSES),
        ([{"role": "user", "content": [{"type": "input_text", "text": ""}]}], Format.OPENAI_RESPONSES),
        ([{"type": "message", "role": "user", "content": [{"type": "tool_result"}]}], Format.ANTHROPIC),
        ([{"from": "human", "value": ""}], Format.SHAREGPT),
        ([{"lc": 1, "type": "constructor", "id": ["HumanMessage"], "kwargs": {}}], Format.LANGCHAIN),
        ({"messages": [{"type": "human", "content": ""}]}, Format.LANGCHAIN),
        ([[{"type": "human", "data": {}}]], Format.LANGCHAIN),
        ({"trajectory": []}, Format.SWE_AGENT),
    ],
)
def test_shapes_are_told_apart(value: Any, format: Format) -> None:
    """The tests of the table, in its order."""
    assert detect(source(lines(value))) is format


@pytest.mark.parametrize(
    ("values", "format"),
    [
        ([{"type": "file-history-snapshot"}, {"type": "user", "sessionId": "s"}], Format.CLAUDE_CODE),
        ([USER, {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "1"}]}], Format.ANTHROPIC),
        ([USER, {"role": "assistant", "content": "\ud800"}], Format.OPENAI_CHAT),
        ([{"conversations": []}, {"conversations": []}], Format.SHAREGPT),
        ([{"type": "human", "data": {}}, {"type": "ai", "data": {}}], Format.LANGCHAIN),
    ],
)
def test_lines_are_told_apart(values: list[Any], format: Format) -> None:
    """JSON Lines are judged by their first lines together."""
    assert detect(source(lines(*values))) is format


@pytest.mark.parametrize("content", ["{}", "[]", "7", '"text"', "[[]]", '{"a":1}\n{"b":2}\n', '{"messages":7}', "[1]"])
def test_what_nobody_knows_is_refused(content: str) -> None:
    """Unknown content is 422 `unknown_format` and says what was looked for."""
    with pytest.raises(Invalid) as raised:
        detect(source(content))

    assert raised.value.closed_code == "unknown_format"
    assert "ChatGPT's `mapping`" in str(raised.value)


@pytest.mark.parametrize(
    "content", ["", "  \n", "Hello there.", "{", '{"a":1}\n{"a"\n', '{"type":"user","sessionId":1']
)
def test_what_is_not_json_is_refused(content: str) -> None:
    """Text that is not JSON is 400 `not_json`."""
    with pytest.raises(Malformed):
        detect(source(content))


@pytest.mark.parametrize("content", ["[" * 99_999, '{"a":' * 99_999, '{"a":' * 65 + "1" + "}" * 65 + "\n{}\n"])
def test_what_is_too_deep_is_refused(content: str) -> None:
    """Nesting over 64 is 400 `too_deep`, however deep, as a document and as a line."""
    for format in (None, *Format):
        with pytest.raises(TooDeep):
            read(content, format)


@pytest.mark.parametrize("content", ['{"a":1,"a":2}', '{"a":NaN}'])
def test_faults_of_the_text_come_before_an_unknown_format(content: str) -> None:
    """A doubled key is told as such also where the format is not known."""
    with pytest.raises(Malformed):
        detect(source(content))


def test_every_format_and_flag_is_documented() -> None:
    """docs/import-formats.md lists every format, and the reasons of flags by their names."""
    page = (Path(__file__).parents[4] / "docs" / "import-formats.md").read_text()
    rows = [line.split("`")[1] for line in page.splitlines() if line.startswith("| `")]

    assert rows[: len(Format)] == list(Format)
    assert set(rows[len(Format) :]) <= set(Reason)
