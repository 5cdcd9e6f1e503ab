"""What is written in a format is read back as it was, where the format can hold it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hango.agent_definition import SystemBlock
from hango.chain.formats import anthropic, langchain, openai_chat, openai_responses, sharegpt
from hango.chain.formats.transcript import Format, ImportedAgent, ImportedMessage
from hango.messages import Block, MessageRole, ToolSpec, text_block
from tests.unit.chain.formats.imported import read

Write = Callable[[ImportedAgent, Iterable[ImportedMessage]], str]

WORDS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), min_size=1, max_size=20)
INPUTS = st.sampled_from(
    ["{}", '{"n":100000000000000000000000000001,"m":1.10}', '{"a":{"z":[1.0,null],"b":"caf\\u00e9"}}']
).map(lambda text: msgspec.Raw(text.encode()))
NAMES = st.sampled_from(["ls", "read_file", "a.b", "größe"])
TEXTS = WORDS.map(text_block)
SOURCES = st.sampled_from(
    [{"type": "base64", "media_type": "image/png", "data": "iVBO"}, {"type": "url", "url": "https://example.org/a"}]
)
PICTURES = SOURCES.map(lambda source: Block.make("image", source=source))
UNKNOWN = st.sampled_from(['{"type":"hologram","data":{"x":1.50}}', '{"type":"refusal","refusal":"no"}']).map(Block)
TOOLS = st.lists(
    st.builds(ToolSpec, NAMES, st.text(max_size=5, alphabet="abc"), INPUTS.map(lambda raw: bytes(raw).decode())),
    max_size=3,
    unique_by=lambda tool: tool.name,
).map(tuple)
CHOICES = st.sampled_from([{"type": "auto"}, {"type": "any"}, {"type": "none"}, {"type": "tool", "name": "ls"}])


def user(blocks: Iterable[Block]) -> ImportedMessage:
    return ImportedMessage(MessageRole.USER, tuple(blocks))


def assistant(blocks: Iterable[Block], model: str | None = None) -> ImportedMessage:
    return ImportedMessage(MessageRole.ASSISTANT, tuple(blocks), model)


def result(id: str, content: Any) -> ImportedMessage:
    return user([Block.make("tool_result", tool_use_id=id, content=content)])


@st.composite
def histories(draw: st.DrawFn, *, parts: st.SearchStrategy[Block], plain: bool = False) -> tuple[ImportedMessage, ...]:
    """Rounds of a question, and an answer: text, or calls whose results follow one by one.

    `plain` leaves one text to a message and text apart from calls.
    """
    made: list[ImportedMessage] = []
    count = 0
    for _ in range(draw(st.integers(0, 4))):
        made.append(user([draw(TEXTS)] if plain else draw(st.lists(parts, min_size=1, max_size=3))))
        said = [draw(TEXTS)] if draw(st.booleans()) else []
        calls = []
        for _ in range(draw(st.integers(0, 2))):
            count += 1
            calls.append(Block.make("tool_use", id=f"call_{count}", name=draw(NAMES), input=draw(INPUTS)))
        answers = [blocks for blocks in ([said, calls] if plain else [said + calls]) if blocks]
        made += [assistant(blocks) for blocks in answers]
        for call in calls:
            lists = st.lists(TEXTS, min_size=1, max_size=2).map(lambda bs: [msgspec.Raw(b.json.encode()) for b in bs])
            content: Any = draw(WORDS if plain else WORDS | lists)
            made.append(result(call.view.id or "", content))
    return tuple(made)


@st.composite
def agents(draw: st.DrawFn, provider: str, params: Iterable[str]) -> ImportedAgent:
    values: dict[str, st.SearchStrategy[Any]] = {
        "temperature": st.sampled_from([0, 0.5, 1.0]),
        "top_k": st.integers(1, 9),
        "stop": st.lists(st.sampled_from(["END", "\n"]), min_size=1, max_size=2),
        "seed": st.integers(0, 9),
        "parallel_tool_calls": st.booleans(),
        "reasoning_effort": st.sampled_from(["low", "high"]),
    }
    taken = {name: draw(values[name]) for name in params if draw(st.booleans())}
    if draw(st.booleans()):
        taken["tool_choice"] = draw(CHOICES)
    elif provider == "anthropic":
        taken.pop("parallel_tool_calls", None)  # has no place there but in a choice
    texts = draw(st.lists(WORDS, max_size=3))
    names = ["agent", "system-2", "system-3"]
    return ImportedAgent(
        model=draw(st.sampled_from([None, f"{provider}/some-model"])),
        system=tuple(SystemBlock(name, text) for name, text in zip(names, texts, strict=False)),
        tools=draw(TOOLS),
        params=taken,
        max_output_tokens=draw(st.none() | st.integers(1, 9999)),
    )


def assert_same(written: str, format: Format, agent: ImportedAgent, history: tuple[ImportedMessage, ...]) -> None:
    file = read(written, format)
    assert {**vars_of(file.agent), "flags": ()} == vars_of(agent)
    assert tuple(file.only.messages) == history


def vars_of(agent: ImportedAgent) -> dict[str, Any]:
    return {name: getattr(agent, name) for name in agent.__slots__}


THINKING = st.sampled_from(['{"type":"thinking","thinking":"hm","signature":"s"}']).map(Block)


@given(
    agent=agents("anthropic", ["temperature", "top_k", "stop", "parallel_tool_calls"]),
    history=histories(parts=TEXTS | PICTURES | UNKNOWN | THINKING),
)
def test_anthropic(agent: ImportedAgent, history: tuple[ImportedMessage, ...]) -> None:
    """An Anthropic request holds everything but who wrote a message and when."""
    assert_same(anthropic.write(agent, history), Format.ANTHROPIC, agent, history)


@given(
    agent=agents("openai", ["temperature", "stop", "seed", "parallel_tool_calls", "reasoning_effort"]),
    history=histories(parts=TEXTS | PICTURES | UNKNOWN),
)
def test_openai_chat(agent: ImportedAgent, history: tuple[ImportedMessage, ...]) -> None:
    """A Chat request holds text, pictures, calls, results, and parts that nobody knows."""
    assert_same(openai_chat.write(agent, history), Format.OPENAI_CHAT, agent, history)


@given(
    agent=agents("openai", ["temperature", "parallel_tool_calls", "reasoning_effort"]),
    history=histories(parts=TEXTS | PICTURES),
)
def test_openai_responses(agent: ImportedAgent, history: tuple[ImportedMessage, ...]) -> None:
    """A Responses request holds text, pictures, calls and results."""
    assert_same(openai_responses.write(agent, history), Format.OPENAI_RESPONSES, agent, history)


@given(texts=st.lists(WORDS, max_size=1), tools=TOOLS, history=histories(parts=TEXTS, plain=True))
def test_sharegpt(texts: list[str], tools: tuple[ToolSpec, ...], history: tuple[ImportedMessage, ...]) -> None:
    """ShareGPT holds one system prompt, tools, texts, and calls that are answered in order."""
    agent = ImportedAgent(system=tuple(SystemBlock("agent", text) for text in texts), tools=tools)

    assert_same(sharegpt.write(agent, history), Format.SHAREGPT, agent, history)


@given(
    texts=st.lists(WORDS, max_size=2),
    model=st.sampled_from([None, "anthropic/claude-x", "openai/gpt-5", "offline/extract"]),
    history=histories(parts=TEXTS | PICTURES | THINKING),
)
def test_langchain(texts: list[str], model: str | None, history: tuple[ImportedMessage, ...]) -> None:
    """LangChain holds messages alone, with the model that wrote them."""
    names = ["agent", "system-2"]
    written = tuple(assistant(each.content, model) if each.role is MessageRole.ASSISTANT else each for each in history)
    speaks = any(each.role is MessageRole.ASSISTANT for each in history)
    agent = ImportedAgent(
        model=model if speaks else None,
        system=tuple(SystemBlock(name, text) for name, text in zip(names, texts, strict=False)),
    )

    assert_same(langchain.write(agent, written), Format.LANGCHAIN, agent, written)


@pytest.mark.parametrize("write", [anthropic.write, openai_chat.write, openai_responses.write, langchain.write])
def test_a_tool_of_its_provider_is_written_as_it_came(write: Write) -> None:
    """A server tool goes out byte for byte; LangChain's messages have no tools."""
    definition = '{"type":"web_search","max":1.0}'

    written = write(ImportedAgent(tools=(ToolSpec("web_search", definition=definition),)), ())

    assert (definition in written) is (write is not langchain.write)
