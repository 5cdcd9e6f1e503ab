"""Anthropic bodies: one whole golden body, and each rule of the wire by itself."""

from __future__ import annotations

import json
from typing import Any

import pytest

from hango.chain.providers.wire import SYSTEM_MARK
from hango.messages import Block, SystemText, ToolSpec
from tests.unit.chain.providers.making import (
    ANTHROPIC,
    EPHEMERAL,
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
SEARCH = ToolSpec("web_search", definition='{"type":"web_search_20250305","name":"web_search","max_uses":3}')


def messages(*given: Any, **changes: Any) -> list[tuple[str, list[dict[str, Any]]]]:
    """Role and blocks of each message of a body; a tool is sent, so that tool blocks stay blocks."""
    body = sent(ANTHROPIC, request(*given, **{"tools": (READ_FILE,)} | changes))
    return [(message["role"], message["content"]) for message in body["messages"]]


def test_a_whole_body() -> None:
    """System blocks with the mark, tools as they came, params in Anthropic's words, calls and results."""
    made = request(
        user("Weigh it."),
        assistant(block(type="thinking", thinking="Use the scale.", signature="c2ln"), call("c1", path="a")),
        user(result("c1", "12 kg"), "Thanks."),
        system=(SystemText("You look after the stock list."), SystemText("Files are below /stock.", marked=True)),
        tools=(READ_FILE, SEARCH),
        max_output_tokens=1000,
        params={
            "temperature": 0.5,
            "stop": "END",
            "seed": 7,
            "tool_choice": "required",
            "parallel_tool_calls": False,
            "thinking": {"type": "enabled", "budget_tokens": 1024},
            "reasoning_effort": "low",
        },
        cache_ttl="1h",
    )

    assert ANTHROPIC.body(made).decode() == (
        '{"model":"claude-sonnet-4-5","max_tokens":1000,"temperature":0.5,"stop_sequences":["END"],'
        '"thinking":{"type":"enabled","budget_tokens":1024},"output_config":{"effort":"low"},'
        '"tools":[{"name":"read_file","description":"Reads one file.",'
        '"input_schema":{"type":"object","properties":{"path":{"type":"string"}}}},'
        '{"type":"web_search_20250305","name":"web_search","max_uses":3}],'
        '"tool_choice":{"type":"any","disable_parallel_tool_use":true},'
        '"system":[{"type":"text","text":"You look after the stock list."},'
        '{"type":"text","text":"Files are below /stock.","cache_control":{"type":"ephemeral","ttl":"1h"}}],'
        '"messages":[{"role":"user","content":[{"type":"text","text":"Weigh it."}]},'
        '{"role":"assistant","content":[{"type":"thinking","thinking":"Use the scale.","signature":"c2ln"},'
        '{"type":"tool_use","id":"c1","name":"read_file","input":{"path":"a"}}]},'
        '{"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","content":"12 kg"},'
        '{"type":"text","text":"Thanks."}]}]}'
    )


def test_nothing_of_the_system_leaves_no_key() -> None:
    """Without system blocks there is no system key, and without tools no key about tools."""
    made = request(
        params={"tool_choice": "auto", "parallel_tool_calls": True}, mark_last_tool=True, system=(SystemText(""),)
    )

    assert sent(ANTHROPIC, made) == {
        "model": "claude-sonnet-4-5",
        "max_tokens": 64,
        "messages": [{"role": "user", "content": [{"type": "text", "text": "Hi."}]}],
    }


def test_the_mark_stands_on_the_last_tool_when_no_system_block_is_sent() -> None:
    """The mark goes to the last tool; five minutes are the default and not written."""
    body = sent(ANTHROPIC, request(tools=(READ_FILE, SEARCH), mark_last_tool=True))

    assert [tool.get("cache_control") for tool in body["tools"]] == [None, EPHEMERAL]


def test_marks_that_came_with_blocks_are_taken_off() -> None:
    """`cache_control` in blocks, results, documents and tools goes; in a call's arguments it is the caller's own."""
    text = {"type": "text", "text": "A.", "cache_control": EPHEMERAL}
    source = {"type": "content", "content": [text]}
    marked_tool = ToolSpec(
        "web_search", definition=json.dumps(json.loads(str(SEARCH.definition)) | {"cache_control": EPHEMERAL})
    )
    body = sent(
        ANTHROPIC,
        request(
            user(block(**text), block(type="document", source=source)),
            assistant(call("c1", cache_control="mine")),
            user(block(type="tool_result", tool_use_id="c1", content=[text], cache_control=EPHEMERAL)),
            tools=(READ_FILE, marked_tool),
        ),
    )

    plain = {"type": "text", "text": "A."}
    assert [message["content"] for message in body["messages"]] == [
        [plain, {"type": "document", "source": {"type": "content", "content": [plain]}}],
        [{"type": "tool_use", "id": "c1", "name": "read_file", "input": {"cache_control": "mine"}}],
        [{"type": "tool_result", "tool_use_id": "c1", "content": [plain]}],
    ]
    assert body["tools"][1] == json.loads(str(SEARCH.definition))


def test_a_mark_whose_key_is_written_with_escapes_is_seen() -> None:
    """A mark cannot hide behind JSON escapes."""
    hidden = Block.of('{"type":"text","text":"A.","cache\\u005fcontrol":{"type":"ephemeral"}}')

    assert messages(user(hidden)) == [("user", [{"type": "text", "text": "A."}])]


def test_thinking_is_unchanged_to_the_byte() -> None:
    """Thinking keeps its escapes, its white space and its letters as they were signed."""
    thinking = '{"type":"thinking","thinking":"  caf\\u00e9 e\\u0301 \\n","signature":"c2ln"}'
    body = ANTHROPIC.body(request(user("Hi."), assistant(Block(thinking), "Yes."), user("Go on.")))

    assert thinking in body.decode()


def test_digits_and_unknown_blocks_go_out_as_they_came() -> None:
    """Numbers beyond 2^53, 1.10 and a block that nobody knows survive to the wire."""
    unknown = '{"type":"new_block","payload":{"n":123456789012345678901234567890,"x":1.10,"e":1E5}}'
    arguments = '{"n":90071992547409931,"x":0.10}'
    made = request(
        user(Block.of(unknown)),
        assistant(Block.of(f'{{"type":"tool_use","id":"c1","name":"read_file","input":{arguments}}}')),
        user(result("c1")),
        tools=(ToolSpec("read_file", input_schema='{ "type": "object", "maxProperties": 1.0 }'),),
    )

    body = ANTHROPIC.body(made).decode()

    assert unknown in body
    assert f'"input":{arguments}' in body
    assert '"input_schema":{"type":"object","maxProperties":1.0}' in body


def test_names_that_the_provider_refuses_are_cleaned_one_to_one() -> None:
    """Tool, call and tool_choice get the same cleaned name; names that are taken stay."""
    body = sent(
        ANTHROPIC,
        request(
            user("Hi."),
            assistant(call("c1", "a.b"), call("c2", "a_b"), call("c3", "gone/away")),
            user(result("c1"), result("c2"), result("c3")),
            tools=(ToolSpec("a.b"), ToolSpec("a_b"), ToolSpec("x" * 65)),
            params={"tool_choice": {"type": "tool", "name": "a.b"}},
        ),
    )

    tools = [tool["name"] for tool in body["tools"]]
    assert tools == ["a_b_2e7336dc", "a_b", "x" * 55 + "_" + tools[2][-8:]]
    assert [one["name"] for one in body["messages"][1]["content"]] == [*tools[:2], "gone_away_5e310264"]
    assert body["tool_choice"] == {"type": "tool", "name": "a_b_2e7336dc"}


def test_an_id_that_comes_back_in_every_turn_is_made_unique() -> None:
    """Ids such as call_0 come back in every turn; the API wants each once. Results follow their nearest call."""
    turns = [turn for _ in range(3) for turn in (assistant(call("call_0")), user(result("call_0")))]
    found = messages(user("Hi."), assistant(call("call_0_2")), user(result("call_0_2")), *turns)

    assert [(content[0].get("id"), content[0].get("tool_use_id")) for _, content in found[1:]] == [
        ("call_0_2", None),
        (None, "call_0_2"),
        ("call_0", None),
        (None, "call_0"),
        ("call_0_2_", None),
        (None, "call_0_2_"),
        ("call_0_3", None),
        (None, "call_0_3"),
    ]


def test_ids_of_other_providers_are_rewritten_for_call_and_result_alike() -> None:
    """Foreign ids are rewritten one-to-one; those of server tools get the form that the provider asks of them."""
    found = messages(
        user("Hi."),
        assistant(
            block(type="server_tool_use", id="srv:1", name="web_search", input={}),
            block(type="web_search_tool_result", tool_use_id="srv:1", content=[]),
            call("functions.read:0"),
        ),
        user(result("functions.read:0")),
    )

    server, answer, client = found[1][1]
    assert server["id"] == answer["tool_use_id"] == "srvtoolu_srv_1_c68eb015"
    assert client["id"] == found[2][1][0]["tool_use_id"]
    assert "." not in client["id"]


def test_a_result_follows_the_call_of_its_own_kind() -> None:
    """A client's call and a server tool's may share an id: each result keeps its own call."""
    found = messages(
        user("Hi."),
        assistant(
            call("x"),
            block(type="server_tool_use", id="x", name="web_search", input={}),
            block(type="web_search_tool_result", tool_use_id="x", content=[]),
        ),
        user(result("x")),
    )

    client, server, answer = found[1][1]
    assert (client["id"], server["id"], answer["tool_use_id"]) == ("x", "srvtoolu_x_2d711642", "srvtoolu_x_2d711642")
    assert found[2][1][0]["tool_use_id"] == "x"


@pytest.mark.parametrize(
    ("written", "on_the_wire"),
    [
        ('"plain words"', {"value": "plain words"}),
        ('"{\\"path\\":\\"a\\"}"', {"path": "a"}),
        ("[1]", {"value": [1]}),
        ('"{\\"n\\":NaN}"', {"value": '{"n":NaN}'}),
        ("null", {}),
    ],
)
def test_arguments_that_are_no_object_become_one(written: str, on_the_wire: dict[str, Any]) -> None:
    """A call whose input is no JSON object is sent with one that holds it."""
    odd = Block.of(f'{{"type":"tool_use","id":"c1","name":"read_file","input":{written}}}')

    assert messages(user("Hi."), assistant(odd), user(result("c1")))[1][1][0]["input"] == on_the_wire


@pytest.mark.parametrize("type", ["server_tool_use", "mcp_tool_use"])
def test_a_provider_s_own_call_has_an_object_too(type: str) -> None:
    """The input of a server's or MCP call that is no JSON object, or is missing, is sent as one."""
    odd = [
        Block.of(f'{{"type":"{type}","id":"c{n}","name":"search"{rest}}}')
        for n, rest in enumerate(("", ',"input":[1]'))
    ]

    sent = messages(user("Hi."), assistant(*odd))[1][1]

    assert [block["input"] for block in sent] == [{}, {"value": [1]}]


@pytest.mark.parametrize(
    ("params", "choice"),
    [
        ({"tool_choice": {"type": "tool", "name": "gone"}}, {"type": "auto"}),
        (
            {"tool_choice": {"type": "function", "function": {"name": "read_file"}}},
            {"type": "tool", "name": "read_file"},
        ),
        (
            {"tool_choice": {"type": "any", "disable_parallel_tool_use": True}},
            {"type": "any", "disable_parallel_tool_use": True},
        ),
        ({"tool_choice": "none", "parallel_tool_calls": False}, {"type": "none"}),
        ({"parallel_tool_calls": False}, {"type": "auto", "disable_parallel_tool_use": True}),
        ({"parallel_tool_calls": True}, None),
        ({"tool_choice": {"type": "allowed_tools"}}, {"type": "auto"}),
    ],
)
def test_tool_choice_in_anthropics_words(params: dict[str, Any], choice: dict[str, Any] | None) -> None:
    """A `tool_choice` that names a tool that is not sent falls back to auto; the others are translated."""
    body = sent(ANTHROPIC, request(tools=(READ_FILE,), params=params))

    assert body.get("tool_choice") == choice


def test_params_that_the_model_does_not_take_are_not_sent() -> None:
    """Newer models refuse temperature, top_p and top_k; `seed` and an unknown effort are never taken."""
    params = {"temperature": 0, "top_p": 1, "top_k": 5, "seed": 1, "reasoning_effort": "minimal", "stop": []}

    assert sent(ANTHROPIC, request(model="claude-opus-5-5", params=params)).keys() == {
        "model",
        "max_tokens",
        "messages",
    }
    assert sent(ANTHROPIC, request(params=params)).keys() == {
        "model",
        "max_tokens",
        "messages",
        "temperature",
        "top_p",
        "top_k",
    }


def test_only_the_end_of_a_last_assistant_text_is_trimmed() -> None:
    """White space at the end of a prefill is refused, so it goes; every other space stays."""
    table = "Draw:\n|a |\n|b |   "

    assert messages(user(table), assistant("One.  \n"), user("On. "), assistant("Here it is:  \n")) == [
        ("user", [{"type": "text", "text": table}]),
        ("assistant", [{"type": "text", "text": "One.  \n"}]),
        ("user", [{"type": "text", "text": "On. "}]),
        ("assistant", [{"type": "text", "text": "Here it is:"}]),
    ]


def test_tool_blocks_without_tools_are_written_as_text_where_they_would_be_refused() -> None:
    """With all tools left out, a server that refuses tool blocks gets them as text that says what it is."""
    picture = block(type="image", source={"type": "base64", "media_type": "image/png", "data": PNG})
    history = (
        user("Weigh it."),
        assistant("Weighing.", call("c1", path="notes.txt")),
        user(result("c1", [{"type": "text", "text": "12 kg"}, json.loads(picture.json)]), "So?"),
        assistant(call("c2")),
        user(result("c2", "no such file", is_error=True)),
    )

    assert messages(*history, model="a-gateway-s-model", tools=()) == [
        ("user", [{"type": "text", "text": "Weigh it."}]),
        (
            "assistant",
            [
                {"type": "text", "text": "Weighing."},
                {"type": "text", "text": '[Call of the tool read_file]\n{"path":"notes.txt"}'},
            ],
        ),
        (
            "user",
            [
                {"type": "text", "text": "[Result of the tool]\n12 kg"},
                json.loads(picture.json),
                {"type": "text", "text": "So?"},
            ],
        ),
        ("assistant", [{"type": "text", "text": "[Call of the tool read_file]\n{}"}]),
        ("user", [{"type": "text", "text": "[Result of the tool, an error]\nno such file"}]),
    ]
    assert messages(*history, model="claude-opus-5", tools=()) == messages(*history, model="claude-opus-5")


def test_a_system_message_stays_one_where_the_model_takes_it() -> None:
    """`role: system` stays a message after a turn of the user; elsewhere it is a turn marked as such."""
    history = (user("Hi."), system("Be brief."), assistant("Yes."), system("Be kind."), user("So?"))
    marked = [{"type": "text", "text": SYSTEM_MARK + "Be kind."}]

    assert messages(*history, model="claude-opus-5")[1] == ("system", [{"type": "text", "text": "Be brief."}])
    assert messages(*history, model="claude-opus-5")[3] == ("user", marked)
    assert messages(*history)[1] == ("user", [{"type": "text", "text": SYSTEM_MARK + "Be brief."}])


def test_a_tool_that_only_another_provider_knows_is_not_sent() -> None:
    """A definition in the words of another API cannot go out; without it there are no tools."""
    foreign = ToolSpec("search", definition='{"type":"web_search"}')

    assert "tools" not in sent(ANTHROPIC, request(tools=(foreign,), params={"tool_choice": "auto"}))
