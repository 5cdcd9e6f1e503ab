"""Anthropic's Messages API: the body of a request, the call, and its token counter."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any
from urllib.parse import urlsplit

import msgspec

from hango import jsontext
from hango.chain.models import Models
from hango.chain.providers import anthropic_answer, wire
from hango.chain.providers.answers import as_response
from hango.chain.providers.http import Http
from hango.config.values import Secret
from hango.dialect import Dialect
from hango.errors import ProviderFailed
from hango.messages import Message, Request, Response, SystemText, ToolSpec, content_json

NAME = "anthropic"
PUBLIC_HOST = "api.anthropic.com"
VERSION = "2023-06-01"  # of the API, in a header
# Two seconds: an inspect waits for it, and an estimate is at hand.
COUNT_SECONDS = 2.0
COUNT_MOST = 1_000_000_000  # no body holds more tokens
COUNT_MAX_BYTES = 64 * 1024  # the answer is one number; an error page may come instead
COUNTED_KEYS = ("model", "messages", "system", "tools", "tool_choice", "thinking", "output_config")
EFFORTS = frozenset({"low", "medium", "high", "xhigh", "max"})

PARAMS = frozenset(
    {
        "temperature",
        "top_p",
        "top_k",
        "stop",
        "tool_choice",
        "parallel_tool_calls",
        "thinking",
        "reasoning_effort",
    }
)


class AnthropicProvider:
    """`key` None: nothing can be counted, and the public API answers nothing; another server may need none."""

    name = NAME

    def __init__(self, models: Models, http: Http, base_url: str, key: Secret | None = None) -> None:
        self._models = models
        self._http = http
        self._base_url = base_url.rstrip("/").removesuffix("/v1")
        self._key = key

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
            cache_marks=True,
            params=PARAMS if row.sampling else PARAMS - wire.SAMPLING,
        )

    def body(self, request: Request) -> bytes:
        return wire.to_bytes(self._members(request))

    @property
    def answers(self) -> bool:
        """False when the public API would refuse every call for want of a key."""
        return self._key is not None or urlsplit(self._base_url).hostname != PUBLIC_HOST

    async def complete(self, request: Request, *, deadline: float) -> Response:
        """Send one request. Never retries.

        Raises ProviderTimeout after `deadline` seconds, ProviderFailed when there is no answer to read.
        """
        answer = await self._http.ask(
            NAME,
            f"{self._base_url}/v1/messages",
            # A long history takes a while to write: other calls of this process must not wait for it.
            await asyncio.to_thread(self.body, request),
            headers=self._headers(),
            seconds=deadline,
        )
        names = partial(wire.own_names, request, self.dialect_for(request.model))
        read = partial(anthropic_answer.read, names=names)
        return await asyncio.to_thread(as_response, NAME, answer, read, self._http.hidden)

    async def count_tokens(self, request: Request) -> int:
        """Input tokens by the provider's own counter. Raises ProviderFailed or ProviderTimeout."""
        if self._key is None:
            raise ProviderFailed("There is no key for provider 'anthropic': set HANGO_ANTHROPIC_API_KEY.")
        members = self._members(request)
        answer = await self._http.ask(
            NAME,
            f"{self._base_url}/v1/messages/count_tokens",
            wire.to_bytes({key: members[key] for key in COUNTED_KEYS if key in members}),
            headers=self._headers(),
            seconds=COUNT_SECONDS,
            max_bytes=COUNT_MAX_BYTES,
        )
        return _counted(answer.body)

    def _headers(self) -> dict[str, str]:
        key = {"x-api-key": self._key.reveal()} if self._key is not None else {}
        return {"anthropic-version": VERSION} | key

    def _members(self, request: Request) -> dict[str, Any]:
        """The body's members in the order of the wire; parts that keep their own text are `Raw`."""
        request = wire.settle(request, self.dialect_for(request.model))
        mark = {"type": "ephemeral"} | ({"ttl": "1h"} if request.cache_ttl == "1h" else {})
        members: dict[str, Any] = {"model": request.model, "max_tokens": request.max_output_tokens}
        params = request.params
        members |= {key: params[key] for key in ("temperature", "top_p", "top_k") if key in params}
        if params.get("stop"):
            members["stop_sequences"] = params["stop"]
        if isinstance(params.get("thinking"), dict):
            members["thinking"] = params["thinking"]
        if params.get("reasoning_effort") in EFFORTS:
            members["output_config"] = {"effort": params["reasoning_effort"]}
        if request.tools:
            last = len(request.tools) - 1
            members["tools"] = [
                _tool(tool, mark if request.mark_last_tool and n == last else None)
                for n, tool in enumerate(request.tools)
            ]
        if choice := _tool_choice(params):
            members["tool_choice"] = choice
        if system := [_system(block, mark) for block in request.system if block.text]:
            members["system"] = system
        members["messages"] = msgspec.Raw(("[" + ",".join(map(_message, request.messages)) + "]").encode())
        return members


def _system(block: SystemText, mark: dict[str, str]) -> dict[str, Any]:
    return {"type": "text", "text": block.text} | ({"cache_control": mark} if block.marked else {})


def _tool(tool: ToolSpec, mark: dict[str, str] | None) -> dict[str, Any]:
    made: dict[str, Any]
    if tool.definition is not None:
        made = dict(jsontext.fields(tool.definition))
    else:
        made = {"name": tool.name}
        if tool.description:
            made["description"] = tool.description
        made["input_schema"] = msgspec.Raw(jsontext.compact(tool.input_schema).encode())
    return made | ({"cache_control": mark} if mark else {})


def _tool_choice(params: Any) -> dict[str, Any] | None:
    choice: dict[str, Any] | None = params.get("tool_choice")
    if params.get("parallel_tool_calls") is False:
        choice = choice or {"type": "auto"}
        if choice["type"] != "none":
            return choice | {"disable_parallel_tool_use": True}
    return choice


def _message(message: Message) -> str:
    return f'{{"role":"{message.role}","content":{content_json(message.content)}}}'


class _Count(msgspec.Struct):
    input_tokens: int


def _counted(answer: bytes) -> int:
    try:
        count = msgspec.json.decode(answer, type=_Count).input_tokens
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise ProviderFailed("The token counter of provider 'anthropic' gave no number.") from None
    if not 0 <= count <= COUNT_MOST:
        raise ProviderFailed("The token counter of provider 'anthropic' gave a number that cannot be.")
    return count
