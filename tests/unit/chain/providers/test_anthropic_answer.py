"""Answers of the Messages API, read: every kind of block, reason and figure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from hango.chain.providers.answers import as_response
from hango.chain.providers.anthropic_answer import read
from hango.chain.providers.hiding import Hidden
from hango.chain.providers.http import Answer
from hango.errors import ProviderFailed, ProviderFault
from hango.messages import Block, Response, StopReason, Usage, text_block
from tests.providers_server import message
from tests.unit.chain.providers.making import block


def no_names() -> Mapping[str, str]:
    raise AssertionError("only calls have names to look up")


def response_of(answer: dict[str, Any] | bytes) -> Response:
    body = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
    return as_response("anthropic", Answer(body), lambda raw: read(raw, dict), Hidden())


def test_every_block_stays_as_it_came() -> None:
    """Thinking with its signature, hidden thinking, server tools and blocks nobody knows are kept, in their order."""
    blocks: list[dict[str, Any]] = [
        {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"},
        {"type": "redacted_thinking", "data": "ZGF0YQ=="},
        {"type": "text", "text": "Câu 🙂", "citations": [{"type": "char_location", "start_char_index": 1.50}]},
        {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "a"}},
        {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []},
        {"type": "from_the_future", "text": 7, "more": {"b": 1, "a": 2}},
    ]
    body = json.dumps(message(*blocks)).encode()

    response = as_response("anthropic", Answer(body), lambda raw: read(raw, no_names), Hidden())

    assert response.content == tuple(block(**one) for one in blocks)


def test_inputs_stay_digit_for_digit() -> None:
    """Numbers, the order of keys and escapes of a call's input are those that came; white space goes."""
    body = json.dumps(message(stop_reason="tool_use")).replace(
        '"content": []',
        '"content": [{"type": "tool_use", "id": "t1", "name": "now",'
        ' "input": {"b": 1.10, "a": 123456789012345678901234567890, "c": "\\u00e9", "d": 1e999}}]',
    )

    response = response_of(body.encode())

    assert response.content == (
        Block(
            '{"type":"tool_use","id":"t1","name":"now",'
            '"input":{"b":1.10,"a":123456789012345678901234567890,"c":"\\u00e9","d":1e999}}'
        ),
    )
    assert response.stop_reason is StopReason.TOOL_USE


@pytest.mark.parametrize("given", [{}, {"input": None}])
def test_a_call_without_an_input_has_an_empty_one(given: dict[str, Any]) -> None:
    """A result can answer it like any other."""
    response = response_of(message({"type": "tool_use", "id": "t1", "name": "now"} | given))

    assert response.content == (block(type="tool_use", id="t1", name="now", input={}),)


@pytest.mark.parametrize("reason", StopReason)
def test_each_stop_reason(reason: StopReason) -> None:
    """The reasons are Anthropic's own words."""
    assert response_of(message("Hi.", stop_reason=reason.value)).stop_reason is reason


@pytest.mark.parametrize("reason", [None, "", "from_the_future"])
def test_an_unknown_stop_reason_is_an_end(reason: Any) -> None:
    """A reason that nobody knows is `end_turn`."""
    assert response_of(message("Hi.", stop_reason=reason)).stop_reason is StopReason.END_TURN


@pytest.mark.parametrize(
    ("figures", "usage"),
    [
        ({}, Usage(12, 3)),
        ({"cache_read_input_tokens": 100, "cache_creation_input_tokens": 50}, Usage(12, 3, 100, 50)),
        ({"cache_read_input_tokens": None, "cache_creation_input_tokens": None}, Usage(12, 3)),
        ({"input_tokens": 0, "output_tokens": 0, "service_tier": "standard"}, Usage()),
        ({"input_tokens": 1_000_000_000}, Usage(1_000_000_000, 3)),
    ],
)
def test_usage(figures: dict[str, Any], usage: Usage) -> None:
    """`input_tokens` comes without the cached ones; what is not told of the cache is 0."""
    response = response_of(message("Hi.", **figures))

    assert (response.usage, response.usage_known) == (usage, True)


BAD_FIGURES = [-1, 1.5, "12", True, [], {}, 1_000_000_001, 10**40]


@pytest.mark.parametrize("bad", [*BAD_FIGURES, None])
@pytest.mark.parametrize("name", ["input_tokens", "output_tokens"])
def test_a_figure_that_cannot_be(name: str, bad: Any) -> None:
    """The answer is kept; the figures are not known, and none of them is believed."""
    response = response_of(message("Hi.", **{name: bad}))

    assert response == Response((text_block("Hi."),), StopReason.END_TURN, Usage(), usage_known=False)


@pytest.mark.parametrize("bad", BAD_FIGURES)
@pytest.mark.parametrize("name", ["cache_read_input_tokens", "cache_creation_input_tokens"])
def test_a_figure_of_the_cache_that_cannot_be(name: str, bad: Any) -> None:
    """So too for the cache."""
    response = response_of(message("Hi.", **{name: bad}))

    assert (response.usage, response.usage_known) == (Usage(), False)


@pytest.mark.parametrize("usage", [None, [], 7, "12", {}])
def test_no_usage(usage: Any) -> None:
    """Without figures the answer is kept and says so."""
    response = response_of(message("Hi.") | {"usage": usage})

    assert response == Response((text_block("Hi."),), StopReason.END_TURN, Usage(), usage_known=False)


def test_an_answer_of_nothing() -> None:
    """No block is an answer too."""
    assert response_of(message()).content == ()


def test_what_no_text_can_hold_is_marked() -> None:
    """NUL and half of a surrogate pair become the mark of an unknown letter; the rest of the answer stays."""
    written = json.dumps(message("a\x00b \ud800 🙂 \\u0000 \udc00\ud83d")).encode()

    response = response_of(written)

    assert response.content[0].view.text == "a\ufffdb \ufffd 🙂 \\u0000 \ufffd\ufffd"


@pytest.mark.parametrize(
    "answer",
    [
        message() | {"content": None},
        message() | {"content": "Hi."},
        message() | {"content": {}},
        message() | {"content": [None]},
        message() | {"content": ["Hi."]},
        message() | {"content": [{}]},
        message() | {"content": [{"text": "Hi."}]},
        message() | {"content": [{"type": 7}]},
        message({"type": "text"}),
        message({"type": "text", "text": None}),
        message({"type": "text", "text": 7}),
        message({"type": "thinking", "signature": "c2ln"}),
        message({"type": "redacted_thinking"}),
        message({"type": "tool_use", "name": "now", "input": {}}),
        message({"type": "tool_use", "id": "t1", "input": {}}),
        message({"type": "tool_use", "id": "", "name": "now", "input": {}}),
        message({"type": "tool_use", "id": "t1", "name": "", "input": {}}),
        message(*["x"] * 10_001),
        message("Hi.") | {"type": "error"},
        message("Hi.") | {"role": "user"},
        message("Hi.") | {"stop_reason": 7},
        {"content": [], "type": None},
    ],
)
def test_another_shape_is_no_answer(answer: dict[str, Any]) -> None:
    """A wrong type or a member that is missing is `provider_protocol`."""
    with pytest.raises(ProviderFailed) as caught:
        response_of(answer)

    assert (caught.value.fault, caught.value.http_status) == (ProviderFault.PROTOCOL, 200)
    assert caught.value.__cause__ is None
