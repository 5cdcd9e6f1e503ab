"""Anthropic Messages requests, both ways. Blocks are hango's own words already: they stay byte for byte."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec

from hango import jsontext
from hango.chain.formats import agents, unwrap
from hango.chain.formats.gather import Conversation
from hango.chain.formats.reading import (
    blocks,
    decode,
    is_array,
    is_nothing,
    is_string,
    time_of,
    with_provider,
)
from hango.chain.formats.transcript import ImportedAgent, ImportedMessage
from hango.errors import Invalid, Reason
from hango.messages import MessageRole, ToolSpec, content_json

PROVIDER = "anthropic"
_ROLES = frozenset(role.value for role in MessageRole)
_CONTEXT = frozenset(
    {"model", "max_tokens", "system", "messages", "tools", "tool_choice", "title", "anthropic_version"}
)
_PARAMS = {
    "temperature": "temperature",
    "top_p": "top_p",
    "top_k": "top_k",
    "stop_sequences": "stop",
    "thinking": "thinking",
}


class _Request(msgspec.Struct):
    messages: list[msgspec.Raw]
    model: str | None = None
    max_tokens: int | None = None
    system: msgspec.Raw = msgspec.Raw(b"")
    tools: list[msgspec.Raw] | None = None
    tool_choice: dict[str, Any] | None = None
    title: str | None = None


class _Message(msgspec.Struct):
    role: str
    content: msgspec.Raw
    model: str | None = None
    created_at: Any = None


class _SystemBlock(msgspec.Struct):
    type: str
    text: str


class _ToolKind(msgspec.Struct):
    type: str | None = None
    input_schema: msgspec.Raw = msgspec.Raw(b"")


def read(body: bytes) -> list[Conversation]:
    """A request, the list of its messages, or a list of requests."""
    if unwrap.is_list_of(body, "messages"):
        return [each for raw in decode(body, list[msgspec.Raw]) for each in read(bytes(raw))]
    if is_array(body):
        return [Conversation(ImportedAgent(), messages(decode(body, list[msgspec.Raw]), ""))]
    body, at = unwrap.request(body, "messages")
    request = decode(body, _Request, at)
    members = decode(body, dict[str, msgspec.Raw], at)
    agent = agents.make_agent(
        model=with_provider(PROVIDER, request.model),
        system=_system(request.system, f"{at}/system"),
        tools=[_tool(raw, f"{at}/tools/{n}") for n, raw in enumerate(request.tools or ())],
        params=_params(members, request.tool_choice),
        max_output_tokens=request.max_tokens,
        not_taken=members.keys() - _CONTEXT - _PARAMS.keys() - agents.TRANSPORT,
    )
    return [Conversation(agent, messages(request.messages, f"{at}/messages"), request.title)]


def messages(raws: Sequence[msgspec.Raw], at: str) -> Iterator[ImportedMessage]:
    for n, raw in enumerate(raws):
        yield message(raw, f"{at}/{n}")


def message(raw: msgspec.Raw, at: str) -> ImportedMessage:
    """One message, its blocks as they came."""
    read = decode(raw, _Message, at)
    if read.role not in _ROLES:
        sentence = f"The role at '{at}/role' is none of user, assistant, system."
        raise Invalid.because(Reason.BAD_FIELD, sentence, pointer=f"{at}/role")
    return ImportedMessage(
        role=MessageRole(read.role),
        content=blocks(read.content, f"{at}/content"),
        model=with_provider(PROVIDER, read.model),
        created_at=time_of(read.created_at),
    )


def write(agent: ImportedAgent, history: Iterable[ImportedMessage]) -> str:
    """The request as JSON text: reading it gives the agent and the messages again."""
    params = dict(agent.params)
    parallel = params.pop("parallel_tool_calls", None)
    choice = params.pop("tool_choice", None)
    if parallel is not None:
        choice = {**(choice or {"type": "auto"}), "disable_parallel_tool_use": not parallel}
    body = {
        "model": agent.model and agent.model.removeprefix(f"{PROVIDER}/"),
        "max_tokens": agent.max_output_tokens,
        "system": [{"type": "text", "text": block.text} for block in agent.system] or None,
        "tools": [_tool_json(tool) for tool in agent.tools] or None,
        "tool_choice": choice,
        **{theirs: params.get(ours) for theirs, ours in _PARAMS.items()},
    }
    written = [
        {"role": message.role, "content": msgspec.Raw(content_json(message.content).encode())} for message in history
    ]
    return jsontext.dumps({key: value for key, value in body.items() if value is not None} | {"messages": written})


def _params(members: dict[str, msgspec.Raw], choice: dict[str, Any] | None) -> dict[str, Any]:
    params = {ours: msgspec.json.decode(members[theirs]) for theirs, ours in _PARAMS.items() if theirs in members}
    if choice is not None:
        choice = dict(choice)
        alone = choice.pop("disable_parallel_tool_use", None)
        params["tool_choice"] = choice
        params["parallel_tool_calls"] = None if alone is None else not alone
    return params


def _system(raw: msgspec.Raw, at: str) -> list[str]:
    if is_nothing(raw):
        return []
    if is_string(raw):
        return [decode(raw, str, at)]
    return [block.text for block in decode(raw, list[_SystemBlock], at)]


def _tool(raw: msgspec.Raw, at: str) -> ToolSpec:
    kind = decode(raw, _ToolKind, at)
    if kind.type in (None, "custom") or not is_nothing(kind.input_schema):
        return agents.function_tool(raw, at)
    return agents.foreign_tool(raw, at)


def _tool_json(tool: ToolSpec) -> Any:
    if tool.definition is not None:
        return msgspec.Raw(tool.definition.encode())
    described = {"description": tool.description} if tool.description else {}
    return {"name": tool.name, **described, "input_schema": msgspec.Raw(tool.input_schema.encode())}
