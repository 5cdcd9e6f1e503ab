"""LangChain messages, both ways: as dicts (`type`, `data`), as serialized constructors (`lc`, `kwargs`), or flat."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec

from hango import jsontext
from hango.chain.formats import agents, openai_chat, openai_parts
from hango.chain.formats.gather import Conversation
from hango.chain.formats.reading import arguments, decode, guess_provider, is_array, is_nothing, is_string
from hango.chain.formats.transcript import ImportedAgent, ImportedMessage
from hango.errors import Invalid, Reason
from hango.messages import Block, MessageRole

_ROLES = {
    "human": MessageRole.USER,
    "user": MessageRole.USER,
    "ai": MessageRole.ASSISTANT,
    "assistant": MessageRole.ASSISTANT,
    "system": MessageRole.SYSTEM,
    "developer": MessageRole.SYSTEM,
    "tool": MessageRole.USER,
    "function": MessageRole.USER,
}
_TYPES = {MessageRole.USER: "human", MessageRole.ASSISTANT: "ai", MessageRole.SYSTEM: "system"}
# Blocks that LangChain has under Anthropic's names: they stay as they came.
_OURS = frozenset({"tool_use", "thinking", "redacted_thinking", "image", "document", "server_tool_use"})


class _Call(msgspec.Struct):
    name: str = ""
    args: msgspec.Raw = msgspec.Raw(b"{}")
    id: str | None = None


class _Metadata(msgspec.Struct):
    model_name: str | None = None
    model: str | None = None


class _Additional(msgspec.Struct):
    tool_calls: msgspec.Raw = msgspec.Raw(b"")
    function_call: msgspec.Raw = msgspec.Raw(b"")
    reasoning_content: str | None = None


class _Data(msgspec.Struct):
    content: msgspec.Raw = msgspec.Raw(b"")
    type: str | None = None
    role: str | None = None  # of a ChatMessage
    name: str | None = None
    tool_calls: list[_Call] | None = None
    invalid_tool_calls: list[_Call] | None = None
    tool_call_id: str | None = None
    status: str | None = None
    additional_kwargs: _Additional | None = None
    response_metadata: _Metadata | None = None


class _Envelope(msgspec.Struct):
    type: str | None = None
    data: _Data | None = None
    id: Any = None
    kwargs: _Data | None = None


def read(body: bytes) -> list[Conversation]:
    """A list of messages, a list of such lists, or an object that holds one under `messages`."""
    at = ""
    while not is_array(body):
        members = decode(body, dict[str, msgspec.Raw], at)
        for name in ("messages", "values", "input", "inputs", "output", "outputs"):
            if name in members and not is_string(members[name]) and not is_nothing(members[name]):
                body, at = bytes(members[name]), f"{at}/{name}"
                break
        else:
            raise Invalid.because(Reason.MISSING_FIELD, f"There is no 'messages' at '{at or '/'}'.", pointer=at)
    raws = decode(body, list[msgspec.Raw], at)
    if raws and is_array(raws[0]):
        return [_conversation(decode(raw, list[msgspec.Raw], f"{at}/{n}"), f"{at}/{n}") for n, raw in enumerate(raws)]
    if raws and "messages" in decode(raws[0], dict[str, msgspec.Raw], f"{at}/0"):
        return [conversation for raw in raws for conversation in read(bytes(raw))]
    return [_conversation(raws, at)]


def messages(raws: Sequence[msgspec.Raw], at: str, skipped: int = 0) -> Iterator[ImportedMessage]:
    """Messages of the history; `skipped` were before them in the list."""
    for n, raw in enumerate(raws, skipped):
        kind, data = _message(raw, f"{at}/{n}")
        if kind in ("tool", "function"):
            content: tuple[Block, ...] = (_result(data, f"{at}/{n}"),)
        else:
            content = tuple(_blocks(data, f"{at}/{n}"))
        yield ImportedMessage(_ROLES[kind], content, _model(data))


def write(agent: ImportedAgent, history: Iterable[ImportedMessage]) -> str:
    """The messages as JSON text, as dicts with `type` and `data`."""
    written: list[Any] = [{"type": "system", "data": {"content": block.text}} for block in agent.system]
    for message in history:
        written += _message_json(message)
    return jsontext.dumps(written)


def _conversation(raws: Sequence[msgspec.Raw], at: str) -> Conversation:
    system: list[str] = []
    skipped = 0
    models: dict[str, None] = {}
    for n, raw in enumerate(raws):
        kind, data = _message(raw, f"{at}/{n}")
        if skipped == n and _ROLES[kind] is MessageRole.SYSTEM:
            system += openai_parts.texts(data.content, f"{at}/{n}/content")
            skipped = n + 1
        model = _model(data)
        if model:
            models[model] = None
    agent = agents.make_agent(model=next(reversed(models), None), system=system)
    return Conversation(agent, messages(raws[skipped:], at, skipped))


def _message(raw: msgspec.Raw, at: str) -> tuple[str, _Data]:
    """The kind of a message, and its members, whichever way it was written."""
    envelope = decode(raw, _Envelope, at)
    if envelope.kwargs is not None:
        data = envelope.kwargs
        named = envelope.id[-1] if isinstance(envelope.id, list) and envelope.id else ""
        kind = str(named).removesuffix("Chunk").removesuffix("Message").lower()
    else:
        data = envelope.data or decode(raw, _Data, at)
        kind = (envelope.type or data.type or data.role or "").removesuffix("Chunk").removesuffix("Message").lower()
    if kind == "chat":
        kind = (data.role or "").lower()
    if kind not in _ROLES:
        sentence = f"The message at '{at}' is of none of the types {', '.join(_ROLES)}."
        raise Invalid.because(Reason.BAD_FIELD, sentence, pointer=at)
    return kind, data


def _model(data: _Data) -> str | None:
    metadata = data.response_metadata
    return guess_provider(metadata.model_name or metadata.model) if metadata else None


def _blocks(data: _Data, at: str) -> Iterator[Block]:
    additional = data.additional_kwargs or _Additional()
    if additional.reasoning_content:
        yield Block.make("thinking", thinking=additional.reasoning_content)
    calls = list(_calls(data, additional, at))
    seen = set()
    for block in _content(data.content, f"{at}/content"):
        if block.type == "tool_use":
            seen.add(block.view.id)
        if not (calls and block.type == "text" and block.view.text == ""):
            yield block
    yield from (block for block in calls if block.view.id not in seen)


def _content(raw: msgspec.Raw, at: str) -> Iterator[Block]:
    if not is_array(raw):
        yield from openai_parts.content(raw, at)
        return
    for n, item in enumerate(decode(raw, list[msgspec.Raw], at)):
        if is_string(item):
            yield openai_parts.block(item, f"{at}/{n}")
            continue
        block = Block.of(item)
        if block.type in _OURS and not (block.type == "tool_use" and is_string(block.view.input)):
            yield block
        elif block.type == "tool_use":
            # A streamed call: its input is the text of the arguments.
            yield block.with_fields(input=arguments(decode(block.view.input, str)))
        elif block.type == "text":
            yield block
        else:
            yield openai_parts.block(item, f"{at}/{n}")


def _calls(data: _Data, additional: _Additional, at: str) -> Iterator[Block]:
    if data.tool_calls or data.invalid_tool_calls:
        for made in (*(data.tool_calls or ()), *(data.invalid_tool_calls or ())):
            yield openai_chat.call(made.id or "", made.name, made.args, f"{at}/tool_calls")
    elif not is_nothing(additional.tool_calls) or not is_nothing(additional.function_call):
        asked = {
            "role": "assistant",
            "tool_calls": None if is_nothing(additional.tool_calls) else additional.tool_calls,
            "function_call": None if is_nothing(additional.function_call) else additional.function_call,
        }
        raw = msgspec.Raw(jsontext.dumps(asked).encode())
        yield from openai_chat.message(raw, f"{at}/additional_kwargs", {}).content


def _result(data: _Data, at: str) -> Block:
    blocks = list(_content(data.content, f"{at}/content"))
    content: Any = [msgspec.Raw(block.json.encode()) for block in blocks]
    if not is_array(data.content):
        content = (blocks[0].view.text or "") if blocks else ""
    failed = True if data.status == "error" else None
    return Block.make("tool_result", tool_use_id=data.tool_call_id or "", content=content, is_error=failed)


def _message_json(message: ImportedMessage) -> list[Any]:
    rest = [block for block in message.content if block.type not in ("tool_use", "tool_result")]
    calls = [block.view for block in message.content if block.type == "tool_use"]
    results = [block.view for block in message.content if block.type == "tool_result"]
    written: list[Any] = []
    for view in results:
        data = {"content": "" if is_nothing(view.content) else view.content, "tool_call_id": view.tool_use_id or ""}
        written.append({"type": "tool", "data": data | ({"status": "error"} if view.is_error else {})})
    if rest or calls or not results:
        content: Any = [msgspec.Raw(block.json.encode()) for block in rest]
        if len(rest) == 1 and rest[0].type == "text":
            content = rest[0].view.text or ""
        elif not rest and calls:
            content = ""
        said: dict[str, Any] = {"content": content}
        if calls:
            said["tool_calls"] = [{"name": v.name or "", "args": v.input, "id": v.id or ""} for v in calls]
        if message.model:
            said["response_metadata"] = {"model_name": message.model}
        written.append({"type": _TYPES[message.role], "data": said})
    return written
