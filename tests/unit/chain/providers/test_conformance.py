"""Bodies against the official SDKs' own request types: what is written is what the APIs' makers call a request."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterable
from typing import Any

from anthropic.types import MessageCountTokensParams
from anthropic.types.message_create_params import MessageCreateParamsNonStreaming
from hypothesis import HealthCheck, given, settings
from openai.types.chat.completion_create_params import CompletionCreateParamsNonStreaming
from pydantic import TypeAdapter

from hango.chain.providers.anthropic import COUNTED_KEYS
from hango.chain.providers.openai_compatible import CALL_ID
from hango.chain.providers.wire import SAMPLING
from hango.messages import Request
from tests.unit.chain.providers.making import (
    ANTHROPIC,
    COMPATIBLE,
    OPENAI,
    requests,
    sent,
)

MESSAGES: TypeAdapter[Any] = TypeAdapter(MessageCreateParamsNonStreaming)
COUNT: TypeAdapter[Any] = TypeAdapter(MessageCountTokensParams)
CHAT: TypeAdapter[Any] = TypeAdapter(CompletionCreateParamsNonStreaming)

NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}", re.ASCII)
many = settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow])
some = settings(many, max_examples=25)


def read(value: Any) -> Any:
    """A validated value as plain JSON: the SDKs' iterables are validated only while they are read."""
    if isinstance(value, dict):
        return {key: read(item) for key, item in value.items()}
    if isinstance(value, str) or not isinstance(value, Iterable):
        return value
    return [read(item) for item in value]


@many
@given(requests())
def test_anthropic_bodies_are_what_the_sdk_calls_a_request(made: Request) -> None:
    """Every body passes the SDK's types unchanged: no key it does not know, no value of another type."""
    body = sent(ANTHROPIC, made)
    # The API takes these of the models that sample; the SDK has them no more as keys of their own since 1.0.
    known = {key: value for key, value in body.items() if key not in SAMPLING}

    assert read(MESSAGES.validate_python(body)) == known


@many
@given(requests())
def test_anthropic_count_bodies_are_what_the_sdk_calls_one(made: Request) -> None:
    """What goes to the token counter passes the SDK's types unchanged."""
    body = {key: value for key, value in sent(ANTHROPIC, made).items() if key in COUNTED_KEYS}

    assert read(COUNT.validate_python(body)) == body


@many
@given(requests())
def test_openai_bodies_are_what_the_sdk_calls_a_request(made: Request) -> None:
    """Every body for the public API passes the SDK's types unchanged."""
    body = sent(OPENAI, made)

    assert read(CHAT.validate_python(body)) == body


@many
@given(requests())
def test_compatible_servers_get_the_same_but_for_two_keys(made: Request) -> None:
    """A compatible server gets `max_tokens`, and `top_k` where it is set; all else is as for the public API."""
    public, compatible = sent(OPENAI, made), sent(COMPATIBLE, made)

    assert compatible.pop("max_tokens") == public.pop("max_completion_tokens")
    assert compatible.pop("top_k", None) == made.params.get("top_k")
    assert compatible == public


@some
@given(requests())
def test_names_and_ids_are_legal_and_one_to_one(made: Request) -> None:
    """Tool names and call ids match what providers take, no two tools become one, no two calls share an id."""
    body = sent(ANTHROPIC, made)
    blocks = [block for message in body["messages"] for block in message["content"]]
    called = [block["id"] for block in blocks if block["type"] == "tool_use"]
    tools = [tool["name"] for tool in body.get("tools", [])]

    assert len(set(tools)) == len({tool.name for tool in made.tools})
    assert len(set(called)) == len(called)
    assert called == [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"]
    assert all(NAME.fullmatch(name) for name in [*tools, *called])


@some
@given(requests())
def test_openai_ids_are_short_and_one_for_one(made: Request) -> None:
    """The public API takes ids of at most 40 characters; no two calls share one."""
    called = [call["id"] for message in sent(OPENAI, made)["messages"] for call in message.get("tool_calls", [])]

    assert all(CALL_ID.fullmatch(id) for id in called)
    assert len(set(called)) == len(called)


@some
@given(requests())
def test_cache_marks_stand_where_the_request_says_and_nowhere_else(made: Request) -> None:
    """Marks that came with the blocks are taken off; a key of that name in a call's arguments is the caller's own."""
    body = sent(ANTHROPIC, made)
    for message in body["messages"]:
        for block in message["content"]:
            block.pop("input", None)

    ours = sum(block.marked for block in made.system) + (made.mark_last_tool and bool(made.tools))
    assert json.dumps(body).count('"cache_control": {"type": "ephemeral"') == ours


@some
@given(requests())
def test_openai_calls_are_answered_right_after(made: Request) -> None:
    """Every tool call is followed by its results, before any other message."""
    messages = sent(OPENAI, made)["messages"]
    for at, message in enumerate(messages):
        called = [one["id"] for one in message.get("tool_calls", [])]
        following = messages[at + 1 : at + 1 + len(called)]

        assert [(one["role"], one.get("tool_call_id")) for one in following] == [("tool", id) for id in called]


def test_two_processes_give_the_same_bytes() -> None:
    """The same state gives the same bytes in another process, whatever the seed of its hashes."""
    script = (
        "import hashlib\n"
        "from tests.unit.chain.providers import making\n"
        "for one in (making.ANTHROPIC, making.OPENAI, making.COMPATIBLE, making.OFFLINE):\n"
        "    print(hashlib.sha256(one.body(making.LARGE)).hexdigest())\n"
    )
    printed = [
        subprocess.run(
            [sys.executable, "-c", script],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    ]

    assert printed[0] == printed[1]
    assert len(set(printed[0].split())) == 4
