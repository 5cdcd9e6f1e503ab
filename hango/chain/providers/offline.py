"""The offline provider: answers from the context it is sent, without network and without a model.

It is there so that leaving a memory or a message out visibly changes an answer, on any machine, for nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import msgspec
import toktok

from hango.chain import estimator
from hango.chain.models import Models
from hango.chain.providers import blocks as wire_blocks
from hango.chain.providers import wire
from hango.chain.providers.extract import Passage, best_quotes
from hango.dialect import Dialect
from hango.errors import ProviderTimeout
from hango.messages import (
    Block,
    Message,
    MessageRole,
    Request,
    Response,
    StopReason,
    Usage,
    content_json,
    is_call,
    is_result,
    text_block,
)

NAME = "offline"

# All of api.md's params: they are shown in the body and change nothing, but for `stop`.
PARAMS = frozenset(
    {
        "temperature",
        "top_p",
        "top_k",
        "stop",
        "seed",
        "tool_choice",
        "parallel_tool_calls",
        "thinking",
        "reasoning_effort",
    }
)

# An answer begins with what differs from request to request: lists and comparisons show its first line alone.
WHAT_IT_IS = "I am hango's offline answerer, not a language model: I only quote what this request holds."
NOTHING = "Nothing in this request shares a word with the question."
NO_QUESTION = "There is no text of the user in this request to answer."


class OfflineProvider:
    """Deterministic: equal requests have equal answers."""

    name = NAME

    def __init__(self, models: Models) -> None:
        self._models = models

    @property
    def dialect(self) -> Dialect:
        return self.dialect_for("")

    def dialect_for(self, model: str) -> Dialect:
        row = self._models.row(f"{NAME}/{model}")
        return Dialect(
            name=NAME,
            block_types=None,
            thinking=True,
            system_in_history=row.system_in_history,
            tool_blocks_need_tools=row.tools_required_for_tool_blocks,
            cache_marks=False,
            params=PARAMS,
        )

    def body(self, request: Request) -> bytes:
        request = wire.settle(request, self.dialect_for(request.model))
        members: dict[str, Any] = {
            "model": request.model,
            "max_output_tokens": request.max_output_tokens,
            **{key: request.params[key] for key in sorted(request.params)},
            "system": [block.text for block in request.system],
            "tools": [msgspec.Raw(estimator.tool_text(tool).encode()) for tool in request.tools],
            "messages": [
                {
                    "role": MessageRole(message.role).value,
                    "content": msgspec.Raw(content_json(message.content).encode()),
                }
                for message in request.messages
            ],
        }
        return wire.to_bytes(members)

    async def complete(self, request: Request, *, deadline: float) -> Response:
        """Answer from the request. Raises ProviderTimeout when a very long one takes more than `deadline` seconds."""
        try:
            async with asyncio.timeout(deadline):
                return await asyncio.to_thread(answer, request)
        except TimeoutError:
            raise ProviderTimeout(f"The offline answerer did not finish within {deadline:g} s.") from None


def answer(request: Request) -> Response:
    """The answer to a request's last text of the user. Pure."""
    question = _question(request)
    passages = list(_passages(request, question))
    text = _worded(passages, question.view.text if question else None)
    text, stop_reason = _limited(text, request)
    usage = Usage(input_tokens=_input_tokens(request), output_tokens=estimator.count([text])[0])
    return Response((text_block(text),), stop_reason, usage)


def _input_tokens(request: Request) -> int:
    """All that was sent, counted as an estimate counts it: the figures of a call and of an inspect agree."""
    texts = [system.text for system in request.system] + [estimator.tool_text(tool) for tool in request.tools]
    sized = estimator.MESSAGE_OVERHEAD * len(request.messages)
    for message in request.messages:
        for block in message.content:
            more, tokens = estimator.block_texts(block)
            texts += more
            sized += tokens
    return sized + sum(estimator.count(texts))


def _worded(passages: list[Passage], question: str | None) -> str:
    if question is None:
        return f"{NO_QUESTION}\n{WHAT_IT_IS}"
    quotes = best_quotes(passages, question)
    if not quotes:
        return f"{NOTHING}\n{WHAT_IT_IS}"
    lines = [f"“{quote.sentence}” (from {quote.place})" for quote in quotes]
    return "\n".join([*lines, WHAT_IT_IS])


def _limited(text: str, request: Request) -> tuple[str, StopReason]:
    stops = request.params.get("stop") or ()
    places = [text.index(stop) for stop in ([stops] if isinstance(stops, str) else stops) if stop and stop in text]
    if places:
        return text[: min(places)], StopReason.STOP_SEQUENCE
    cut, total = toktok.truncate(text, request.max_output_tokens, estimator.ENCODING)
    return (cut, StopReason.MAX_TOKENS) if total > request.max_output_tokens else (text, StopReason.END_TURN)


def _question(request: Request) -> Block | None:
    """The last text of the user."""
    for message in reversed(request.messages):
        if message.role is MessageRole.USER:
            for block in reversed(message.content):
                if block.type == "text":
                    return block
    return None


def _passages(request: Request, question: Block | None) -> Iterator[Passage]:
    """Every text of the request but the question, with its place counted as the body counts."""
    for n, system in enumerate(request.system, start=1):
        yield Passage(f"system block {n}", system.text)
    for n, message in enumerate(request.messages, start=1):
        for block in message.content:
            if block is not question and (passage := _passage(n, message, block)) is not None:
                yield passage


def _passage(n: int, message: Message, block: Block) -> Passage | None:
    view = block.view
    if view.type == "text":
        return Passage(f"message {n}, {MessageRole(message.role).value}", view.text or "")
    if is_result(view.type):
        return Passage(f"a tool's result in message {n}", wire_blocks.split_text(view.content))
    if is_call(view.type):
        return Passage(f"a call of {view.name or 'a tool'} in message {n}", bytes(view.input).decode())
    if view.type == "document":
        source = estimator.read_source(view.source)
        return Passage(f"a document in message {n}", source.data) if source.type == "text" else None
    return None
