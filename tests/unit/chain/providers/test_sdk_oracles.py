"""The official SDKs as oracles: they send what hango sends, and read from an answer what hango reads."""

from __future__ import annotations

import json
from typing import Any

import anthropic
import openai
import pytest

from hango.chain.providers.http import Http
from hango.errors import ProviderFailed
from hango.messages import SystemText, ToolSpec
from tests.providers_server import chat, fake_provider, message, says
from tests.unit.chain.providers.answering import ANTHROPIC_WIRE, KEY, OPENAI_WIRE
from tests.unit.chain.providers.making import PNG, assistant, block, call, request, result, user

SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
REQUEST = request(
    user("What is in it?", block(type="image", source={"type": "base64", "media_type": "image/png", "data": PNG})),
    assistant("Reading.", call("toolu_1", path="a")),
    user(result("toolu_1", "Forty bolts."), "Well?"),
    model="claude-opus-5",
    system=(SystemText("You are brief."), SystemText("Be kind.")),
    tools=(ToolSpec("read_file", "Reads one file.", json.dumps(SCHEMA)),),
    params={"tool_choice": "auto", "parallel_tool_calls": False, "stop": ["END"]},
)

ANTHROPIC_ARGUMENTS: dict[str, Any] = {
    "model": "claude-opus-5",
    "max_tokens": 64,
    "stop_sequences": ["END"],
    "tools": [{"name": "read_file", "description": "Reads one file.", "input_schema": SCHEMA}],
    "tool_choice": {"type": "auto", "disable_parallel_tool_use": True},
    "system": [{"type": "text", "text": "You are brief."}, {"type": "text", "text": "Be kind."}],
    "messages": [
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "What is in it?"},
                {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}},
            ],
        },
        {
            "role": "assistant",
            "content": [
                {"type": "text", "text": "Reading."},
                {"type": "tool_use", "id": "toolu_1", "name": "read_file", "input": {"path": "a"}},
            ],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "toolu_1", "content": "Forty bolts."},
                {"type": "text", "text": "Well?"},
            ],
        },
    ],
}
OPENAI_ARGUMENTS: dict[str, Any] = {
    "model": "claude-opus-5",
    "max_tokens": 64,
    "stop": ["END"],
    "tools": [
        {
            "type": "function",
            "function": {"name": "read_file", "description": "Reads one file.", "parameters": SCHEMA},
        }
    ],
    "tool_choice": "auto",
    "parallel_tool_calls": False,
    "messages": [
        {
            "role": "system",
            "content": [{"type": "text", "text": "You are brief."}, {"type": "text", "text": "Be kind."}],
        },
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "What is in it?"},
                {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}"}},
            ],
        },
        {
            "role": "assistant",
            "content": "Reading.",
            "tool_calls": [
                {
                    "id": "toolu_1",
                    "type": "function",
                    "function": {"name": "read_file", "arguments": '{"path":"a"}'},
                }
            ],
        },
        {"role": "tool", "tool_call_id": "toolu_1", "content": "Forty bolts."},
        {"role": "user", "content": "Well?"},
    ],
}


def anthropic_sdk(url: str) -> anthropic.AsyncAnthropic:
    return anthropic.AsyncAnthropic(api_key=KEY.reveal(), base_url=url, max_retries=0)


def openai_sdk(url: str) -> openai.AsyncOpenAI:
    return openai.AsyncOpenAI(api_key=KEY.reveal(), base_url=url, max_retries=0)


async def test_anthropics_sdk_sends_the_same(http: Http) -> None:
    """The same path and key, and a body that means the same.

    The API takes the key in either header; the SDK asks for a later version, in which no model samples.
    """
    async with fake_provider(says(message("Forty."))) as server, anthropic_sdk(server.url) as sdk:
        await ANTHROPIC_WIRE.at(server.url, http).complete(REQUEST, deadline=10)
        await sdk.messages.create(**ANTHROPIC_ARGUMENTS)

    ours, theirs = server.seen
    assert (ours.path, ours.json) == (theirs.path, theirs.json)
    assert (ours.headers["content-type"], f"Bearer {ours.headers['x-api-key']}") == (
        theirs.headers["content-type"],
        theirs.headers["authorization"],
    )


async def test_openais_sdk_sends_the_same(http: Http) -> None:
    """The same path, the same key at the same place, and a body that means the same."""
    async with fake_provider(says(chat("Forty."))) as server, openai_sdk(f"{server.url}/v1") as sdk:
        await OPENAI_WIRE.at(f"{server.url}/v1", http).complete(REQUEST, deadline=10)
        await sdk.chat.completions.create(**OPENAI_ARGUMENTS)

    ours, theirs = server.seen
    kept = ("content-type", "authorization")
    assert (ours.path, ours.json) == (theirs.path, theirs.json)
    assert [ours.headers.get(name) for name in kept] == [theirs.headers.get(name) for name in kept]


ANTHROPIC_ANSWERS = {
    "text": message("Câu 🙂"),
    "nothing": message(),
    "thinking": message({"type": "thinking", "thinking": "Hm.", "signature": "c2ln"}, "Hello."),
    "hidden thinking": message({"type": "redacted_thinking", "data": "ZGF0YQ=="}, "Hello."),
    "calls": message(
        "Looking.",
        {"type": "tool_use", "id": "toolu_1", "name": "read_file", "input": {"path": "a", "n": [1, {"b": None}]}},
        {"type": "tool_use", "id": "toolu_2", "name": "now", "input": {}},
        stop_reason="tool_use",
    ),
    "cache": message("Hi.", cache_read_input_tokens=100, cache_creation_input_tokens=50),
    **{
        reason: message("Hi.", stop_reason=reason)
        for reason in ("max_tokens", "stop_sequence", "refusal", "pause_turn")
    },
}


@pytest.mark.parametrize("answer", ANTHROPIC_ANSWERS.values(), ids=ANTHROPIC_ANSWERS)
async def test_anthropics_sdk_reads_the_same(http: Http, answer: dict[str, Any]) -> None:
    """The SDK finds the same blocks, the same reason and the same figures in an answer."""
    headers = {"request-id": "req_1"}
    async with fake_provider(says(answer, headers=headers)) as server, anthropic_sdk(server.url) as sdk:
        ours = await ANTHROPIC_WIRE.at(server.url, http).complete(REQUEST, deadline=10)
        theirs = await sdk.messages.create(**ANTHROPIC_ARGUMENTS)

    read = json.loads(theirs.to_json())
    usage = theirs.usage
    assert [json.loads(one.json) for one in ours.content] == read["content"]
    assert (ours.stop_reason, ours.request_id) == (theirs.stop_reason, theirs._request_id)
    assert (ours.usage.input_tokens, ours.usage.output_tokens) == (usage.input_tokens, usage.output_tokens)
    assert ours.usage.cache_read_tokens == (usage.cache_read_input_tokens or 0)
    assert ours.usage.cache_write_tokens == (usage.cache_creation_input_tokens or 0)


def tool_call(id: str, arguments: str) -> dict[str, Any]:
    return {"id": id, "type": "function", "function": {"name": "read_file", "arguments": arguments}}


OPENAI_ANSWERS = {
    "text": chat("Câu 🙂"),
    "calls": chat(None, "tool_calls", tool_calls=[tool_call("c1", '{"path": "a", "n": 1.5}'), tool_call("c2", "{}")]),
    "text and call": chat("Looking.", "tool_calls", tool_calls=[tool_call("c1", "{}")]),
    "length": chat("Hel", "length"),
    "cache": chat(
        "Hi.",
        usage={
            "prompt_tokens": 100,
            "completion_tokens": 7,
            "total_tokens": 107,
            "prompt_tokens_details": {"cached_tokens": 80, "cache_write_tokens": 5},
        },
    ),
}


@pytest.mark.parametrize("answer", OPENAI_ANSWERS.values(), ids=OPENAI_ANSWERS)
async def test_openais_sdk_reads_the_same(http: Http, answer: dict[str, Any]) -> None:
    """The SDK finds the same text, the same calls and the same figures in an answer."""
    headers = {"x-request-id": "req_1"}
    async with fake_provider(says(answer, headers=headers)) as server, openai_sdk(server.url) as sdk:
        ours = await OPENAI_WIRE.at(server.url, http).complete(REQUEST, deadline=10)
        theirs = await sdk.chat.completions.create(**OPENAI_ARGUMENTS)

    said, usage = theirs.choices[0].message, theirs.usage
    assert usage is not None
    views = [one.view for one in ours.content]
    assert "".join(view.text or "" for view in views if view.type == "text") == (said.content or "")
    assert [(view.id, view.name, json.loads(bytes(view.input))) for view in views if view.type == "tool_use"] == [
        (one.id, one.function.name, json.loads(one.function.arguments))
        for one in said.tool_calls or ()
        if one.type == "function"
    ]
    assert ours.request_id == theirs._request_id
    tokens = ours.usage
    whole = tokens.input_tokens + tokens.cache_read_tokens + tokens.cache_write_tokens
    assert (whole, tokens.output_tokens) == (usage.prompt_tokens, usage.completion_tokens)
    details = usage.prompt_tokens_details
    assert tokens.cache_read_tokens == (details.cached_tokens if details else 0)


STATUSES = [400, 401, 403, 404, 413, 429, 500, 503, 529]


@pytest.mark.parametrize("status", STATUSES)
async def test_anthropics_sdk_fails_the_same(http: Http, status: int) -> None:
    """The same status, id and words of an error."""
    answer = says(ANTHROPIC_WIRE.error("No."), status=status, headers={"request-id": "req_1"})
    async with fake_provider(answer) as server, anthropic_sdk(server.url) as sdk:
        with pytest.raises(ProviderFailed) as ours:
            await ANTHROPIC_WIRE.at(server.url, http).complete(REQUEST, deadline=10)
        with pytest.raises(anthropic.APIStatusError) as theirs:
            await sdk.messages.create(**ANTHROPIC_ARGUMENTS)

    body: Any = theirs.value.body
    assert (ours.value.http_status, ours.value.request_id) == (theirs.value.status_code, theirs.value.request_id)
    assert ours.value.said == body["error"]["message"]


@pytest.mark.parametrize("status", STATUSES)
async def test_openais_sdk_fails_the_same(http: Http, status: int) -> None:
    """The same status, id and words of an error."""
    answer = says(OPENAI_WIRE.error("No."), status=status, headers={"x-request-id": "req_1"})
    async with fake_provider(answer) as server, openai_sdk(server.url) as sdk:
        with pytest.raises(ProviderFailed) as ours:
            await OPENAI_WIRE.at(server.url, http).complete(REQUEST, deadline=10)
        with pytest.raises(openai.APIStatusError) as theirs:
            await sdk.chat.completions.create(**OPENAI_ARGUMENTS)

    body: Any = theirs.value.body
    assert (ours.value.http_status, ours.value.request_id) == (theirs.value.status_code, theirs.value.request_id)
    assert ours.value.said == body["message"]
