"""Blocks that a provider refuses where they stand: what of them is not sent, or in another form, and what is listed."""

from __future__ import annotations

import json
from typing import Any

import pytest

from hango.agent_definition import AgentDefinition
from hango.errors import Reason
from hango.messages import Message
from tests.histories import OWN_MODEL, said
from tests.wire.worlds import World, next_call

TEXT = {"type": "text", "text": "Words."}
THOUGHT = {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"}
SEARCH = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}}
FOUND = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []}
PICTURE = {"type": "image", "source": {"type": "url", "url": "https://pictures.example/a.png"}}
NOTHING: tuple[dict[str, Any], ...] = (
    {"type": "image"},
    {"type": "image", "source": {"type": "url", "url": ""}},
    {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": ""}},
    {"type": "image", "source": {"type": "file"}},
    {"type": "document", "title": "Empty", "source": {"type": "text", "media_type": "text/plain", "data": " \n"}},
    {"type": "document", "source": {"type": "content", "content": []}},
    {"type": "document", "source": {"type": "content", "content": " "}},
    {"type": "document", "source": {"type": "content", "content": [{"type": "text", "text": ""}]}},
)

Seen = tuple[list[list[str]], list[tuple[Reason, str | None]]]


async def seen(*messages: Message, model: str = OWN_MODEL) -> Seen:
    """The types of the blocks of each message on the wire, and what is listed."""
    call = await next_call(World(AgentDefinition(model, builtin=frozenset()), messages))
    assert call.faults() == []
    sent = [[block["type"] for block in message["content"]] for message in json.loads(call.body)["messages"]]
    return sent, [(one.reason, one.part) for one in call.draft.problems]


async def test_thinking_does_not_end_a_message() -> None:
    """Thinking that nothing follows is listed and not sent: the provider refuses a message that ends with it."""
    messages = (
        said("user", "Hi."),
        said("assistant", [TEXT, THOUGHT]),
        said("assistant", [THOUGHT]),
        said("user", "So?"),
    )

    assert await seen(*messages) == (
        [["text"], ["text"], ["text"]],
        [(Reason.BLOCK_NOT_TAKEN, "message:2"), (Reason.BLOCK_NOT_TAKEN, "message:3")],
    )


async def test_thinking_does_not_stay_behind_a_call_that_is_not_sent() -> None:
    """Where a call is left out, so is the thinking that led to it."""
    messages = said("user", "Hi."), said("assistant", [THOUGHT, SEARCH]), said("user", "So?")

    assert await seen(*messages) == (
        [["text"], ["text"]],
        [(Reason.BLOCK_NOT_TAKEN, "message:2"), (Reason.UNPAIRED_TOOL_USE, "message:2")],
    )


@pytest.mark.parametrize(
    ("last", "listed"),
    [
        ([TEXT], []),
        ([THOUGHT, TEXT], [(Reason.ENDS_WITH_ASSISTANT, "message:2")]),
        ([THOUGHT, SEARCH], []),
    ],
)
async def test_words_with_thinking_are_no_prefill(last: list[dict[str, Any]], listed: list[tuple[Reason, str]]) -> None:
    """A model goes on from words, and from a turn that it paused; not from words that thinking led to."""
    sent, found = await seen(said("user", "Hi."), said("assistant", last))

    assert (sent[1], found) == ([block["type"] for block in last], listed)


@pytest.mark.parametrize("block", [PICTURE, {"type": "document", "source": PICTURE["source"]}])
async def test_a_picture_of_the_assistant_is_not_sent(block: dict[str, Any]) -> None:
    """Anthropic takes pictures and documents of the user only; other providers get words for them."""
    messages = said("user", "Draw."), said("assistant", [TEXT, block]), said("user", [block])

    assert await seen(*messages) == ([["text"], ["text"], [block["type"]]], [(Reason.BLOCK_NOT_TAKEN, "message:2")])


@pytest.mark.parametrize("block", NOTHING)
@pytest.mark.parametrize("model", [OWN_MODEL, "openai/gpt-4o"])
async def test_a_picture_or_document_of_nothing_is_not_sent(block: dict[str, Any], model: str) -> None:
    """A picture or document that holds nothing is listed like an empty text, and not sent."""
    call = await next_call(World(AgentDefinition(model), (said("user", "Hi."), said("user", [block]))))

    assert call.faults() == []
    assert [(one.reason, one.part) for one in call.draft.problems] == [(Reason.EMPTY_TEXT, "message:2")]
    assert "document" not in call.body.decode()
    assert "image" not in call.body.decode()


async def test_a_providers_result_belongs_to_its_turn() -> None:
    """Words of the user end the turn of a provider's call: a result after them is no answer to it."""
    messages = said("user", "Hi."), said("assistant", [SEARCH]), said("user", "Wait."), said("assistant", [FOUND, TEXT])

    assert await seen(*messages, said("user", "So?")) == (
        [["text"], ["text"], ["text"], ["text"]],
        [(Reason.UNPAIRED_TOOL_USE, "message:2"), (Reason.UNPAIRED_TOOL_RESULT, "message:4")],
    )


async def test_results_of_the_client_do_not_end_a_providers_turn() -> None:
    """Code that a provider runs may wait for results of the client."""
    use = {"type": "tool_use", "id": "c1", "name": "ls", "input": {}}
    answer = {"type": "tool_result", "tool_use_id": "c1", "content": "bolts"}
    messages = said("user", "Hi."), said("assistant", [SEARCH, use]), said("user", [answer])

    assert await seen(*messages, said("assistant", [FOUND, TEXT]), said("user", "So?")) == (
        [["text"], ["server_tool_use", "tool_use"], ["tool_result"], ["web_search_tool_result", "text"], ["text"]],
        [],
    )


async def test_two_calls_of_one_id_keep_their_results_apart() -> None:
    """A provider's results answer the nearest earlier call of their id without one, on the wire as in the rules."""
    messages = said("user", "Hi."), said("assistant", [SEARCH]), said("assistant", [SEARCH]), said("assistant", [FOUND])
    call = await next_call(
        World(AgentDefinition(OWN_MODEL), (*messages, said("assistant", [FOUND, TEXT]), said("user", "So?")))
    )

    sent = json.loads(call.body)["messages"][1:-1]
    ids = [block.get("id") or block.get("tool_use_id") for message in sent for block in message["content"][:1]]
    assert (call.faults(), ids) == ([], ["srvtoolu_1", "srvtoolu_1_2", "srvtoolu_1_2", "srvtoolu_1"])


async def test_without_tools_a_providers_blocks_are_text_too() -> None:
    """Where calls and results need tools, those of a provider's own tools are written as text like all others: a
    client's result as text would cut their turn in two."""
    use = {"type": "tool_use", "id": "c1", "name": "ls", "input": {}}
    answer = {"type": "tool_result", "tool_use_id": "c1", "content": "bolts"}
    messages = said("user", "Hi."), said("assistant", [SEARCH, use]), said("user", [answer]), said("assistant", [FOUND])
    more = said("assistant", [TEXT]), said("user", "So?")

    sent, found = await seen(*messages, *more, model="anthropic/somebody-s-model")
    assert (sent, found) == (
        [["text"], ["text", "text"], ["text"], ["text"], ["text"], ["text"]],
        [(Reason.TOOL_BLOCKS_AS_TEXT, None)],
    )
    assert (await seen(said("user", "Hi."), said("assistant", [SEARCH, FOUND, TEXT]), model="anthropic/x"))[1] == [
        (Reason.ENDS_WITH_ASSISTANT, "message:2"),
        (Reason.TOOL_BLOCKS_AS_TEXT, None),
    ]


async def test_a_mark_is_taken_off_thinking() -> None:
    """The provider refuses a mark on thinking; the rest of the block goes out to the byte as it was."""
    thought = THOUGHT | {"thinking": " cafe\u0301 ", "cache_control": {"type": "ephemeral"}}
    messages = said("user", "Hi."), said("assistant", [thought, TEXT]), said("user", "So?")
    call = await next_call(World(AgentDefinition(OWN_MODEL), messages))

    assert call.faults() == []
    assert '{"type":"thinking","thinking":" cafe\\u0301 ","signature":"c2ln"}' in call.body.decode()
