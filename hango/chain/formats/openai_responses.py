"""OpenAI Responses requests, both ways. Items of one answer (reasoning, text, calls) are one message of the history."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from hango import jsontext
from hango.chain.formats import agents, openai_parts, unwrap
from hango.chain.formats.gather import Conversation
from hango.chain.formats.openai_chat import HEAD_ROLES, call, tools
from hango.chain.formats.reading import decode, is_array, is_nothing, is_string, with_provider
from hango.chain.formats.transcript import ImportedAgent, ImportedMessage
from hango.errors import Invalid, Reason
from hango.messages import Block, MessageRole, ToolSpec

PROVIDER = "openai"
_CALLS = frozenset({"function_call", "custom_tool_call"})
_RESULTS = frozenset({"function_call_output", "custom_tool_call_output"})
_FROM_CLIENT = frozenset({"computer_call_output", "local_shell_call_output", "shell_call_output"})
_ROLES = {
    "user": MessageRole.USER,
    "assistant": MessageRole.ASSISTANT,
    "system": MessageRole.SYSTEM,
    "developer": MessageRole.SYSTEM,
}
_PLAIN_PARAMS = ("temperature", "top_p", "parallel_tool_calls")
_CONTEXT = frozenset(
    {"model", "input", "output", "instructions", "tools", "tool_choice", "reasoning", "max_output_tokens"}
    # What a response, pasted with its request, says of itself.
    | {"id", "created_at", "status", "usage", "error", "incomplete_details", "title", *_PLAIN_PARAMS}
)


class _Reasoning(msgspec.Struct):
    effort: str | None = None


class _Request(msgspec.Struct):
    input: msgspec.Raw = msgspec.Raw(b"")
    output: list[msgspec.Raw] | None = None
    model: str | None = None
    instructions: msgspec.Raw = msgspec.Raw(b"")
    tools: list[msgspec.Raw] | None = None
    tool_choice: Any = None
    reasoning: _Reasoning | None = None
    max_output_tokens: int | None = None
    title: str | None = None


class _Item(msgspec.Struct):
    type: str = "message"
    role: str | None = None
    content: msgspec.Raw = msgspec.Raw(b"")
    call_id: str | None = None
    name: str | None = None
    arguments: msgspec.Raw = msgspec.Raw(b"")
    input: msgspec.Raw = msgspec.Raw(b"")
    output: msgspec.Raw = msgspec.Raw(b"")


def read(body: bytes) -> list[Conversation]:
    """A request, a response, or a list of items."""
    if is_array(body):
        return [_conversation(_Request(), decode(body, list[msgspec.Raw]), "", {})]
    body, at = unwrap.request(body, "input")
    request = decode(body, _Request, at)
    members = decode(body, dict[str, msgspec.Raw], at)
    if is_nothing(request.input) and request.output is None:
        raise Invalid.because(Reason.MISSING_FIELD, "The request has no 'input'.", pointer=f"{at}/input")
    return [_conversation(request, _items(request, at), at, members)]


def messages(raws: Sequence[msgspec.Raw], at: str, skipped: int = 0) -> Iterator[ImportedMessage]:
    """Messages of the items; `skipped` were before them in the list."""
    answer: list[Block] = []
    for n, raw in enumerate(raws, skipped):
        item = decode(raw, _Item, f"{at}/{n}")
        blocks = _answer_blocks(item, raw, f"{at}/{n}")
        if blocks is None or (answer and _begins_answer(item, answer)):
            if answer:
                yield ImportedMessage(MessageRole.ASSISTANT, tuple(answer))
            answer = []
        if blocks is None:
            yield _from_outside(item, raw, f"{at}/{n}")
        else:
            answer += blocks
    if answer:
        yield ImportedMessage(MessageRole.ASSISTANT, tuple(answer))


def write(agent: ImportedAgent, history: Iterable[ImportedMessage]) -> str:
    """The request as JSON text. Blocks that Responses has no words for stand as they are among the items."""
    params = agent.params
    choice = params.get("tool_choice")
    effort = params.get("reasoning_effort")
    body = {
        "model": agent.model and agent.model.removeprefix(f"{PROVIDER}/"),
        "max_output_tokens": agent.max_output_tokens,
        "tools": [_tool_json(tool) for tool in agent.tools] or None,
        "tool_choice": choice and _choice_json(choice),
        "reasoning": effort and {"effort": effort},
        **{name: params.get(name) for name in _PLAIN_PARAMS},
    }
    written: list[Any] = [{"role": "developer", "content": block.text} for block in agent.system]
    for message in history:
        written += _items_json(message)
    return jsontext.dumps({key: value for key, value in body.items() if value is not None} | {"input": written})


def _conversation(
    request: _Request, raws: Sequence[msgspec.Raw], at: str, members: Mapping[str, msgspec.Raw]
) -> Conversation:
    place = f"{at}/input" if members else at
    system, rest, skipped = _head(raws, place)
    params = {name: msgspec.json.decode(members[name]) for name in _PLAIN_PARAMS if name in members}
    params["reasoning_effort"] = request.reasoning and request.reasoning.effort
    params["tool_choice"] = agents.tool_choice(request.tool_choice)
    agent = agents.make_agent(
        model=with_provider(PROVIDER, request.model),
        system=[*openai_parts.texts(request.instructions, f"{at}/instructions"), *system],
        tools=tools(request.tools, f"{at}/tools"),
        params=params,
        max_output_tokens=request.max_output_tokens,
        not_taken=members.keys() - _CONTEXT - agents.TRANSPORT,
    )
    return Conversation(agent, messages(rest, place, skipped), request.title)


def _items(request: _Request, at: str) -> list[msgspec.Raw]:
    if is_string(request.input):
        asked = [msgspec.Raw(jsontext.dumps({"role": "user", "content": request.input}).encode())]
    else:
        asked = [] if is_nothing(request.input) else decode(request.input, list[msgspec.Raw], f"{at}/input")
    return asked + (request.output or [])


def _head(raws: Sequence[msgspec.Raw], at: str) -> tuple[list[str], Sequence[msgspec.Raw], int]:
    found: list[str] = []
    for n, raw in enumerate(raws):
        item = decode(raw, _Item, f"{at}/{n}")
        if item.type != "message" or item.role not in HEAD_ROLES:
            return found, raws[n:], n
        found += openai_parts.texts(item.content, f"{at}/{n}/content")
    return found, (), len(raws)


def _answer_blocks(item: _Item, raw: msgspec.Raw, at: str) -> list[Block] | None:
    """Blocks of an item that the model made; None for one that came from outside."""
    if item.type == "message":
        if item.role != "assistant":
            return None
        return list(openai_parts.content(item.content, f"{at}/content"))
    if item.type in _CALLS:
        given = item.arguments if item.type == "function_call" else item.input
        return [call(item.call_id or "", item.name or "", given, at)]
    return None if item.type in _RESULTS or item.type in _FROM_CLIENT else [Block.of(raw)]


def _begins_answer(item: _Item, answer: Sequence[Block]) -> bool:
    """Reasoning and text come before calls, and one text is in an answer: else a new one begins."""
    said = any(block.type != "reasoning" for block in answer)
    return said and item.type in ("message", "reasoning")


def _from_outside(item: _Item, raw: msgspec.Raw, at: str) -> ImportedMessage:
    if item.type in _RESULTS:
        return ImportedMessage(MessageRole.USER, (_result(item, at),))
    if item.type in _FROM_CLIENT:
        return ImportedMessage(MessageRole.USER, (Block.of(raw),))
    if item.role not in _ROLES:
        sentence = f"The role at '{at}/role' is none of {', '.join(sorted(_ROLES))}."
        raise Invalid.because(Reason.BAD_FIELD, sentence, pointer=f"{at}/role")
    return ImportedMessage(_ROLES[item.role], openai_parts.content(item.content, f"{at}/content"))


def _result(item: _Item, at: str) -> Block:
    id = item.call_id or ""
    if is_array(item.output):
        blocks = openai_parts.content(item.output, f"{at}/output")
        return Block.make("tool_result", tool_use_id=id, content=[msgspec.Raw(b.json.encode()) for b in blocks])
    if is_string(item.output) or is_nothing(item.output):
        text = "" if is_nothing(item.output) else decode(item.output, str, f"{at}/output")
        return Block.make("tool_result", tool_use_id=id, content=text)
    return Block.make("tool_result", tool_use_id=id, content=jsontext.compact(item.output))


def _items_json(message: ImportedMessage) -> list[Any]:
    """Items in the order of the blocks; neighbouring text and picture blocks are one message item."""
    written: list[Any] = []
    parts: list[Any] = []
    kind = "output_text" if message.role is MessageRole.ASSISTANT else "input_text"
    for block in message.content:
        item = _item_json(block)
        if item is None:
            parts.append(_part_json(block, kind))
            continue
        if parts:
            written.append({"role": message.role.value, "content": parts})
            parts = []
        written.append(item)
    if parts or not message.content:
        written.append({"role": message.role.value, "content": parts})
    return written


def _item_json(block: Block) -> Any:
    """The item of a block that is an item of its own; None for a part of a message item."""
    view = block.view
    if view.type == "tool_use":
        text = decode(view.input, str) if is_string(view.input) else bytes(view.input).decode()
        return {"type": "function_call", "call_id": view.id or "", "name": view.name or "", "arguments": text}
    if view.type == "tool_result":
        output: Any = decode(view.content, str) if is_string(view.content) else ""
        if is_array(view.content):
            inner = [Block.of(raw) for raw in decode(view.content, list[msgspec.Raw])]
            output = [_part_json(each, "input_text") for each in inner]
        return {"type": "function_call_output", "call_id": view.tool_use_id or "", "output": output}
    return None if view.type in ("text", "image", "document", "refusal") else msgspec.Raw(block.json.encode())


def _part_json(block: Block, kind: str) -> Any:
    if block.type == "text":
        return {"type": kind, "text": block.view.text or ""}
    part = openai_parts.part_of(block)
    if isinstance(part, dict):
        return {"type": "input_image", "image_url": part["image_url"]["url"]}
    return part


def _tool_json(tool: ToolSpec) -> Any:
    if tool.definition is not None:
        return msgspec.Raw(tool.definition.encode())
    described = {"description": tool.description} if tool.description else {}
    schema = msgspec.Raw(tool.input_schema.encode())
    return {"type": "function", "name": tool.name, **described, "parameters": schema}


def _choice_json(choice: Mapping[str, Any]) -> Any:
    if choice["type"] == "tool":
        return {"type": "function", "name": choice.get("name")}
    return {"any": "required"}.get(choice["type"], choice["type"])
