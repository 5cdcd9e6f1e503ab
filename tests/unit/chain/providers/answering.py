"""Both adapters that answer over HTTP, side by side, for tests that hold for either."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from hango.chain.providers.anthropic import AnthropicProvider
from hango.chain.providers.http import Http
from hango.chain.providers.openai_compatible import OpenAICompatibleProvider
from hango.config.values import Secret
from tests.providers_server import chat, message
from tests.unit.chain.providers.making import MODELS

KEY = Secret("sk-canary-0123456789abcdef")
Adapter = AnthropicProvider | OpenAICompatibleProvider


@dataclass(frozen=True, slots=True)
class Wire:
    """One adapter, and how a server of its wire answers with a text."""

    name: str
    adapter: Callable[..., Adapter]
    path: str
    answer: Callable[..., dict[str, Any]]

    def at(self, url: str, http: Http, key: Secret | None = KEY) -> Adapter:
        return self.adapter(MODELS, http, url, key)

    def error(self, said: str, type: str = "api_error") -> dict[str, Any]:
        """The body of an error, as this wire writes it."""
        if self.name == "anthropic":
            return {"type": "error", "error": {"type": type, "message": said}, "request_id": "req_1"}
        return {"error": {"message": said, "type": type, "param": None, "code": None}}


ANTHROPIC_WIRE = Wire("anthropic", AnthropicProvider, "/v1/messages", message)
OPENAI_WIRE = Wire("openai", OpenAICompatibleProvider, "/chat/completions", chat)
WIRES = [ANTHROPIC_WIRE, OPENAI_WIRE]
