"""The strict reader of Anthropic's bodies: one broken example a rule, and good bodies that it lets through."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.wire import anthropic, reading
from tests.wire.anthropic import faults
from tests.wire.reading import Takes, rule_of

TEXT = {"type": "text", "text": "Words."}
BLANK = {"type": "text", "text": ""}
HI = {"role": "user", "content": [TEXT]}
YES = {"role": "assistant", "content": [TEXT]}
CALL = {"type": "tool_use", "id": "c1", "name": "ls", "input": {}}
RESULT = {"type": "tool_result", "tool_use_id": "c1", "content": "bolts"}
SEARCH = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}}
FOUND = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []}
PICTURE = {"type": "image", "source": {"type": "url", "url": "https://pictures.example/a.png"}}
THOUGHT = {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"}
SIGNED = frozenset({json.dumps(THOUGHT, separators=(",", ":"))})
TOOL = {"name": "ls", "input_schema": {"type": "object"}}
ALL = Takes(prefill=True, system_in_history=True, signed=SIGNED)


def mark(block: dict[str, Any], ttl: str | None = None) -> dict[str, Any]:
    return block | {"cache_control": {"type": "ephemeral"} | ({"ttl": ttl} if ttl else {})}


def user(*blocks: Any) -> dict[str, Any]:
    return {"role": "user", "content": list(blocks)}


def assistant(*blocks: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": list(blocks)}


def system(*blocks: Any) -> dict[str, Any]:
    return {"role": "system", "content": list(blocks)}


def body(*messages: Any, **members: Any) -> bytes:
    made = {"model": "m", "max_tokens": 9, "tools": [TOOL], "messages": list(messages) or [HI]} | members
    return json.dumps({key: value for key, value in made.items() if value is not None}, separators=(",", ":")).encode()


def rules(written: bytes, takes: Takes = ALL) -> set[str]:
    return {rule_of(fault) for fault in faults(written, takes)}


@pytest.mark.parametrize(
    ("messages", "rule"),
    [
        ([YES, HI], reading.NOT_USER_FIRST),
        ([{"role": "tool", "content": [TEXT]}, HI], reading.BAD_ROLE),
        ([HI, assistant(), HI], reading.EMPTY_CONTENT),
        ([HI, {"role": "assistant", "content": []}], reading.EMPTY_CONTENT),
        ([user(TEXT, BLANK)], reading.BLANK_TEXT),
        ([{"role": "user", "content": " \n\u00a0"}], reading.BLANK_TEXT),
        ([HI, assistant({"type": "text", "text": "So "})], anthropic.SPACE_AT_END),
        ([HI, assistant(CALL | {"id": "c.1"}), user(RESULT | {"tool_use_id": "c.1"})], reading.BAD_ID),
        ([HI, assistant(SEARCH | {"id": "c1"}, FOUND | {"tool_use_id": "c1"}, TEXT), HI], reading.BAD_ID),
        ([HI, assistant(CALL), user(RESULT), assistant(CALL), user(RESULT)], reading.DOUBLED_ID),
        ([HI, assistant(CALL | {"name": "l.s"}), user(RESULT)], reading.BAD_NAME),
        ([HI, assistant(CALL | {"input": "{}"}), user(RESULT)], anthropic.BAD_INPUT),
        ([HI, assistant(CALL)], reading.NO_RESULT),
        ([HI, assistant(CALL), HI], reading.NO_RESULT),
        ([HI, assistant(CALL), YES, user(RESULT)], reading.NO_CALL),
        ([user(TEXT), YES, user(RESULT)], reading.NO_CALL),
        ([HI, assistant(CALL), user(RESULT, RESULT)], reading.DOUBLED_RESULT),
        ([HI, assistant(CALL), user(TEXT, RESULT)], anthropic.NOT_FIRST),
        ([HI, assistant(PICTURE), HI], anthropic.WRONG_ROLE),
        ([user(TEXT, THOUGHT)], anthropic.WRONG_ROLE),
        ([HI, assistant(SEARCH, TEXT), HI], anthropic.OPEN_SERVER_CALL),
        ([HI, assistant(SEARCH), HI, assistant(FOUND, TEXT), HI], anthropic.OPEN_SERVER_CALL),
        ([HI, assistant(FOUND, TEXT), HI], anthropic.LOST_SERVER_RESULT),
        ([HI, assistant(SEARCH, FOUND | {"type": "mcp_tool_result"}), HI], anthropic.LOST_SERVER_RESULT),
        ([HI, assistant(TEXT, THOUGHT), HI], anthropic.THINKING_LAST),
        ([HI, assistant(THOUGHT, TEXT)], anthropic.THINKING_IN_PREFILL),
        ([HI, assistant(THOUGHT | {"thinking": "Hm"}, TEXT), HI], anthropic.UNSIGNED_THINKING),
        ([HI, assistant({"type": "redacted_thinking", "data": "RW5j"}, TEXT), HI], anthropic.UNSIGNED_THINKING),
        ([HI, assistant(mark(THOUGHT), TEXT), HI], anthropic.MARK_ON_THINKING),
        ([system(TEXT), HI], anthropic.SYSTEM_REFUSED),
        ([HI, YES, system(TEXT), HI], anthropic.SYSTEM_REFUSED),
        ([HI, system(TEXT), HI], anthropic.SYSTEM_REFUSED),
        ([HI, system(PICTURE)], anthropic.SYSTEM_REFUSED),
        ([user(mark(BLANK))], anthropic.MARK_ON_EMPTY),
        ([user(*[mark(TEXT)] * 5)], anthropic.TOO_MANY_MARKS),
        ([user(mark(TEXT, "5m"), mark(TEXT, "1h"))], anthropic.GROWING_TTL),
        ([user(mark(TEXT, "1d"))], anthropic.BAD_TTL),
        ([HI, assistant(CALL), user(RESULT | {"content": [mark(BLANK)]})], anthropic.MARK_ON_EMPTY),
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
        ({"tools": [TOOL | {"name": "a.b"}]}, reading.BAD_NAME),
        ({"tools": [TOOL | {"name": "x" * 65}]}, reading.BAD_NAME),
        ({"tools": [TOOL, TOOL]}, reading.DOUBLED_NAME),
        ({"tools": [{"name": "a", "input_schema": {}}]}, reading.BAD_SCHEMA),
        ({"tools": [{"name": "a", "input_schema": {"type": "array"}}]}, reading.BAD_SCHEMA),
        *(
            ({"tools": [{"name": "a", "input_schema": {"type": "object", key: []}}]}, reading.BAD_SCHEMA)
            for key in reading.COMBINING
        ),
        ({"tools": [{"name": "a", "input_schema": {"type": "object", "properties": {"é": {}}}}]}, reading.BAD_SCHEMA),
        ({"tools": [{"name": "a"}]}, reading.BAD_SCHEMA),
        ({"tools": None, "tool_choice": {"type": "auto"}}, reading.CHOICE_WITHOUT_TOOLS),
        ({"tool_choice": {"type": "tool", "name": "rm"}}, reading.CHOICE_NOT_SENT),
        ({"system": []}, reading.EMPTY_CONTENT),
        ({"system": [{"type": "text", "text": "\u00a0"}]}, reading.BLANK_TEXT),
        ({"system": "  "}, reading.BLANK_TEXT),
        ({"tools": [mark(TOOL)], "system": [mark(TEXT, "1h")]}, anthropic.GROWING_TTL),
        ({"system": [mark({"type": "text", "text": ""})]}, anthropic.MARK_ON_EMPTY),
    ],
)
def test_each_rule_for_the_rest_finds_its_fault(members: dict[str, Any], rule: str) -> None:
    """One broken example a rule."""
    assert rule in rules(body(**members))


@pytest.mark.parametrize(
    ("messages", "takes", "rule"),
    [
        ([HI, YES], Takes(), reading.NOT_USER_LAST),
        ([HI, system(TEXT)], Takes(), anthropic.SYSTEM_REFUSED),
        ([HI, assistant(THOUGHT, TEXT), HI], Takes(), anthropic.UNSIGNED_THINKING),
    ],
)
def test_what_only_some_models_take(messages: list[Any], takes: Takes, rule: str) -> None:
    """A prefill, system messages in the history and thinking are taken by some models and refused by the others."""
    assert rules(body(*messages), takes) == {rule}
    assert rules(body(*messages)) - {anthropic.THINKING_IN_PREFILL} == set()


def test_tool_blocks_without_tools() -> None:
    """Some gateways refuse calls and results in a request without tools."""
    without = body(HI, assistant(CALL), user(RESULT), tools=None)

    assert rules(without, Takes(tools_required=True)) == {anthropic.TOOL_BLOCKS_ALONE}
    assert rules(without) == set()


@pytest.mark.parametrize(
    "messages",
    [
        [HI],
        [{"role": "user", "content": "Hi."}, {"role": "assistant", "content": "Yes"}],
        [HI, assistant(THOUGHT, TEXT, CALL, CALL | {"id": "c2"}), user(RESULT | {"tool_use_id": "c2"}, RESULT, TEXT)],
        [HI, assistant(SEARCH, FOUND, TEXT), YES, HI, HI],
        [HI, assistant(THOUGHT, SEARCH)],
        [HI, assistant(SEARCH, CALL), user(RESULT), assistant(FOUND, TEXT), HI],
        [HI, assistant(CALL), user(RESULT | {"content": []}), HI, system(TEXT), YES],
        [user(mark(TEXT, "1h"), mark(PICTURE)), YES, user(mark(TEXT)), system(TEXT)],
        [HI, assistant(CALL | {"input": {"cache_control": 1}}), user(RESULT | {"content": [PICTURE]})],
    ],
)
def test_good_histories_pass(messages: list[Any]) -> None:
    """Parallel calls, a provider's own tools, signed thinking, marks and system messages where they may stand."""
    assert faults(body(*messages), ALL) == []


def test_a_good_body_passes() -> None:
    """Tools, the provider's own among them, a choice and a mark on the last system block."""
    own = {"type": "web_search_20250305", "name": "web_search"}
    good = body(
        tools=[TOOL, mark(own, "1h")],
        tool_choice={"type": "tool", "name": "ls"},
        system=[TEXT, mark(TEXT)],
    )

    assert faults(good) == []
