"""The strict reader of Chat Completions' bodies: one broken example a rule, and good bodies that it lets through."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.wire import openai, reading
from tests.wire.openai import faults
from tests.wire.reading import Takes, rule_of

HI = {"role": "user", "content": "Words."}
YES = {"role": "assistant", "content": "Words."}
SYSTEM = {"role": "system", "content": "You help."}
TEXT = {"type": "text", "text": "Words."}
PICTURE = {"type": "image_url", "image_url": {"url": "https://pictures.example/a.png"}}


def call(id: str = "c1", name: str = "ls", arguments: str = "{}") -> dict[str, Any]:
    return {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}


def calls(*made: dict[str, Any]) -> dict[str, Any]:
    return {"role": "assistant", "content": None, "tool_calls": list(made)}


def result(id: str = "c1", content: Any = "bolts") -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": id, "content": content}


def file(**members: str) -> dict[str, Any]:
    return {"type": "file", "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,JVBE"} | members}


def said(role: str, content: Any) -> dict[str, Any]:
    return {"role": role, "content": content}


def tool(**members: Any) -> dict[str, Any]:
    function = {"name": "ls", "parameters": {"type": "object", "properties": {}}}
    return {"type": "function", "function": function | members}


def schema(**members: Any) -> dict[str, Any]:
    return tool(parameters={"type": "object"} | members)


TOOL = tool()


def body(*messages: Any, **members: Any) -> bytes:
    made = {"model": "m", "tools": [TOOL], "messages": list(messages) or [HI]} | members
    return json.dumps({key: value for key, value in made.items() if value is not None}).encode()


def rules(written: bytes) -> set[str]:
    return {rule_of(fault) for fault in faults(written)}


@pytest.mark.parametrize(
    ("messages", "rule"),
    [
        ([SYSTEM, YES, HI], reading.NOT_USER_FIRST),
        ([SYSTEM], reading.NOT_USER_FIRST),
        ([HI, YES], reading.NOT_USER_LAST),
        ([said("critic", "No.")], reading.BAD_ROLE),
        ([HI | {"tool_call_id": "c1"}], openai.STRAY_KEY),
        ([HI, said("assistant", None), HI], reading.EMPTY_CONTENT),
        ([said("user", [])], reading.EMPTY_CONTENT),
        ([said("user", "")], reading.BLANK_TEXT),
        ([said("system", " "), HI], reading.BLANK_TEXT),
        ([said("user", [TEXT, {"type": "text", "text": "\u00a0"}])], reading.BLANK_TEXT),
        ([HI, calls(call()) | {"content": ""}, result()], reading.BLANK_TEXT),
        ([HI, said("assistant", [PICTURE]), HI], openai.BAD_PART),
        ([said("user", [{"type": "thinking", "thinking": "Hm."}])], openai.BAD_PART),
        ([HI, calls(call()), result(content=[PICTURE])], openai.BAD_PART),
        ([said("user", [{"type": "image_url", "image_url": {"url": ""}}])], openai.BAD_ADDRESS),
        ([said("user", [file(file_data="data:a/b;base64,")])], openai.BAD_ADDRESS),
        ([said("user", [file(filename="")])], openai.BAD_ADDRESS),
        ([HI, {"role": "assistant", "content": "Hm.", "tool_calls": []}, HI], openai.EMPTY_CALLS),
        ([HI, calls(call() | {"type": "custom"}), result()], openai.BAD_CALL),
        ([HI, calls(call("c.1")), result("c.1")], reading.BAD_ID),
        ([HI, calls(call("c" * 41)), result("c" * 41)], reading.BAD_ID),
        ([HI, calls(call()), result(), calls(call()), result()], reading.DOUBLED_ID),
        ([HI, calls(call(name="l.s")), result()], reading.BAD_NAME),
        ([HI, calls(call(arguments="")), result()], openai.BAD_ARGUMENTS),
        ([HI, calls(call(arguments="[1]")), result()], openai.BAD_ARGUMENTS),
        ([HI, calls(call(), call("c2")), result()], reading.NO_RESULT),
        ([HI, calls(call()), HI, result()], reading.NO_CALL),
        ([HI, result()], reading.NO_CALL),
        ([HI, calls(call()), result(), result()], reading.DOUBLED_RESULT),
    ],
)  # fmt: skip
def test_each_rule_for_messages_finds_its_fault(messages: list[Any], rule: str) -> None:
    """One broken example a rule."""
    assert rule in rules(body(*messages))


@pytest.mark.parametrize(
    ("members", "rule"),
    [
        ({"messages": []}, reading.NO_MESSAGES),
        ({"tools": []}, reading.NO_TOOLS),
        ({"tools": [tool(name=f"t{n}") for n in range(129)]}, openai.TOO_MANY_TOOLS),
        ({"tools": [tool(name="a.b")]}, reading.BAD_NAME),
        ({"tools": [TOOL, TOOL]}, reading.DOUBLED_NAME),
        ({"tools": [tool(parameters={"type": "array", "items": {}})]}, reading.BAD_SCHEMA),
        *(({"tools": [schema(**{key: []})]}, reading.BAD_SCHEMA) for key in (*reading.COMBINING, "enum", "not")),
        ({"tools": [schema(properties={"n": {"type": "array"}})]}, reading.BAD_SCHEMA),
        ({"tools": [schema(properties={"n": {"type": "object", "properties": {"m": {"type": ["array", "null"]}}}})]},
         reading.BAD_SCHEMA),
        ({"tools": None, "tool_choice": "auto"}, reading.CHOICE_WITHOUT_TOOLS),
        ({"tools": None, "parallel_tool_calls": True}, openai.PARALLEL_WITHOUT_TOOLS),
        ({"tool_choice": {"type": "function", "function": {"name": "rm"}}}, reading.CHOICE_NOT_SENT),
    ],
)  # fmt: skip
def test_each_rule_for_the_rest_finds_its_fault(members: dict[str, Any], rule: str) -> None:
    """One broken example a rule."""
    assert rule in rules(body(**members))


@pytest.mark.parametrize(
    "messages",
    [
        [HI],
        [SYSTEM, HI, SYSTEM],
        [said("system", [TEXT, TEXT]), said("user", [TEXT, PICTURE, file()])],
        [HI, calls(call(), call("c2")), result("c2", ""), result(), HI],
        [HI, calls(call()) | {"content": "I look."}, result(content=[TEXT, TEXT]), said("assistant", [TEXT]), HI],
    ],
)
def test_good_histories_pass(messages: list[Any]) -> None:
    """Parallel calls with empty results, parts of every type, system messages in any place."""
    assert faults(body(*messages)) == []


def test_a_good_body_passes() -> None:
    """Tools of either type, a choice among them, and a prefill where a server takes one."""
    grammar = {"type": "custom", "custom": {"name": "grammar"}}
    good = body(
        HI,
        YES,
        tools=[schema(properties={"n": {"type": "array", "items": {}}}), grammar],
        tool_choice={"type": "custom", "custom": {"name": "grammar"}},
        parallel_tool_calls=False,
    )

    assert faults(good, Takes(prefill=True)) == []
