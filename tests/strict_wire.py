"""A strict reader of neutral requests: every rule that a provider's door holds against a history, one name a rule.

Knows nothing of how a history is repaired; reads blocks alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from hango.dialect import Dialect
from hango.messages import Block, Message, Request

CLIENT_CALL, CLIENT_RESULT = "tool_use", "tool_result"


def faults(request: Request, dialect: Dialect, model: str) -> list[str]:
    """The broken rules of a request, as `<rule> in <index of the message>`; `model` is "<provider>/<name>"."""
    return [
        f"{rule} in {index}"
        for index, message in enumerate(request.messages)
        for rule in (
            *_of_content(message, dialect, model),
            *_of_calls(message, request.messages[index + 1 : index + 2]),
            *_of_results(message, request.messages[index - 1 : index] if index else ()),
        )
    ] + [f"{rule} in {index}" for index, rule in _of_providers_calls(request.messages)]


def _of_content(message: Message, dialect: Dialect, model: str) -> Iterator[str]:
    if not message.content:
        yield "empty message"
    for block in message.content:
        view = block.view
        if view.type == "text" and not (view.text or "").strip():
            yield "blank text"
        if (view.type == "thinking" and not view.signature) or (view.type == "redacted_thinking" and not view.data):
            yield "unsigned thinking"
        if view.type in ("thinking", "redacted_thinking"):
            if not dialect.thinking:
                yield "block not taken"
            if message.role != "assistant":
                yield "thinking not by the assistant"
            if message.model not in (None, model, model.partition("/")[2]):
                yield "foreign thinking"
        elif dialect.block_types is not None and view.type not in dialect.block_types:
            yield "block not taken"


def _of_calls(message: Message, after: Sequence[Message]) -> Iterator[str]:
    """A client's calls are the assistant's, with ids of their own, and the next message answers each of them."""
    calls = [block.view.id for block in message.content if block.type == CLIENT_CALL]
    if calls and message.role != "assistant":
        yield "call not by the assistant"
    every = [block.view.id for block in message.content if _is_call(block)]
    if len(set(every)) != len(every):
        yield "doubled call"
    answers = [block.view.tool_use_id for block in after[0].content if block.type == CLIENT_RESULT] if after else []
    if any(id not in answers for id in calls):
        yield "call without result"


def _of_results(message: Message, before: Sequence[Message]) -> Iterator[str]:
    """Results of a client are the user's, stand first, and answer the calls of the message before, each once."""
    types = [block.type for block in message.content]
    answers = [block.view.tool_use_id for block in message.content if block.type == CLIENT_RESULT]
    if not answers:
        return
    if message.role != "user":
        yield "result not by the user"
    if types[: len(answers)] != [CLIENT_RESULT] * len(answers):
        yield "result after other blocks"
    calls = [block.view.id for block in before[0].content if block.type == CLIENT_CALL] if before else []
    if any(id not in calls for id in answers):
        yield "result without call"
    if len(set(answers)) != len(answers):
        yield "doubled result"


def _of_providers_calls(messages: Sequence[Message]) -> Iterator[tuple[int, str]]:
    """Calls of a provider's own tools and their results pair inside the assistant's words, in order.

    Only the last message may leave one open; results of the client may follow it.
    """
    waiting: list[tuple[int, str]] = []
    for index, message in enumerate(messages):
        for block in message.content:
            if block.type in (CLIENT_CALL, CLIENT_RESULT) or not (_is_call(block) or _is_result(block)):
                continue
            if message.role != "assistant":
                yield index, "provider's block not by the assistant"
            maker = "mcp" if block.type.startswith("mcp_") else "server"
            if _is_call(block):
                waiting.append((index, f"{maker} {block.view.id}"))
            elif (open_call := _latest(waiting, f"{maker} {block.view.tool_use_id}")) is not None:
                waiting.remove(open_call)
            else:
                yield index, "provider's result without call"
    for index, _ in waiting:
        if any(block.type != CLIENT_RESULT for message in messages[index + 1 :] for block in message.content):
            yield index, "provider's call without result"


def _latest(waiting: Sequence[tuple[int, str]], call: str) -> tuple[int, str] | None:
    return next((one for one in reversed(waiting) if one[1] == call), None)


def _is_call(block: Block) -> bool:
    return block.type.endswith("tool_use")


def _is_result(block: Block) -> bool:
    return block.type.endswith("tool_result")
