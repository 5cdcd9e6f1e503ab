"""OpenAI Chat Completions requests, both ways. One message of the file is one message of the history."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from hango import jsontext
from hango.chain.formats import agents, openai_parts, unwrap
from hango.chain.formats.gather import Conversation
from hango.chain.formats.reading import (
    arguments,
    decode,
    is_array,
    is_nothing,
    is_object,
    is_string,
    time_of,
    with_provider,
)
from hango.chain.formats.transcript import ImportedAgent, ImportedMessage
from hango.errors import Invalid, Reason
from hango.messages import Block, MessageRole, ToolSpec

PROVIDER = "openai"
HEAD_ROLES = frozenset({"system", "developer"})
_ROLES = {
    "user": MessageRole.USER,
    "assistant": MessageRole.ASSISTANT,
    "system": MessageRole.SYSTEM,
    "developer": MessageRole.SYSTEM,
    "tool": MessageRole.USER,
    "function": MessageRole.USER,
}
_PLAIN_PARAMS = ("temperature", "top_p", "top_k", "seed", "parallel_tool_calls", "reasoning_effort")
_CONTEXT = frozenset(
    {"model", "messages", "tools", "functions", "tool_choice", "function_call", "stop", "title"}
    | {"max_tokens", "max_completion_tokens", *_PLAIN_PARAMS}
)


class _Request(msgspec.Struct):
    messages: list[msgspec.Raw]
    model: str | None = None
    max_tokens: int | None = None
    max_completion_tokens: int | None = None
    tools: list[msgspec.Raw] | None = None
    functions: list[msgspec.Raw] | None = None
    tool_choice: Any = None
    function_call: Any = None
    stop: str | list[str] | None = None
    title: str | None = None


class _Tool(msgspec.Struct):
    type: str = "function"
    function: msgspec.Raw = msgspec.Raw(b"")


class _Function(msgspec.Struct):
    name: str = ""
    arguments: msgspec.Raw = msgspec.Raw(b"")
    input: str | None = None  # of a custom tool


class _Call(msgspec.Struct):
    id: str | None = None
    function: _Function | None = None
    custom: _Function | None = None


class _Message(msgspec.Struct):
    role: str
    content: msgspec.Raw = msgspec.Raw(b"")
    refusal: str | None = None
    reasoning_content: str | None = None  # DeepSeek, Qwen and servers like them
    reasoning: Any = None  # OpenRouter
    tool_calls: list[_Call] | None = None
    function_call: _Function | None = None
    tool_call_id: str | None = None
    name: str | None = None
    model: str | None = None
    created_at: Any = None


def read(body: bytes) -> list[Conversation]:
    """A request, the list of its messages, or a list of requests."""
    if unwrap.is_list_of(body, "messages"):
        return [each for raw in decode(body, list[msgspec.Raw]) for each in read(bytes(raw))]
    if is_array(body):
        system, rest, skipped = head(decode(body, list[msgspec.Raw]), "")
        return [Conversation(agents.make_agent(system=system), messages(rest, "", skipped))]
    body, at = unwrap.request(body, "messages")
    request = decode(body, _Request, at)
    members = decode(body, dict[str, msgspec.Raw], at)
    system, rest, skipped = head(request.messages, f"{at}/messages")
    agent = agents.make_agent(
        model=with_provider(PROVIDER, request.model),
        system=system,
        tools=tools(request.tools, f"{at}/tools") + tools(request.functions, f"{at}/functions"),
        params=_params(members, request),
        max_output_tokens=request.max_completion_tokens or request.max_tokens,
        not_taken=members.keys() - _CONTEXT - agents.TRANSPORT,
    )
    return [Conversation(agent, messages(rest, f"{at}/messages", skipped), request.title)]


def head(raws: Sequence[msgspec.Raw], at: str) -> tuple[list[str], Sequence[msgspec.Raw], int]:
    """The texts of the system messages that open the list, the rest, and how many there were."""
    found: list[str] = []
    for n, raw in enumerate(raws):
        read = decode(raw, _Message, f"{at}/{n}")
        if read.role not in HEAD_ROLES:
            return found, raws[n:], n
        found += openai_parts.texts(read.content, f"{at}/{n}/content")
    return found, (), len(raws)


def messages(raws: Sequence[msgspec.Raw], at: str, skipped: int = 0) -> Iterator[ImportedMessage]:
    """Messages of the history; `skipped` were before them in the list."""
    asked: dict[str, str] = {}  # name of a function -> id of its latest call, for results that know only the name
    for n, raw in enumerate(raws, skipped):
        yield message(raw, f"{at}/{n}", asked)


def message(raw: msgspec.Raw, at: str, asked: dict[str, str]) -> ImportedMessage:
    read = decode(raw, _Message, at)
    if read.role not in _ROLES:
        sentence = f"The role at '{at}/role' is none of {', '.join(sorted(_ROLES))}."
        raise Invalid.because(Reason.BAD_FIELD, sentence, pointer=f"{at}/role")
    if read.role in ("tool", "function"):
        content: tuple[Block, ...] = (_result(read, at, asked),)
    else:
        content = (*_thinking(read), *_said(read, at), *_calls(read, at, asked))
    model = with_provider(PROVIDER, read.model)
    return ImportedMessage(_ROLES[read.role], content, model, time_of(read.created_at))


def tools(raws: Sequence[msgspec.Raw] | None, at: str) -> list[ToolSpec]:
    """Function tools, bare functions, and tools that only OpenAI knows."""
    made = []
    for n, raw in enumerate(raws or ()):
        tool = decode(raw, _Tool, f"{at}/{n}")
        if not is_nothing(tool.function):
            made.append(agents.function_tool(tool.function, f"{at}/{n}/function"))
        elif tool.type == "function":
            made.append(agents.function_tool(raw, f"{at}/{n}"))
        else:
            made.append(agents.foreign_tool(raw, f"{at}/{n}"))
    return made


def call(id: str, name: str, raw: msgspec.Raw, at: str) -> Block:
    """A tool_use block; arguments are a string in OpenAI's words, an object with some servers."""
    if is_object(raw):
        input = msgspec.Raw(jsontext.compact(raw).encode())
    else:
        input = arguments("" if is_nothing(raw) else decode(raw, str, at) if is_string(raw) else bytes(raw).decode())
    return Block.make("tool_use", id=id, name=name, input=input)


def write(agent: ImportedAgent, history: Iterable[ImportedMessage]) -> str:
    """The request as JSON text. Blocks that Chat has no words for stand as they are among the parts."""
    params = dict(agent.params)
    choice = params.pop("tool_choice", None)
    body = {
        "model": agent.model and agent.model.removeprefix(f"{PROVIDER}/"),
        "max_completion_tokens": agent.max_output_tokens,
        "tools": [_tool_json(tool) for tool in agent.tools] or None,
        "tool_choice": choice and _choice_json(choice),
        "stop": params.get("stop"),
        **{name: params.get(name) for name in _PLAIN_PARAMS},
    }
    written: list[Any] = [{"role": "system", "content": block.text} for block in agent.system]
    for message in history:
        written += _message_json(message)
    return jsontext.dumps({key: value for key, value in body.items() if value is not None} | {"messages": written})


def _params(members: Mapping[str, msgspec.Raw], request: _Request) -> dict[str, Any]:
    params = {name: msgspec.json.decode(members[name]) for name in _PLAIN_PARAMS if name in members}
    params["stop"] = [request.stop] if isinstance(request.stop, str) else request.stop
    params["tool_choice"] = agents.tool_choice(request.tool_choice or request.function_call)
    return params


def _thinking(read: _Message) -> list[Block]:
    text = read.reasoning_content or (read.reasoning if isinstance(read.reasoning, str) else None)
    return [Block.make("thinking", thinking=text)] if text else []


def _said(read: _Message, at: str) -> list[Block]:
    """The content; an empty string beside calls says nothing."""
    blocks = list(openai_parts.content(read.content, f"{at}/content"))
    if (read.tool_calls or read.function_call) and len(blocks) == 1 and blocks[0].view.text == "":
        blocks = []
    return [*blocks, Block.make("refusal", refusal=read.refusal)] if read.refusal else blocks


def _calls(read: _Message, at: str, asked: dict[str, str]) -> Iterator[Block]:
    for n, made in enumerate(read.tool_calls or ()):
        place = f"{at}/tool_calls/{n}"
        if made.custom is not None:
            text = msgspec.Raw(jsontext.dumps(made.custom.input or "").encode())
            yield Block.make("tool_use", id=made.id or "", name=made.custom.name, input=text)
        else:
            function = made.function or _Function()
            asked[function.name] = made.id or ""
            yield call(made.id or "", function.name, function.arguments, f"{place}/function/arguments")
    if read.function_call is not None:
        name = read.function_call.name
        asked[name] = f"function_{len(asked)}_{name}"
        yield call(asked[name], name, read.function_call.arguments, f"{at}/function_call/arguments")


def _result(read: _Message, at: str, asked: Mapping[str, str]) -> Block:
    id = read.tool_call_id or asked.get(read.name or "", "")
    blocks = openai_parts.content(read.content, f"{at}/content")
    if is_string(read.content) or not blocks:
        return Block.make("tool_result", tool_use_id=id, content=(blocks[0].view.text or "") if blocks else "")
    return Block.make("tool_result", tool_use_id=id, content=[msgspec.Raw(b.json.encode()) for b in blocks])


def _message_json(message: ImportedMessage) -> list[Any]:
    results = [block for block in message.content if block.type == "tool_result"]
    calls = [block for block in message.content if block.type == "tool_use"]
    thinking = [block.view.thinking or "" for block in message.content if block.type == "thinking"]
    rest = [b for b in message.content if b.type not in ("tool_result", "tool_use", "thinking")]
    written: list[Any] = [
        {"role": "tool", "tool_call_id": block.view.tool_use_id or "", "content": _result_content(block)}
        for block in results
    ]
    if rest or calls or thinking or not results:
        said = {"role": message.role.value, "content": _content_json(rest, bare=not (calls or thinking))}
        if thinking:
            said["reasoning_content"] = "\n".join(thinking)
        if calls:
            said["tool_calls"] = [_call_json(block) for block in calls]
        written.append(said)
    return written


def _content_json(blocks: Sequence[Block], *, bare: bool) -> Any:
    if not blocks:
        return [] if bare else None
    if len(blocks) == 1 and blocks[0].type == "text":
        return blocks[0].view.text or ""
    return [openai_parts.part_of(block) for block in blocks]


def _result_content(block: Block) -> Any:
    raw = block.view.content
    if not is_array(raw):
        return decode(raw, str) if is_string(raw) else ""
    return [openai_parts.part_of(Block.of(item)) for item in decode(raw, list[msgspec.Raw])]


def _call_json(block: Block) -> dict[str, Any]:
    raw = block.view.input
    text = decode(raw, str) if is_string(raw) else bytes(raw).decode()
    function = {"name": block.view.name or "", "arguments": text}
    return {"id": block.view.id or "", "type": "function", "function": function}


def _tool_json(tool: ToolSpec) -> Any:
    if tool.definition is not None:
        return msgspec.Raw(tool.definition.encode())
    described = {"description": tool.description} if tool.description else {}
    schema = msgspec.Raw(tool.input_schema.encode())
    return {"type": "function", "function": {"name": tool.name, **described, "parameters": schema}}


def _choice_json(choice: Mapping[str, Any]) -> Any:
    if choice["type"] == "tool":
        return {"type": "function", "function": {"name": choice.get("name")}}
    return {"any": "required"}.get(choice["type"], choice["type"])
