"""ShareGPT conversations, both ways: `from` and `value` instead of role and content."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec

from hango import jsontext
from hango.chain.formats import agents, openai_chat, openai_parts
from hango.chain.formats.gather import Conversation
from hango.chain.formats.reading import (
    arguments,
    decode,
    guess_provider,
    is_array,
    is_nothing,
    is_object,
    is_string,
)
from hango.chain.formats.transcript import ImportedAgent, ImportedMessage
from hango.errors import Invalid, Malformed, Reason
from hango.messages import Block, MessageRole, ToolSpec, text_block

_USERS = frozenset({"human", "user"})
_ASSISTANTS = frozenset({"gpt", "assistant", "chatgpt", "bing", "bard", "claude", "model", "ai"})
_CALLS = frozenset({"function_call", "tool_call"})
_RESULTS = frozenset({"observation", "tool", "function_response", "function", "tool_response"})


class _Turn(msgspec.Struct):
    sender: str = msgspec.field(name="from")
    value: msgspec.Raw = msgspec.Raw(b"")


class _Conversation(msgspec.Struct):
    conversations: list[msgspec.Raw] | None = None
    conversation: list[msgspec.Raw] | None = None
    items: list[msgspec.Raw] | None = None
    messages: list[msgspec.Raw] | None = None
    system: str | None = None
    tools: msgspec.Raw = msgspec.Raw(b"")  # a list, or the JSON text of one
    model: str | None = None
    title: str | None = None


class _Called(msgspec.Struct):
    name: str
    arguments: msgspec.Raw = msgspec.Raw(b"")


def read(body: bytes) -> list[Conversation]:
    """One conversation, its turns alone, or a list of conversations."""
    if not is_array(body):
        return [_conversation(body, "")]
    items = decode(body, list[msgspec.Raw])
    if items and "from" in decode(items[0], dict[str, msgspec.Raw], "/0"):
        return [_of_turns(items, "", _Conversation(), ())]
    return [_conversation(bytes(item), f"/{n}") for n, item in enumerate(items)]


def messages(raws: Sequence[msgspec.Raw], at: str, skipped: int = 0) -> Iterator[ImportedMessage]:
    """Messages of the turns. Calls have no ids here: the n-th is `call_<n>`, a result is of the oldest open one."""
    calls = 0
    waiting: list[str] = []
    for n, raw in enumerate(raws, skipped):
        turn = decode(raw, _Turn, f"{at}/{n}")
        value = _text(turn.value, f"{at}/{n}/value")
        if turn.sender in _CALLS:
            made = [_call(called, f"call_{calls + i}") for i, called in enumerate(_called(value), 1)]
            calls += len(made)
            waiting += [block.view.id or "" for block in made]
            yield ImportedMessage(MessageRole.ASSISTANT, tuple(made) or (text_block(value),))
        elif turn.sender in _RESULTS:
            id = waiting.pop(0) if waiting else ""
            yield ImportedMessage(MessageRole.USER, (Block.make("tool_result", tool_use_id=id, content=value),))
        else:
            yield ImportedMessage(_role(turn.sender, f"{at}/{n}/from"), (text_block(value),))


def write(agent: ImportedAgent, history: Iterable[ImportedMessage]) -> str:
    """The conversation as JSON text. Calls lose their ids; blocks that are no text are written as their JSON text."""
    written: list[Any] = []
    for message in history:
        calls = [block for block in message.content if block.type == "tool_use"]
        results = [block for block in message.content if block.type == "tool_result"]
        texts = [block for block in message.content if block.type not in ("tool_use", "tool_result")]
        if texts or not (calls or results):
            said = "\n".join(b.view.text or "" if b.type == "text" else b.json for b in texts)
            written.append({"from": _SENDERS[message.role], "value": said})
        if calls:
            values = [jsontext.dumps({"name": b.view.name or "", "arguments": b.view.input}) for b in calls]
            value = values[0] if len(values) == 1 else f"[{','.join(values)}]"
            written.append({"from": "function_call", "value": value})
        written += [{"from": "observation", "value": _result_text(block)} for block in results]
    head = {"system": "\n\n".join(block.text for block in agent.system) or None}
    head["tools"] = f"[{','.join(_tool_text(tool) for tool in agent.tools)}]" if agent.tools else None
    return jsontext.dumps({k: v for k, v in head.items() if v is not None} | {"conversations": written})


_SENDERS = {MessageRole.USER: "human", MessageRole.ASSISTANT: "gpt", MessageRole.SYSTEM: "system"}


def _conversation(body: bytes, at: str) -> Conversation:
    read = decode(body, _Conversation, at)
    specs = _tools(read.tools, f"{at}/tools")
    if read.messages is not None:
        place = f"{at}/messages"
        system, rest, skipped = openai_chat.head(read.messages, place)
        heads = [*([read.system] if read.system else []), *system]
        agent = agents.make_agent(model=guess_provider(read.model), system=heads, tools=specs)
        return Conversation(agent, openai_chat.messages(rest, place, skipped), read.title)
    for name in ("conversations", "conversation", "items"):
        turns: list[msgspec.Raw] | None = getattr(read, name)
        if turns is not None:
            return _of_turns(turns, f"{at}/{name}", read, specs)
    sentence = f"The conversation at '{at or '/'}' has no 'conversations'."
    raise Invalid.because(Reason.MISSING_FIELD, sentence, pointer=at)


def _of_turns(turns: Sequence[msgspec.Raw], at: str, read: _Conversation, specs: Sequence[ToolSpec]) -> Conversation:
    heads = [read.system] if read.system else []
    skipped = 0
    for n, raw in enumerate(turns):
        turn = decode(raw, _Turn, f"{at}/{n}")
        if turn.sender != "system":
            break
        heads.append(_text(turn.value, f"{at}/{n}/value"))
        skipped = n + 1
    agent = agents.make_agent(model=guess_provider(read.model), system=heads, tools=specs)
    return Conversation(agent, messages(turns[skipped:], at, skipped), read.title)


def _role(sender: str, at: str) -> MessageRole:
    if sender in _USERS:
        return MessageRole.USER
    if sender in _ASSISTANTS:
        return MessageRole.ASSISTANT
    if sender == "system":
        return MessageRole.SYSTEM
    known = ", ".join(sorted(_USERS | _ASSISTANTS | _CALLS | _RESULTS | {"system"}))
    raise Invalid.because(Reason.BAD_FIELD, f"The sender at '{at}' is none of {known}.", pointer=at)


def _text(raw: msgspec.Raw, at: str) -> str:
    """The value as text; a value that is no string stands as its JSON text."""
    if is_string(raw):
        return decode(raw, str, at)
    return "" if is_nothing(raw) else jsontext.compact(raw)


def _called(value: str) -> list[_Called]:
    """The calls in a value: one object or a list; none when it is written otherwise."""
    raw = value.encode()
    try:
        jsontext.read(raw)
        return decode(raw, list[_Called]) if is_array(raw) else [decode(raw, _Called)]
    except (Malformed, Invalid):
        return []


def _call(called: _Called, id: str) -> Block:
    if is_object(called.arguments):
        input = msgspec.Raw(jsontext.compact(called.arguments).encode())
    else:
        input = arguments(_text(called.arguments, ""))
    return Block.make("tool_use", id=id, name=called.name, input=input)


def _tools(raw: msgspec.Raw, at: str) -> list[ToolSpec]:
    if is_nothing(raw):
        return []
    if is_string(raw):
        text = decode(raw, str, at)
        if not text.strip():
            return []
        try:
            jsontext.read(text.encode())
        except (Malformed, Invalid):
            sentence = f"The tools at '{at}' are not the JSON text of a list."
            raise Invalid.because(Reason.BAD_FIELD, sentence, pointer=at) from None
        raw = msgspec.Raw(text.encode())
    return openai_chat.tools(decode(raw, list[msgspec.Raw], at), at)


def _tool_text(tool: ToolSpec) -> str:
    if tool.definition is not None:
        return tool.definition
    schema = msgspec.Raw(tool.input_schema.encode())
    return jsontext.dumps({"name": tool.name, "description": tool.description, "parameters": schema})


def _result_text(block: Block) -> str:
    raw = block.view.content
    if is_array(raw):
        inner = openai_parts.content(raw, "")
        return "\n".join(b.view.text or "" if b.type == "text" else b.json for b in inner)
    return decode(raw, str) if is_string(raw) else ""
