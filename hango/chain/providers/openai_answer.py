"""An answer of OpenAI's Chat Completions, from the public API or a compatible server, as a response. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from hango import jsontext
from hango.chain.providers.answers import Names, Unreadable, bounded, call_input, checked, members, tokens
from hango.messages import Block, Response, StopReason, Usage, text_block

STOP_REASONS = {
    "stop": StopReason.END_TURN,
    "length": StopReason.MAX_TOKENS,
    "tool_calls": StopReason.TOOL_USE,
    "function_call": StopReason.TOOL_USE,
    "content_filter": StopReason.REFUSAL,
}


class _Function(msgspec.Struct, frozen=True):
    name: str | None = None
    arguments: msgspec.Raw = msgspec.Raw(b"")


class _Custom(msgspec.Struct, frozen=True):
    name: str | None = None
    input: str = ""


class _Call(msgspec.Struct, frozen=True):
    id: str | None = None
    function: _Function | None = None
    custom: _Custom | None = None


class _Said(msgspec.Struct, frozen=True):
    role: str | None = None
    content: msgspec.Raw = msgspec.Raw(b"")
    refusal: str | None = None
    reasoning_content: Any = None  # DeepSeek, Qwen, llama.cpp and servers like them
    reasoning: Any = None  # OpenRouter, vLLM
    tool_calls: list[_Call] | None = None
    function_call: _Function | None = None  # the older form of a call


class _Choice(msgspec.Struct, frozen=True):
    message: _Said
    finish_reason: Any = None


class _Chat(msgspec.Struct, frozen=True):
    choices: list[_Choice]
    usage: Any = None


def read(body: bytes, names: Names) -> Response:
    """The first choice; reasoning stands first, calls last.

    `names` gives the agent's own name for each changed name on the wire. Raises Unreadable and errors of reading.
    """
    chat = members(body, _Chat)
    if not chat.choices:
        raise Unreadable("choices")
    choice = chat.choices[0]
    parts = list(_parts(choice.message))
    calls = list(_calls(choice.message, names))
    usage = _usage(chat.usage)
    return Response(
        tuple(bounded([*_thinking(choice.message), *(block for block, _ in parts), *calls])),
        _stop_reason(choice.finish_reason, called=bool(calls), refused=any(refused for _, refused in parts)),
        usage or Usage(),
        usage_known=usage is not None,
    )


def _thinking(said: _Said) -> Iterator[Block]:
    """Unsigned: it is shown, and goes out to no provider again."""
    for text in (said.reasoning_content, said.reasoning):
        if isinstance(text, str) and text:
            yield Block.make("thinking", thinking=text)
            return


def _parts(said: _Said) -> Iterator[tuple[Block, bool]]:
    """The content's blocks, each with whether it is a refusal."""
    raw = bytes(said.content)
    if raw.startswith(b'"'):
        if text := msgspec.json.decode(raw, type=str):
            yield text_block(text), False
    elif raw not in (b"", b"null"):
        for part in bounded(msgspec.json.decode(raw, type=list[msgspec.Raw])):
            yield _part(part)
    if said.refusal:
        yield text_block(said.refusal), True


def _part(raw: msgspec.Raw) -> tuple[Block, bool]:
    block = Block.of(raw)
    if block.type == "refusal":
        return text_block(msgspec.json.decode(jsontext.fields(block.json).get("refusal", b'""'), type=str)), True
    return checked(block), False


def _calls(said: _Said, names: Names) -> Iterator[Block]:
    calls = said.tool_calls or ([_Call(function=said.function_call)] if said.function_call else [])
    own: Mapping[str, str] = names() if calls else {}
    for n, call in enumerate(bounded(calls)):
        called = call.function or call.custom
        if called is None or not called.name:
            raise Unreadable("tool_calls")
        given = _arguments(called.arguments) if isinstance(called, _Function) else call_input(called.input)
        # Some servers give no id, and a result needs one to answer to.
        yield Block.make("tool_use", id=call.id or f"call_{n}", name=own.get(called.name, called.name), input=given)


def _arguments(raw: msgspec.Raw) -> msgspec.Raw:
    """Arguments are a string that holds JSON; some servers give the object itself."""
    written = bytes(raw)
    if written in (b"", b"null"):
        return msgspec.Raw(b"{}")
    if written.startswith(b'"'):
        return call_input(msgspec.json.decode(written, type=str))
    return msgspec.Raw(jsontext.compact(written).encode())


def _stop_reason(written: Any, *, called: bool, refused: bool) -> StopReason:
    if refused:
        return StopReason.REFUSAL
    reason = STOP_REASONS.get(written, StopReason.END_TURN) if isinstance(written, str) else StopReason.END_TURN
    # A call that the request demanded ends with `stop`.
    return StopReason.TOOL_USE if called and reason is StopReason.END_TURN else reason


def _usage(figures: Any) -> Usage | None:
    """The wire counts cached and written tokens among those of the prompt."""
    found = tokens(
        figures,
        ["prompt_tokens", "completion_tokens"],
        ["prompt_tokens_details.cached_tokens", "prompt_tokens_details.cache_write_tokens"],
    )
    if found is None:
        return None
    prompt, answered, cached, written = found
    return Usage(max(prompt - cached - written, 0), answered, cached, written)
