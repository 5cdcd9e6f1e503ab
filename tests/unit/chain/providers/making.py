"""Requests for the adapters' tests: short makers, and a population of repaired requests made by hypothesis."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from hypothesis import strategies as st

from hango.chain.models import Models
from hango.chain.providers.anthropic import AnthropicProvider
from hango.chain.providers.http import Http
from hango.chain.providers.offline import OfflineProvider
from hango.chain.providers.openai_compatible import OpenAICompatibleProvider
from hango.messages import Block, Message, MessageRole, Request, SystemText, ToolSpec, text_block

MODELS = Models.load()
ANTHROPIC = AnthropicProvider(MODELS, Http(), "https://api.anthropic.com")
OPENAI = OpenAICompatibleProvider(MODELS, Http(), "https://api.openai.com/v1")
COMPATIBLE = OpenAICompatibleProvider(MODELS, Http(), "http://127.0.0.1:8080/v1")
OFFLINE = OfflineProvider(MODELS)

# One pixel.
PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
EPHEMERAL = {"type": "ephemeral"}


def block(**members: Any) -> Block:
    return Block.of(json.dumps(members))


def user(*content: Block | str) -> Message:
    return _message(MessageRole.USER, content)


def assistant(*content: Block | str) -> Message:
    return _message(MessageRole.ASSISTANT, content)


def system(*content: Block | str) -> Message:
    return _message(MessageRole.SYSTEM, content)


def _message(role: MessageRole, content: Sequence[Block | str]) -> Message:
    return Message(role, tuple(text_block(one) if isinstance(one, str) else one for one in content))


def call(id: str, name: str = "read_file", **arguments: Any) -> Block:
    return block(type="tool_use", id=id, name=name, input=arguments)


def result(id: str, content: Any = "done", **more: Any) -> Block:
    return block(type="tool_result", tool_use_id=id, content=content, **more)


def request(*messages: Message, **changes: Any) -> Request:
    given: dict[str, Any] = {
        "model": "claude-sonnet-4-5",
        "system": (),
        "tools": (),
        "messages": messages or (user("Hi."),),
        "max_output_tokens": 64,
    }
    return Request(**(given | changes))


def sent(provider: Any, made: Request) -> dict[str, Any]:
    """The body read back."""
    read: dict[str, Any] = json.loads(provider.body(made))
    return read


# Many things in an order that a hash could change.
LARGE = request(
    user("Hi."),
    *(
        message
        for n in range(20)
        for message in (assistant(call("call_0", f"tool.{n}", n=n)), user(result("call_0", f"{n} done")))
    ),
    system=(SystemText("A."), SystemText("B.", marked=True)),
    tools=tuple(ToolSpec(f"tool.{n}", f"Number {n}.") for n in range(20)),
    params={"seed": 1, "temperature": 0.5, "stop": ["x", "y"], "reasoning_effort": "low"},
)

words = st.text(min_size=1, max_size=40).filter(lambda text: text.strip())
names = st.one_of(
    st.sampled_from(["read_file", "a.b", "câu_hỏi", "x" * 65, "ok_name"]),
    st.text(min_size=1, max_size=12).filter(lambda text: text.strip()),
)
ids = st.one_of(st.sampled_from(["call_0", "call_1", "functions.f:0", "toolu_01"]), st.text(max_size=80))
marks = st.sampled_from([{}, {"cache_control": EPHEMERAL}])
schemas = st.sampled_from(
    [
        {"type": "object"},
        {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
        {"type": "object", "properties": {"n": {"type": "integer", "minimum": 10**20}}, "additionalProperties": False},
    ]
)
arguments = st.dictionaries(
    st.sampled_from(["path", "n", "cache_control"]),
    st.one_of(words, st.integers(), st.booleans(), st.none(), st.lists(words, max_size=2)),
    max_size=3,
)


@st.composite
def texts(draw: st.DrawFn) -> Block:
    return block(type="text", text=draw(words), **draw(marks))


@st.composite
def pictures(draw: st.DrawFn) -> Block:
    sources = [
        {"type": "base64", "media_type": "image/png", "data": PNG},
        {"type": "url", "url": "https://example.org/a.png"},
    ]
    return block(type="image", source=draw(st.sampled_from(sources)), **draw(marks))


@st.composite
def documents(draw: st.DrawFn) -> Block:
    sources: list[dict[str, Any]] = [
        {"type": "base64", "media_type": "application/pdf", "data": "JVBERi0xLjcK"},
        {"type": "text", "media_type": "text/plain", "data": draw(words)},
        {"type": "content", "content": [{"type": "text", "text": draw(words)} | draw(marks)]},
        {"type": "url", "url": "https://example.org/a.pdf"},
    ]
    return block(type="document", source=draw(st.sampled_from(sources)), title=draw(words), **draw(marks))


@st.composite
def results(draw: st.DrawFn, id: str) -> Block:
    inner = st.lists(st.one_of(texts(), pictures(), documents()), max_size=3)
    content: Any = draw(st.one_of(words, inner.map(lambda blocks: [json.loads(one.json) for one in blocks])))
    return result(id, content, is_error=draw(st.booleans()), **draw(marks))


@st.composite
def assistants(draw: st.DrawFn) -> Message:
    content: list[Block] = []
    if draw(st.booleans()):
        content.append(block(type="thinking", thinking=draw(words), signature="c2ln"))
    content += draw(st.lists(texts(), max_size=2))
    called = draw(st.lists(ids, max_size=3, unique=True))
    content += [block(type="tool_use", id=id, name=draw(names), input=draw(arguments)) for id in called]
    return assistant(*content, *([] if content else [draw(texts())]))


@st.composite
def requests(draw: st.DrawFn) -> Request:
    """Repaired requests, as they reach an adapter: pairs complete and adjacent, results first, nothing blank."""
    history = [user(*draw(st.lists(st.one_of(texts(), pictures(), documents()), min_size=1, max_size=3)))]
    for _ in range(draw(st.integers(0, 3))):
        said = draw(assistants())
        answered = [draw(results(one.view.id or "")) for one in said.content if one.type == "tool_use"]
        history += [said, user(*answered, *draw(st.lists(texts(), min_size=0 if answered else 1, max_size=2)))]
        if draw(st.booleans()):
            history.append(system(draw(words)))
    tools = [
        ToolSpec(name, draw(st.one_of(st.just(""), words)), json.dumps(draw(schemas)))
        for name in draw(st.lists(names, max_size=3, unique=True))
    ]
    blocks: list[SystemText] = [SystemText(text) for text in draw(st.lists(words, max_size=3))]
    marked: bool = draw(st.booleans())
    if blocks and marked:
        blocks[-1] = SystemText(blocks[-1].text, marked=True)
    return request(
        *history,
        model=draw(st.sampled_from(["claude-opus-5", "claude-haiku-4-5", "somebody-s-model"])),
        system=tuple(blocks),
        tools=tuple(tools),
        max_output_tokens=draw(st.integers(1, 8192)),
        params=draw(params([tool.name for tool in tools])),
        mark_last_tool=draw(st.booleans()),
        cache_ttl=draw(st.sampled_from(["5m", "1h"])),
    )


def params(tools: Sequence[str]) -> st.SearchStrategy[dict[str, Any]]:
    """Any of api.md's params, `tool_choice` in the words of either API."""
    named = st.sampled_from([*tools, "not_sent"])
    choices = st.one_of(
        st.sampled_from(["auto", "any", "required", "none"]),
        st.sampled_from(["auto", "any", "none"]).map(lambda kind: {"type": kind}),
        named.map(lambda name: {"type": "tool", "name": name}),
        named.map(lambda name: {"type": "function", "function": {"name": name}}),
    )
    return st.fixed_dictionaries(
        {},
        optional={
            "temperature": st.sampled_from([0, 0.7, 1]),
            "top_p": st.sampled_from([0.5, 1]),
            "top_k": st.integers(1, 100),
            "stop": st.one_of(words, st.lists(words, min_size=1, max_size=3)),
            "seed": st.integers(0, 2**31),
            "tool_choice": choices,
            "parallel_tool_calls": st.booleans(),
            "thinking": st.sampled_from([{"type": "adaptive"}, {"type": "enabled", "budget_tokens": 1024}]),
            "reasoning_effort": st.sampled_from(["none", "minimal", "low", "high", "max"]),
        },
    )
