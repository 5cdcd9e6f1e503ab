"""Mutated answers (fuzzing): whatever comes back is a response or one of the closed failures, never anything else."""

from __future__ import annotations

import json
from collections.abc import Callable
from copy import deepcopy
from dataclasses import astuple
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hango import jsontext
from hango.chain.providers import anthropic_answer, openai_answer
from hango.chain.providers.answers import MOST_TOKENS, as_response
from hango.chain.providers.failures import as_failure
from hango.chain.providers.hiding import Hidden
from hango.chain.providers.http import Answer
from hango.config.values import Secret
from hango.errors import ProviderFailed, ProviderFault
from hango.messages import Response, StopReason, content_json, read_content
from tests.providers_server import chat, message

HIDDEN = Hidden([Secret("sk-canary-0123456789abcdef")])
CALL = {"id": "c1", "type": "function", "function": {"name": "a_b", "arguments": '{"path": "a", "n": 1.10}'}}
ANSWERS: dict[str, dict[str, Any]] = {
    "anthropic": message(
        {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"},
        "Câu hỏi 🙂",
        {"type": "tool_use", "id": "toolu_1", "name": "a_b", "input": {"path": "a", "n": [1.10, None]}},
        stop_reason="tool_use",
        cache_read_input_tokens=5,
        cache_creation={"ephemeral_5m_input_tokens": 0},
    ),
    "openai": chat(
        [{"type": "text", "text": "Câu hỏi 🙂"}],
        "tool_calls",
        usage={"prompt_tokens": 12, "completion_tokens": 3, "prompt_tokens_details": {"cached_tokens": 5}},
        reasoning_content="Hm.",
        refusal=None,
        tool_calls=[CALL, CALL],
    ),
}
READS: dict[str, Callable[..., Response]] = {"anthropic": anthropic_answer.read, "openai": openai_answer.read}
providers = pytest.mark.parametrize("provider", ANSWERS)
many = settings(max_examples=1000, deadline=None, suppress_health_check=[HealthCheck.too_slow])

odd_values = st.one_of(
    st.none(),
    st.booleans(),
    st.sampled_from(
        [0, -1, 10**9, 10**9 + 1, 10**40, 1.5, "", "text", "\x00", "\ud800", "{", "sk-canary", [], {}, [[]]]
    ),
    st.sampled_from(
        [{"type": "text"}, {"type": "text", "text": 1}, [{"type": "tool_use"}], [{"type": "image"}], [None]]
    ),
    st.text(max_size=5),
    st.integers(),
).map(deepcopy)
PIECES = [b"\\u0000", b"\\ud800", b'"', b"[", b"NaN"]


def places(value: Any, here: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every place in a JSON value."""
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [here, *(place for key, item in inside for place in places(item, (*here, key)))]


@st.composite
def changed(draw: st.DrawFn, answer: dict[str, Any]) -> bytes:
    """An answer in which up to three members are missing, doubled or another thing."""
    made = deepcopy(answer)
    for _ in range(draw(st.integers(1, 3))):
        *way, last = draw(st.sampled_from([place for place in places(made) if place]))
        holder: Any = made
        for key in way:
            holder = holder[key]
        action = draw(st.sampled_from(["replace", "drop", "add", "double"]))
        if action == "replace":
            holder[last] = draw(odd_values)
        elif action == "double" and isinstance(holder, list):
            holder.append(deepcopy(holder[last]))
        elif action == "add" and isinstance(holder, dict):
            holder[draw(st.sampled_from(["type", "text", "refusal", "reasoning", "function_call"]))] = draw(odd_values)
        elif len(holder) > 1:
            del holder[last]
    return json.dumps(made).encode()


@st.composite
def torn(draw: st.DrawFn, answer: dict[str, Any]) -> bytes:
    """An answer cut at any byte, or with bytes changed, put in or taken out."""
    text = bytearray(json.dumps(answer, ensure_ascii=draw(st.booleans())).encode())
    if draw(st.booleans()):
        return bytes(text[: draw(st.integers(0, len(text)))])
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(text) - 1))
        length = draw(st.integers(0, 3))
        text[at : at + length] = draw(
            st.one_of(st.binary(max_size=4), st.sampled_from([b"\\u0000", b'"', b"[", b"NaN"]))
        )
        if not text:
            break
    return bytes(text)


def response_of(provider: str, body: bytes) -> Response | ProviderFailed:
    try:
        return as_response(provider, Answer(body), lambda raw: READS[provider](raw, lambda: {"a_b": "a.b"}), HIDDEN)
    except ProviderFailed as failure:
        return failure


def check(provider: str, body: bytes) -> None:
    """A response that can be stored, counted and shown, or `provider_protocol` without a word of the body."""
    found = response_of(provider, body)
    if isinstance(found, ProviderFailed):
        assert (found.fault, found.http_status, found.__cause__) == (ProviderFault.PROTOCOL, 200, None)
        assert str(found) == f"The answer of provider '{provider}' cannot be read."
        return
    stored = content_json(found.content)
    jsontext.read(stored.encode())
    assert read_content(stored) == found.content
    assert found.stop_reason in StopReason
    figures = astuple(found.usage)
    assert all(type(figure) is int and 0 <= figure <= MOST_TOKENS for figure in figures)
    assert found.usage_known or not any(figures)
    assert all(block.view.id and block.view.name for block in found.content if block.type == "tool_use")


@providers
def test_the_answer_itself_is_read(provider: str) -> None:
    """The answers that are mutated here are good ones, so that the changes matter."""
    body = json.dumps(ANSWERS[provider]).encode()

    response = response_of(provider, body)

    assert isinstance(response, Response)
    kinds = [block.type for block in response.content]
    assert kinds == ["thinking", "text", "tool_use"] + (["tool_use"] if provider == "openai" else [])
    assert response.content[-1].view.name == "a.b"
    assert (response.stop_reason, response.usage_known) == (StopReason.TOOL_USE, True)


@providers
@many
@given(data=st.data())
def test_members_that_are_other_things(provider: str, data: st.DataObject) -> None:
    """Members missing, doubled, of another type or with impossible values: closed failures only."""
    check(provider, data.draw(changed(ANSWERS[provider])))


@providers
@many
@given(data=st.data())
def test_bytes_that_are_other_bytes(provider: str, data: st.DataObject) -> None:
    """Cut at every place, with bytes changed: closed failures only."""
    check(provider, data.draw(torn(ANSWERS[provider])))


@settings(many, max_examples=500)
@given(status=st.integers(0, 999).filter(lambda status: status != 200), data=st.data())
def test_errors_that_are_other_things(status: int, data: st.DataObject) -> None:
    """A mutated error with any status and headers is one failure with bounded, clean members."""
    error = {"type": "error", "error": {"type": "api_error", "message": "Bad sk-canary-0123456789abcdef."}}
    body = data.draw(st.one_of(changed(error), torn(error)))
    names = st.sampled_from(["retry-after", "retry-after-ms", "request-id", "x-request-id"])
    headers = data.draw(st.dictionaries(names, st.text(max_size=20)))

    failure = as_failure("openai", status, headers, body, HIDDEN)

    assert failure.http_status == status
    assert failure.retry_after is None or 0 <= failure.retry_after <= 3600
    assert failure.request_id is None or (failure.request_id.isascii() and failure.request_id.isprintable())
    assert failure.said is None or (len(failure.said) <= 500 and "sk-canary-0123456789abcdef" not in failure.said)
