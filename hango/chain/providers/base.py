"""What a provider can do: write a body; some also count, some also answer."""

from __future__ import annotations

from typing import Protocol

from hango.dialect import Dialect
from hango.messages import Request, Response


class Provider(Protocol):
    """Writes requests in the words of one API. Pure: no clock, no random number, no network."""

    @property
    def name(self) -> str: ...

    @property
    def dialect(self) -> Dialect:
        """What the wire takes, for a model that is in no table."""
        ...

    def dialect_for(self, model: str) -> Dialect:
        """What the wire takes for a model (without the provider's prefix)."""
        ...

    def body(self, request: Request) -> bytes:
        """The request's compact JSON as the API gets it. Equal requests give equal bytes in every process."""
        ...


class TokenCounter(Protocol):
    """Counts what a request would cost to read. No model runs."""

    async def count_tokens(self, request: Request) -> int:
        """Raises ProviderFailed or ProviderTimeout; the caller falls back to its estimate."""
        ...


class Completer(Protocol):
    """Answers a request."""

    async def complete(self, request: Request, *, deadline: float) -> Response:
        """Send one request. Never retries.

        Raises ProviderTimeout after `deadline` seconds, ProviderFailed when there is no answer to read.
        """
        ...
