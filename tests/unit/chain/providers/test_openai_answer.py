"""Answers of Chat Completions, of the public API and of servers like it, read as the blocks they mean."""

from __future__ import annotations

import json
from typing import Any

import pytest

from hango.chain.providers.answers import as_response
from hango.chain.providers.hiding import Hidden
from hango.chain.providers.http import Answer
from hango.chain.providers.openai_answer import read
from hango.errors import ProviderFailed, ProviderFault
from hango.messages import Block, Response, StopReason, Usage, text_block
from tests.providers_server import chat
from tests.unit.chain.providers.making import block


def response_of(answer: dict[str, Any] | bytes) -> Response:
    body = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
    return as_response("openai", Answer(body), lambda raw: read(raw, dict), Hidden())


def tool_call(arguments: Any, **more: Any) -> dict[str, Any]:
    return {"id": "c1", "type": "function", "function": {"name": "now", "arguments": arguments}} | more


@pytest.mark.parametrize("content", [None, "", []])
def test_no_content(content: Any) -> None:
    """Null, an empty text and no parts are an answer without blocks."""
    assert response_of(chat(content)).content == ()


def test_parts_of_a_content() -> None:
    """A list of parts: texts stay apart, a part nobody knows is kept as it came."""
    parts = [{"type": "text", "text": "A."}, {"type": "text", "text": "B."}, {"type": "audio_note", "n": 1.50}]

    response = response_of(chat(parts))

    assert response.content == (text_block("A."), text_block("B."), Block('{"type":"audio_note","n":1.5}'))


@pytest.mark.parametrize(
    "answer",
    [
        chat(None, refusal="I will not."),
        chat([{"type": "refusal", "refusal": "I will not."}]),
        chat("I will not.", "content_filter"),
    ],
)
def test_a_refusal(answer: dict[str, Any]) -> None:
    """A refusal is a text, and the reason says what it is."""
    assert response_of(answer) == Response((text_block("I will not."),), StopReason.REFUSAL, Usage(12, 3))


@pytest.mark.parametrize("name", ["reasoning_content", "reasoning"])
def test_reasoning_of_compatible_servers(name: str) -> None:
    """Reasoning stands first, as thinking without a signature."""
    response = response_of(chat("Hello.", **{name: "Hm."}))

    assert response.content == (Block.make("thinking", thinking="Hm."), text_block("Hello."))


@pytest.mark.parametrize("reasoning", [None, "", {"effort": "low"}])
def test_reasoning_that_is_no_text(reasoning: Any) -> None:
    """Anything but a text adds no block."""
    assert response_of(chat("Hello.", reasoning=reasoning)).content == (text_block("Hello."),)


def test_calls() -> None:
    """Calls are tool_use blocks after the text, their input digit for digit as the model wrote it."""
    written = '{ "b": 1.10, "a": 123456789012345678901234567890, "c": "\\u00e9" }'

    response = response_of(chat("Looking.", "tool_calls", tool_calls=[tool_call(written), tool_call("{}", id="c2")]))

    assert response == Response(
        (
            text_block("Looking."),
            Block(
                '{"type":"tool_use","id":"c1","name":"now",'
                '"input":{"b":1.10,"a":123456789012345678901234567890,"c":"\\u00e9"}}'
            ),
            block(type="tool_use", id="c2", name="now", input={}),
        ),
        StopReason.TOOL_USE,
        Usage(12, 3),
    )


@pytest.mark.parametrize(
    ("arguments", "input"),
    [
        ("", {}),
        ("  ", {}),
        (None, {}),
        ({"a": 1}, {"a": 1}),
        ('{"a": 1', '{"a": 1'),
        ("not json", "not json"),
        ("[1]", "[1]"),
        ("null", "null"),
        ('{"a": 1, "a": 2}', '{"a": 1, "a": 2}'),
        ('{"a": NaN}', '{"a": NaN}'),
        ('{"a": 1} {"b": 2}', '{"a": 1} {"b": 2}'),
        ('{"a": "\\u0000"}', {"a": "\ufffd"}),
        ("[" * 100, "[" * 100),
    ],
)
def test_arguments_that_are_no_object(arguments: Any, input: Any) -> None:
    """Arguments that are no JSON object are kept whole as a string, as an import keeps them; none are `{}`."""
    response = response_of(chat(None, "tool_calls", tool_calls=[tool_call(arguments)]))

    assert response.content == (block(type="tool_use", id="c1", name="now", input=input),)


def test_odd_calls() -> None:
    """A call without an id gets one of its place; custom tools take a text; the older form is one call."""
    calls = [
        tool_call("{}", id=None),
        tool_call("{}", id=""),
        {"id": "c3", "type": "custom", "custom": {"name": "now", "input": "print(1)"}},
    ]

    assert response_of(chat(None, tool_calls=calls)).content == (
        block(type="tool_use", id="call_0", name="now", input={}),
        block(type="tool_use", id="call_1", name="now", input={}),
        block(type="tool_use", id="c3", name="now", input="print(1)"),
    )
    older = chat(None, "function_call", function_call={"name": "now", "arguments": '{"a":1}'})
    assert response_of(older).content == (block(type="tool_use", id="call_0", name="now", input={"a": 1}),)


def test_of_several_choices_the_first_counts() -> None:
    """The others are alternatives to it."""
    answer = chat("First.")
    answer["choices"] += chat("Second.", "length")["choices"]

    assert response_of(answer) == Response((text_block("First."),), StopReason.END_TURN, Usage(12, 3))


@pytest.mark.parametrize(
    ("finish", "reason"),
    [
        ("stop", StopReason.END_TURN),
        ("length", StopReason.MAX_TOKENS),
        ("tool_calls", StopReason.TOOL_USE),
        ("function_call", StopReason.TOOL_USE),
        ("content_filter", StopReason.REFUSAL),
        ("from_the_future", StopReason.END_TURN),
        ("", StopReason.END_TURN),
        (None, StopReason.END_TURN),
        (7, StopReason.END_TURN),
        ([], StopReason.END_TURN),
    ],
)
def test_stop_reasons_are_in_anthropics_words(finish: Any, reason: StopReason) -> None:
    """Each finish reason is one of Anthropic's; one that nobody knows is `end_turn`."""
    assert response_of(chat("Hi.", finish)).stop_reason is reason


def test_a_demanded_call_is_a_call() -> None:
    """With a named tool_choice the wire says `stop`, and a call is there to be answered."""
    response = response_of(chat(None, "stop", tool_calls=[tool_call("{}")]))

    assert response.stop_reason is StopReason.TOOL_USE


def test_a_cut_call_is_cut() -> None:
    """A call that ran into the limit says so."""
    response = response_of(chat(None, "length", tool_calls=[tool_call('{"a')]))

    assert response.stop_reason is StopReason.MAX_TOKENS


@pytest.mark.parametrize(
    ("details", "usage"),
    [
        ({}, Usage(100, 7)),
        ({"prompt_tokens_details": None}, Usage(100, 7)),
        ({"prompt_tokens_details": {}}, Usage(100, 7)),
        ({"prompt_tokens_details": {"cached_tokens": None}}, Usage(100, 7)),
        ({"prompt_tokens_details": {"cached_tokens": 80}}, Usage(20, 7, 80)),
        ({"prompt_tokens_details": {"cached_tokens": 80, "cache_write_tokens": 15}}, Usage(5, 7, 80, 15)),
        ({"prompt_tokens_details": {"cached_tokens": 800}}, Usage(0, 7, 800)),
        ({"completion_tokens_details": {"reasoning_tokens": 5}}, Usage(100, 7)),
    ],
)
def test_usage_is_without_the_cached_tokens(details: dict[str, Any], usage: Usage) -> None:
    """The wire counts cached tokens among the prompt's; hango's `input_tokens` does not, and is never under 0."""
    response = response_of(chat("Hi.", usage={"prompt_tokens": 100, "completion_tokens": 7} | details))

    assert (response.usage, response.usage_known) == (usage, True)


BAD_FIGURES = [-1, 1.5, "12", True, [], 1_000_000_001, 10**40]


@pytest.mark.parametrize(
    "usage",
    [
        {},
        [],
        7,
        {"prompt_tokens": 12},
        {"completion_tokens": 3},
        *({"prompt_tokens": bad, "completion_tokens": 3} for bad in BAD_FIGURES),
        *({"prompt_tokens": 12, "completion_tokens": bad} for bad in BAD_FIGURES),
        *(
            {"prompt_tokens": 12, "completion_tokens": 3, "prompt_tokens_details": {"cached_tokens": bad}}
            for bad in BAD_FIGURES
        ),
        {"prompt_tokens": 12, "completion_tokens": 3, "prompt_tokens_details": 7},
    ],
)
def test_usage_that_cannot_be(usage: Any) -> None:
    """The answer is kept; the figures are not known, and none of them is believed."""
    response = response_of(chat("Hi.", usage=usage))

    assert response == Response((text_block("Hi."),), StopReason.END_TURN, Usage(), usage_known=False)


def test_no_usage() -> None:
    """Some servers give none."""
    answer = chat("Hi.")
    del answer["usage"]

    assert response_of(answer).usage_known is False


@pytest.mark.parametrize(
    "answer",
    [
        {"choices": None},
        {"choices": []},
        {"choices": {}},
        {"choices": [None]},
        {"choices": [{}]},
        {"choices": [{"message": None}]},
        {"choices": [{"message": "Hi."}]},
        {"choices": [{"text": "Hi."}]},
        chat(7),
        chat({"type": "text", "text": "Hi."}),
        chat(["Hi."]),
        chat([{"text": "Hi."}]),
        chat([{"type": "text"}]),
        chat([{"type": "text", "text": 7}]),
        chat([{"type": "refusal", "refusal": 7}]),
        chat(None, refusal=7),
        chat([{"type": "text", "text": "x"}] * 10_001),
        chat(None, tool_calls={}),
        chat(None, tool_calls=[None]),
        chat(None, tool_calls=[{"id": "c1"}]),
        chat(None, tool_calls=[{"id": 1, "function": {"name": "now"}}]),
        chat(None, tool_calls=[{"id": "c1", "function": {"arguments": "{}"}}]),
        chat(None, tool_calls=[{"id": "c1", "function": {"name": "", "arguments": "{}"}}]),
        chat(None, tool_calls=[{"id": "c1", "function": {"name": 7, "arguments": "{}"}}]),
    ],
)
def test_another_shape_is_no_answer(answer: dict[str, Any]) -> None:
    """A wrong type or a member that is missing is `provider_protocol`."""
    with pytest.raises(ProviderFailed) as caught:
        response_of(answer)

    assert (caught.value.fault, caught.value.http_status) == (ProviderFault.PROTOCOL, 200)
    assert caught.value.__cause__ is None
