"""OpenAI's Chat Completions, as the public API and compatible servers take it: the body of a request, and the call."""

from __future__ import annotations

import asyncio
import re
from functools import lru_cache, partial
from typing import Any
from urllib.parse import urlsplit

import msgspec

from hango import jsontext
from hango.chain.models import Models
from hango.chain.providers import openai_answer, wire
from hango.chain.providers.answers import as_response
from hango.chain.providers.http import Http
from hango.chain.providers.openai_parts import part, parts_of, shown_content, split_result
from hango.config.values import Secret
from hango.dialect import Dialect
from hango.messages import Block, Message, MessageRole, Request, Response, SystemText, ToolSpec

NAME = "openai"
PUBLIC_HOST = "api.openai.com"

# The public API refuses longer ids of calls.
MAX_TOOLS = 128  # of the public API
CALL_ID = re.compile(r"[a-zA-Z0-9_-]{1,40}", re.ASCII)
BLOCK_TYPES = frozenset({"text", "image", "document", "search_result", "tool_use", "tool_result"})
PARAMS = frozenset({"temperature", "top_p", "stop", "seed", "tool_choice", "parallel_tool_calls", "reasoning_effort"})
# Compatible servers sample with it; the public API refuses the key.
COMPATIBLE_PARAMS = PARAMS | {"top_k"}
KEPT_TOOLS, KEPT_CHARS = 512, 8_192
AS_THEY_ARE = ("temperature", "top_p", "top_k", "stop", "seed", "reasoning_effort")


class OpenAICompatibleProvider:
    """The public API differs from compatible servers in the name of the answer's limit and in `top_k`.

    `key` None: the public API answers nothing; many compatible servers need none.
    """

    name = NAME

    def __init__(self, models: Models, http: Http, base_url: str, key: Secret | None = None) -> None:
        self._models = models
        self._http = http
        self._base_url = base_url.rstrip("/")
        self._key = key
        self._public = urlsplit(base_url).hostname == PUBLIC_HOST

    @property
    def dialect(self) -> Dialect:
        return self.dialect_for("")

    def dialect_for(self, model: str) -> Dialect:
        row = self._models.row(f"{NAME}/{model}")
        params = PARAMS if self._public else COMPATIBLE_PARAMS
        return Dialect(
            name=NAME,
            block_types=BLOCK_TYPES,
            thinking=False,
            system_in_history=row.system_in_history,
            tool_blocks_need_tools=row.tools_required_for_tool_blocks,
            cache_marks=False,
            tool_id=CALL_ID,
            max_tools=MAX_TOOLS if self._public else None,
            params=params if row.sampling else params - wire.SAMPLING,
        )

    def body(self, request: Request) -> bytes:
        request = wire.settle(request, self.dialect_for(request.model))
        params = request.params
        limit = "max_completion_tokens" if self._public else "max_tokens"
        members: dict[str, Any] = {"model": request.model, limit: request.max_output_tokens}
        members |= {key: params[key] for key in AS_THEY_ARE if key in params}
        if request.tools:
            members["tools"] = [_tool(tool) for tool in request.tools]
            if "tool_choice" in params:
                members["tool_choice"] = _tool_choice(params["tool_choice"])
            if "parallel_tool_calls" in params:
                members["parallel_tool_calls"] = params["parallel_tool_calls"]
        members["messages"] = [
            *_system([block for block in request.system if block.text]),
            *(made for message in request.messages for made in _messages(message)),
        ]
        return wire.to_bytes(members)

    @property
    def public(self) -> bool:
        """Whether this is OpenAI itself, so that its models and prices are OpenAI's."""
        return self._public

    @property
    def answers(self) -> bool:
        """False when the public API would refuse every call for want of a key."""
        return self._key is not None or not self._public

    async def complete(self, request: Request, *, deadline: float) -> Response:
        """Send one request. Never retries.

        Raises ProviderTimeout after `deadline` seconds, ProviderFailed when there is no answer to read.
        """
        headers = {"authorization": f"Bearer {self._key.reveal()}"} if self._key is not None else {}
        answer = await self._http.ask(
            NAME,
            f"{self._base_url}/chat/completions",
            # A long history takes a while to write: other calls of this process must not wait for it.
            await asyncio.to_thread(self.body, request),
            headers=headers,
            seconds=deadline,
        )
        names = partial(wire.own_names, request, self.dialect_for(request.model))
        read = partial(openai_answer.read, names=names)
        return await asyncio.to_thread(as_response, NAME, answer, read, self._http.hidden)


def _system(blocks: list[SystemText]) -> list[dict[str, Any]]:
    """One message: many servers take only one. Its parts keep the blocks apart."""
    if not blocks:
        return []
    return [{"role": "system", "content": shown_content([part(text=block.text) for block in blocks])}]


def _tool(tool: ToolSpec) -> msgspec.Raw:
    """Its JSON. Tools come back at every call and are most of a short request; what is large is not kept."""
    size = len(tool.description) + len(tool.input_schema) + len(tool.definition or "")
    return _kept_tool(tool) if size <= KEPT_CHARS else _made_tool(tool)


def _made_tool(tool: ToolSpec) -> msgspec.Raw:
    if tool.definition is not None:
        return msgspec.Raw(wire.to_bytes(jsontext.fields(tool.definition)))
    schema = jsontext.fields(tool.input_schema)
    # The public API refuses an object schema that names no properties.
    schema.setdefault("properties", msgspec.Raw(b"{}"))
    function: dict[str, Any] = {"name": tool.name}
    if tool.description:
        function["description"] = tool.description
    return msgspec.Raw(wire.to_bytes({"type": "function", "function": function | {"parameters": schema}}))


_kept_tool = lru_cache(maxsize=KEPT_TOOLS)(_made_tool)


def _tool_choice(choice: dict[str, str]) -> Any:
    if choice["type"] == "tool":
        return {"type": "function", "function": {"name": choice["name"]}}
    return {"any": "required"}.get(choice["type"], choice["type"])


def _messages(message: Message) -> list[dict[str, Any]]:
    """One message of the history as the wire's: results are messages of their own and stand first."""
    if message.role is MessageRole.ASSISTANT:
        return _assistant(message)
    made: list[dict[str, Any]] = []
    parts: list[dict[str, Any]] = []
    for block in message.content:
        if block.type == "tool_result":
            content, others = split_result(block)
            made.append({"role": "tool", "tool_call_id": block.view.tool_use_id, "content": content})
            parts += others
        else:
            parts += parts_of(block, only_text=message.role is MessageRole.SYSTEM)
    if parts:
        made.append({"role": MessageRole(message.role).value, "content": shown_content(parts)})
    return made


def _assistant(message: Message) -> list[dict[str, Any]]:
    calls = [_call(block) for block in message.content if block.type == "tool_use"]
    # The wire takes only text from an assistant: what else there is stands as the words that describe it.
    parts = [one for block in message.content for one in parts_of(block, only_text=True)]
    if not calls and not parts:
        return []
    made: dict[str, Any] = {"role": "assistant", "content": shown_content(parts) if parts else None}
    return [made | ({"tool_calls": calls} if calls else {})]


def _call(block: Block) -> dict[str, Any]:
    view = block.view
    return {
        "id": view.id,
        "type": "function",
        "function": {"name": view.name, "arguments": bytes(view.input).decode() or "{}"},
    }
