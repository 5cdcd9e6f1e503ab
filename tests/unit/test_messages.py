"""The neutral protocol: blocks keep their own text."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from hango.errors import Invalid
from hango.messages import (
    MAX_BLOCKS,
    Block,
    content_json,
    is_blank,
    is_call,
    is_result,
    read_content,
    text_block,
    tool_result,
)

DIGITS = '{"n":100000000000000000000000000001,"m":1.10,"o":9007199254740993}'


def test_a_block_keeps_digits_key_order_and_escapes() -> None:
    """Tool inputs and unknown blocks are kept as their own JSON text, white space outside it apart."""
    text = f'{{"id":"c1","type":"tool_use","input":{DIGITS},"name":"caf\\u00e9","new":[1.0]}}'

    block = Block.of(text.replace(",", " ,\n "))

    assert block.json == text
    assert (block.type, block.view.id, block.view.name) == ("tool_use", "c1", "café")
    assert bytes(block.view.input).decode() == DIGITS


def test_setting_a_field_leaves_the_others_as_they_are() -> None:
    """A changed id changes nothing else: other members keep their text and place."""
    block = Block.of(f'{{"type":"tool_use","id":"a","input":{DIGITS},"cache_control":{{"type":"ephemeral"}}}}')

    changed = block.with_fields(id="b", cache_control=None, name="ls")

    assert changed.json == f'{{"type":"tool_use","id":"b","input":{DIGITS},"name":"ls"}}'
    assert block.view.id == "a"


def test_an_unknown_block_is_kept_as_it_came() -> None:
    """An unknown block type is kept byte for byte."""
    text = '{"type":"hologram","data":{"x":1},"id":7,"beams":[1.50,{"z":1,"a":2}]}'

    assert Block.of(text).json == text
    assert content_json(read_content(f"[{text},{text}]")) == f"[{text},{text}]"


@pytest.mark.parametrize(
    "text", ["null", "1", '"text"', "[]", "{}", '{"type":1}', '{"type":null}', '{"type":"text","text":1}']
)
def test_what_is_no_block_is_refused(text: str) -> None:
    """A block is an object with a text `type`; known fields have their types."""
    with pytest.raises(Invalid) as raised:
        Block.of(text)

    assert raised.value.closed_code == "bad_field"


@pytest.mark.parametrize("text", ["1", "{}", "[1]", '["a"]', "null", "true"])
def test_what_is_no_content_is_refused(text: str) -> None:
    """The content of a message is a string or a list of blocks."""
    with pytest.raises(Invalid) as raised:
        read_content(text)

    assert raised.value.closed_code == "bad_field"


@pytest.mark.parametrize(
    ("text", "blocks"),
    [
        ('"caf\\u00e9"', ('{"type":"text","text":"caf\\u00e9"}',)),
        ('""', ('{"type":"text","text":""}',)),
        ("[]", ()),
        ('[ {"type" : "text", "text": "a b"} ]', ('{"type":"text","text":"a b"}',)),
    ],
)
def test_content_is_read_from_a_string_or_a_list(text: str, blocks: tuple[str, ...]) -> None:
    """A string is one text block with the string's own text."""
    assert tuple(block.json for block in read_content(text)) == blocks


def test_blocks_are_made_in_the_given_order() -> None:
    """Members that are None are left out; raw JSON stays as it is."""
    made = Block.make("tool_use", id="c1", name=None, input=msgspec.Raw(DIGITS.encode()))

    assert made.json == f'{{"type":"tool_use","id":"c1","input":{DIGITS}}}'
    assert text_block('a"b').json == '{"type":"text","text":"a\\"b"}'
    assert tool_result("c1", "no", is_error=True).json == (
        '{"type":"tool_result","tool_use_id":"c1","content":"no","is_error":true}'
    )
    assert tool_result("c1", "yes").json == '{"type":"tool_result","tool_use_id":"c1","content":"yes"}'


@pytest.mark.parametrize(
    ("type", "call", "result"),
    [
        ("text", False, False),
        ("tool_use", True, False),
        ("server_tool_use", True, False),
        ("mcp_tool_use", True, False),
        ("tool_result", False, True),
        ("mcp_tool_result", False, True),
        ("web_search_tool_result", False, True),
        ("bash_code_execution_tool_result", False, True),
        ("thinking", False, False),
    ],
)
def test_calls_and_results_are_known_by_their_type(type: str, call: bool, result: bool) -> None:
    """Server tools and MCP blocks pair like client tools."""
    assert (is_call(type), is_result(type)) == (call, result)


@pytest.mark.parametrize(
    ("text", "blank"),
    [("", True), (" \n\t", True), ("\u00a0", True), ("\u3000\u2028", True), ("\u200b", False), (".", False)],
)
def test_blank_is_white_space_alone(text: str, blank: bool) -> None:
    """The no-break space is blank."""
    assert is_blank(text) is blank


def test_equal_blocks_are_equal_by_their_text() -> None:
    """A block that was looked at equals one that was not."""
    looked: Any = Block('{"type":"text","text":"a"}')

    assert looked.view.text == "a"
    assert looked == Block('{"type":"text","text":"a"}')
    assert looked != Block('{"text":"a","type":"text"}')


def test_a_message_has_a_bounded_number_of_blocks() -> None:
    """A message of ever so many blocks would slow every inspect: it is refused with what to do."""
    one = '{"type":"text","text":"x"}'

    assert len(read_content("[" + ",".join([one] * MAX_BLOCKS) + "]")) == MAX_BLOCKS
    with pytest.raises(Invalid) as raised:
        read_content("[" + ",".join([one] * (MAX_BLOCKS + 1)) + "]")
    assert str(raised.value) == "A message holds 10,001 blocks, and 10,000 are the most. Send several messages."
