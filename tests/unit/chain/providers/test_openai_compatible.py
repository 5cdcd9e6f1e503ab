"""Chat Completions bodies: one whole golden body, and each rule of the wire by itself."""

from __future__ import annotations

import json
from typing import Any

import pytest

from hango.chain.providers.openai_parts import ERROR_MARK
from hango.messages import Block, Message, SystemText, ToolSpec
from tests.unit.chain.providers.making import (
    COMPATIBLE,
    OPENAI,
    PNG,
    assistant,
    block,
    call,
    request,
    result,
    sent,
    system,
    user,
)

READ_FILE = ToolSpec("read_file", "Reads one file.", '{"type":"object","properties":{"path":{"type":"string"}}}')
PICTURE = block(type="image", source={"type": "base64", "media_type": "image/png", "data": PNG})
PICTURE_PART = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}"}}
FOLLOWS = {"type": "text", "text": "[A picture or file of this result follows in the next user message]"}


def messages(*given: Message, **changes: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = sent(OPENAI, request(*given, **{"tools": (READ_FILE,)} | changes))["messages"]
    return found


def test_a_whole_body() -> None:
    """System blocks as parts of one message, calls with their arguments as text, results as messages of their own."""
    made = request(
        user("Weigh it."),
        assistant("Weighing.", call("c1", path="a"), call("c2", path="b")),
        user(result("c1", "12 kg"), result("c2", "3 kg"), "Thanks."),
        model="gpt-4.1",
        system=(SystemText("You look after the stock list."), SystemText("Files are below /stock.", marked=True)),
        tools=(READ_FILE,),
        params={
            "temperature": 0.5,
            "top_k": 5,
            "stop": "END",
            "seed": 7,
            "tool_choice": {"type": "any"},
            "parallel_tool_calls": False,
            "thinking": {"type": "adaptive"},
            "reasoning_effort": "low",
        },
    )

    assert OPENAI.body(made).decode() == (
        '{"model":"gpt-4.1","max_completion_tokens":64,"temperature":0.5,"stop":["END"],"seed":7,'
        '"reasoning_effort":"low","tools":[{"type":"function","function":{"name":"read_file",'
        '"description":"Reads one file.",'
        '"parameters":{"type":"object","properties":{"path":{"type":"string"}}}}}],'
        '"tool_choice":"required","parallel_tool_calls":false,'
        '"messages":[{"role":"system","content":[{"type":"text","text":"You look after the stock list."},'
        '{"type":"text","text":"Files are below /stock."}]},'
        '{"role":"user","content":"Weigh it."},'
        '{"role":"assistant","content":"Weighing.","tool_calls":[{"id":"c1","type":"function","function":'
        '{"name":"read_file","arguments":"{\\"path\\":\\"a\\"}"}},{"id":"c2","type":"function","function":'
        '{"name":"read_file","arguments":"{\\"path\\":\\"b\\"}"}}]},'
        '{"role":"tool","tool_call_id":"c1","content":"12 kg"},'
        '{"role":"tool","tool_call_id":"c2","content":"3 kg"},'
        '{"role":"user","content":"Thanks."}]}'
    )


def test_all_tools_left_out() -> None:
    """Compatible servers refuse an empty list, and the two companion keys without tools."""
    body = sent(COMPATIBLE, request(model="qwen3", params={"tool_choice": "auto", "parallel_tool_calls": True}))

    assert body == {"model": "qwen3", "max_tokens": 64, "messages": [{"role": "user", "content": "Hi."}]}


@pytest.mark.parametrize(
    ("choice", "on_the_wire"),
    [
        ("auto", "auto"),
        ({"type": "any"}, "required"),
        ("none", "none"),
        ({"type": "tool", "name": "read_file"}, {"type": "function", "function": {"name": "read_file"}}),
        ({"type": "tool", "name": "gone"}, "auto"),
    ],
)
def test_tool_choice_in_openais_words(choice: Any, on_the_wire: Any) -> None:
    """A `tool_choice` that names a tool that is not sent falls back to auto; the others are translated."""
    assert sent(OPENAI, request(tools=(READ_FILE,), params={"tool_choice": choice}))["tool_choice"] == on_the_wire


def test_a_schema_without_properties_gets_empty_ones() -> None:
    """The public API refuses an object schema that names no properties; digits of a schema stay."""
    made = request(tools=(ToolSpec("now", input_schema='{"type":"object","maxProperties":1.0}'),))

    assert b'"parameters":{"type":"object","maxProperties":1.0,"properties":{}}' in OPENAI.body(made)


def test_arguments_keep_their_digits() -> None:
    """Numbers beyond 2^53 and 1.10 survive to the wire."""
    big = '{"n":123456789012345678901234567890,"x":1.10}'
    odd = Block.of(f'{{"type":"tool_use","id":"c1","name":"read_file","input":{big}}}')

    assert messages(user("Hi."), assistant(odd), user(result("c1")))[1] == {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "read_file", "arguments": big}}],
    }


def test_thinking_is_not_sent() -> None:
    """Thinking goes only to the model that signed it; this wire has no place for it."""
    thinking = block(type="thinking", thinking="An easy one.", signature="c2ln")

    assert messages(user("Hi."), assistant(thinking, "Yes."), user("So?"))[1] == {
        "role": "assistant",
        "content": "Yes.",
    }
    assert len(messages(user("Hi."), assistant(thinking), user("So?"))) == 2


def test_pictures_of_a_result_follow_in_a_turn_of_the_user() -> None:
    """A result may hold only text here: its pictures follow, after all results and before the user's words."""
    content = [{"type": "text", "text": "Two sides:"}, json.loads(PICTURE.json), json.loads(PICTURE.json)]
    found = messages(
        user("Look."), assistant(call("c1"), call("c2")), user(result("c1", content), result("c2"), "Well?")
    )

    of_result = {"type": "text", "text": "[Of the result of c1]"}
    assert found[2:] == [
        {"role": "tool", "tool_call_id": "c1", "content": [{"type": "text", "text": "Two sides:"}, FOLLOWS, FOLLOWS]},
        {"role": "tool", "tool_call_id": "c2", "content": "done"},
        {
            "role": "user",
            "content": [of_result, PICTURE_PART, of_result, PICTURE_PART, {"type": "text", "text": "Well?"}],
        },
    ]


@pytest.mark.parametrize(
    ("content", "is_error", "on_the_wire"),
    [
        ("no such file", True, ERROR_MARK + "no such file"),
        (None, False, ""),
        ([], False, ""),
        ([{"type": "text", "text": "a"}], False, "a"),
        (
            [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}],
            True,
            [
                {"type": "text", "text": ERROR_MARK.strip()},
                {"type": "text", "text": "a"},
                {"type": "text", "text": "b"},
            ],
        ),
        ([{"type": "tool_reference", "tool_name": "x"}], False, '{"type":"tool_reference","tool_name":"x"}'),
        ({"odd": 1}, False, '{"odd":1}'),
    ],
)
def test_contents_of_results(content: Any, is_error: bool, on_the_wire: Any) -> None:
    """A result keeps its place without content, says that it is an error, and loses nothing that is text."""
    found = messages(user("Hi."), assistant(call("c1")), user(result("c1", content, is_error=is_error)))

    assert found[2:] == [{"role": "tool", "tool_call_id": "c1", "content": on_the_wire}]


@pytest.mark.parametrize(
    ("source", "parts"),
    [
        (
            {"type": "base64", "media_type": "application/pdf", "data": "JVBERi0="},
            [{"type": "file", "file": {"filename": "List", "file_data": "data:application/pdf;base64,JVBERi0="}}],
        ),
        ({"type": "text", "media_type": "text/plain", "data": "Bolts: 40."}, "List\nBolts: 40."),
        ({"type": "content", "content": "Bolts: 40."}, "List\nBolts: 40."),
        ({"type": "content", "content": [{"type": "text", "text": "Bolts: 40."}]}, "List\nBolts: 40."),
        ({"type": "url", "url": "https://example.org/a.pdf"}, "List\n[A document at https://example.org/a.pdf]"),
        ({"type": "file", "file_id": "file_1"}, "List\n[A document that cannot be sent here]"),
    ],
)
def test_documents(source: dict[str, Any], parts: Any) -> None:
    """A PDF goes as a file, text as text; what lies at another place is named, never left out silently."""
    found = messages(user(block(type="document", title="List", source=source)))[0]["content"]

    if isinstance(parts, str):
        assert found == [{"type": "text", "text": line} for line in parts.split("\n")]
    else:
        assert found == parts


def test_pictures() -> None:
    """A picture goes as a data URL or by its address; one that lies with another provider is named."""
    by_url = block(type="image", source={"type": "url", "url": "https://example.org/a.png"})
    by_id = block(type="image", source={"type": "file", "file_id": "file_1"})

    assert messages(user(PICTURE, by_url, by_id))[0]["content"] == [
        PICTURE_PART,
        {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}},
        {"type": "text", "text": "[A picture that cannot be sent here]"},
    ]
    assert messages(user("Hi."), assistant(PICTURE), user("So?"))[1] == {
        "role": "assistant",
        "content": "[A picture that cannot be sent here]",
    }


def test_search_results_are_text() -> None:
    """A search result goes as its title, its source and its text."""
    found = block(
        type="search_result", title="Oil", source="https://example.org", content=[{"type": "text", "text": "Buy."}]
    )

    assert messages(user(found))[0]["content"] == "Oil\nhttps://example.org\nBuy."


def test_a_system_message_of_the_history_stays_one() -> None:
    """`role: system` inside a history stays a message where the provider takes it."""
    assert messages(user("Hi."), system("Be brief."), assistant("Yes."))[1] == {
        "role": "system",
        "content": "Be brief.",
    }


def test_a_tool_that_only_another_provider_knows_is_not_sent() -> None:
    """A server tool of another API cannot go out; one in this API's words goes as it came."""
    foreign = ToolSpec("web_search", definition='{"type":"web_search_20250305","name":"web_search"}')
    own = ToolSpec("grammar", definition='{"type":"custom","custom":{"name":"grammar"}}')

    assert sent(OPENAI, request(tools=(foreign, own)))["tools"] == [{"type": "custom", "custom": {"name": "grammar"}}]


def test_reasoning_models_get_no_sampling_params() -> None:
    """Reasoning models refuse temperature and top_p."""
    body = sent(OPENAI, request(model="gpt-5.4", params={"temperature": 0, "top_p": 1, "reasoning_effort": "low"}))

    assert body.keys() == {"model", "max_completion_tokens", "reasoning_effort", "messages"}
