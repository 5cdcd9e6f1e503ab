"""llama.cpp's own HTTP server as an independent peer: it takes the bodies as they are written, counts and answers."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import replace
from typing import Any

import aiohttp
import pytest

from hango.chain.models import Models
from hango.chain.providers.anthropic import AnthropicProvider
from hango.chain.providers.http import Http
from hango.chain.providers.openai_compatible import OpenAICompatibleProvider
from hango.config.values import Secret
from hango.errors import ProviderFailed, ProviderFault, ProviderTimeout
from hango.messages import (
    Block,
    Message,
    MessageRole,
    Request,
    StopReason,
    SystemText,
    ToolSpec,
    text_block,
    tool_result,
)
from tests.llama import serving

# One server for all tests of this file, whatever the number of workers.
pytestmark = pytest.mark.xdist_group("llama")

MODELS = Models.load()
READ_FILE = ToolSpec("read_file", "Reads one file.", '{"type":"object","properties":{"path":{"type":"string"}}}')
CALL = Block.make("tool_use", id="functions.read:0", name="read_file", input={"path": "notes.txt"})


def said(role: MessageRole, *content: Block | str) -> Message:
    return Message(role, tuple(text_block(one) if isinstance(one, str) else one for one in content))


def request(*messages: Message, **changes: Any) -> Request:
    given: dict[str, Any] = {
        "model": "smollm2",
        "system": (SystemText("You look after the stock list."), SystemText("Be brief.", marked=True)),
        "tools": (),
        "messages": messages,
        "max_output_tokens": 2,
    }
    return Request(**(given | changes))


PLAIN = request(said(MessageRole.USER, "Say hello.", "In one word."))
TALK = request(
    said(MessageRole.USER, "Say hello."),
    said(MessageRole.ASSISTANT, "Hello."),
    said(MessageRole.USER, "Câu hỏi: 你好? 🙂"),
    params={"temperature": 0, "stop": ["\n\n"], "seed": 1, "top_k": 5, "top_p": 0.9},
)
SYSTEM_INSIDE = request(
    said(MessageRole.USER, "Say hello."), said(MessageRole.SYSTEM, "Be kind."), said(MessageRole.USER, "Now.")
)
TOOLS = request(
    said(MessageRole.USER, "Read the notes."),
    said(MessageRole.ASSISTANT, "Reading.", CALL),
    said(MessageRole.USER, tool_result("functions.read:0", "Forty bolts."), "Well?"),
    tools=(READ_FILE,),
    params={"tool_choice": "auto", "parallel_tool_calls": False},
)
TOOLS_LEFT_OUT = request(*TOOLS.messages, params=TOOLS.params)
REQUESTS = {
    "plain": PLAIN,
    "talk": TALK,
    "system inside": SYSTEM_INSIDE,
    "tools": TOOLS,
    "tools left out": TOOLS_LEFT_OUT,
}


@pytest.fixture(scope="module")
def llama() -> Iterator[str]:
    """The address of a running server with a small model."""
    with serving() as url:
        yield url


@pytest.fixture
async def session() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession() as made:
        yield made


async def post(session: aiohttp.ClientSession, url: str, body: bytes) -> tuple[int, Any]:
    headers = {"content-type": "application/json", "x-api-key": "none", "anthropic-version": "2023-06-01"}
    async with session.post(url, data=body, headers=headers) as answer:
        return answer.status, json.loads(await answer.read())


@pytest.mark.parametrize("made", REQUESTS.values(), ids=REQUESTS)
async def test_messages_bodies_are_answered(llama: str, session: aiohttp.ClientSession, made: Request) -> None:
    """The Anthropic body goes to another maker's server as it is, and an answer comes back."""
    provider = AnthropicProvider(MODELS, Http(), llama)

    status, answer = await post(session, f"{llama}/v1/messages", provider.body(made))

    assert (status, answer.get("type"), answer.get("role")) == (200, "message", "assistant"), answer


@pytest.mark.parametrize("made", REQUESTS.values(), ids=REQUESTS)
async def test_chat_bodies_are_answered(llama: str, session: aiohttp.ClientSession, made: Request) -> None:
    """The Chat Completions body goes to a compatible server as it is, and an answer comes back."""
    provider = OpenAICompatibleProvider(MODELS, Http(), f"{llama}/v1")

    status, answer = await post(session, f"{llama}/v1/chat/completions", provider.body(made))

    assert (status, answer.get("object")) == (200, "chat.completion"), answer
    assert answer["choices"][0]["message"]["role"] == "assistant"


async def test_the_counter_counts_what_is_sent(llama: str) -> None:
    """`count_tokens` of another maker's server: more text, more tokens; the same text, the same."""
    http = Http()
    counter = AnthropicProvider(MODELS, http, llama, Secret("none"))

    counted = {name: await counter.count_tokens(made) for name, made in REQUESTS.items()}
    again = await counter.count_tokens(PLAIN)
    await http.close()

    assert again == counted["plain"]
    assert 10 < counted["plain"] < counted["talk"] < counted["tools left out"] < 200


ADAPTERS: dict[str, Callable[[Http, str], AnthropicProvider | OpenAICompatibleProvider]] = {
    "anthropic": lambda http, llama: AnthropicProvider(MODELS, http, llama),
    "openai": lambda http, llama: OpenAICompatibleProvider(MODELS, http, f"{llama}/v1"),
}
adapters = pytest.mark.parametrize("name", ADAPTERS)


@pytest.fixture
async def http() -> AsyncIterator[Http]:
    made = Http()
    yield made
    await made.close()


@adapters
@pytest.mark.parametrize("made", REQUESTS.values(), ids=REQUESTS)
async def test_a_real_model_answers(llama: str, http: Http, name: str, made: Request) -> None:
    """Another maker's server with a real model: each request is answered, cut at its two tokens, and counted."""
    response = await ADAPTERS[name](http, llama).complete(made, deadline=120)

    usage = response.usage
    assert response.usage_known
    assert [block.type for block in response.content] in (["text"], ["tool_use"])
    assert response.stop_reason in (StopReason.MAX_TOKENS, StopReason.END_TURN, StopReason.TOOL_USE)
    assert 10 < usage.input_tokens + usage.cache_read_tokens < 300
    assert 1 <= usage.output_tokens <= 3


async def test_both_wires_read_the_same_words(llama: str, http: Http) -> None:
    """The same request over both wires of one server: the same words, as long as the model is not left to chance."""
    made = request(
        said(MessageRole.USER, "Say hello."), system=(), params={"temperature": 0, "top_k": 1}, max_output_tokens=8
    )

    texts = [
        [block.view.text for block in (await make(http, llama).complete(made, deadline=120)).content]
        for make in ADAPTERS.values()
    ]

    assert texts[0] == texts[1] != [""]


@adapters
async def test_a_stop_sequence_ends_the_answer(llama: str, http: Http, name: str) -> None:
    """What the wire calls a stop sequence is obeyed by another maker's server."""
    long = request(said(MessageRole.USER, "Count: one, two, three, four."), max_output_tokens=32)
    stopped = replace(long, params={"temperature": 0, "stop": [" "]})

    response = await ADAPTERS[name](http, llama).complete(stopped, deadline=120)

    assert " " not in "".join(block.view.text or "" for block in response.content).strip()
    assert response.stop_reason in (StopReason.STOP_SEQUENCE, StopReason.END_TURN)


@adapters
async def test_a_request_over_the_window_is_refused(llama: str, http: Http, name: str) -> None:
    """More than the model holds is the server's 400, in its own words."""
    too_long = request(said(MessageRole.USER, "word " * 20_000))

    with pytest.raises(ProviderFailed) as caught:
        await ADAPTERS[name](http, llama).complete(too_long, deadline=120)

    assert (caught.value.fault, caught.value.http_status) == (ProviderFault.REFUSED, 400)
    assert "context" in (caught.value.said or "")


@adapters
async def test_after_a_deadline_the_next_call_is_answered(llama: str, http: Http, name: str) -> None:
    """A call that is ended early leaves a server with one slot in good order."""
    # Reading it takes longer than that, whatever is answered then; words of its own: nothing of it is remembered.
    long = request(said(MessageRole.USER, f"{name} and more " * 40), max_output_tokens=100)
    adapter = ADAPTERS[name](http, llama)
    with pytest.raises(ProviderTimeout):
        await adapter.complete(long, deadline=0.1)

    response = await adapter.complete(PLAIN, deadline=120)

    assert response.content
