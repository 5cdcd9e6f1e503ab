"""The HTTP session that all providers share: opened at the first call, closed with the process.

No redirect is followed, no proxy is taken from the environment, no cookie is kept, nothing is unpacked. Nothing is
sent twice; callers decide. What a provider answers with an error goes nowhere but into `ProviderFailed.said`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from io import BytesIO

import aiohttp

from hango.chain.providers.failures import MAX_ERROR_BYTES, as_failure, request_id
from hango.chain.providers.hiding import Hidden
from hango.chain.providers.sockets import make_factory
from hango.errors import ProviderFailed, ProviderFault, ProviderTimeout

CHUNK_BYTES = 64 * 1024
MAX_ANSWER_BYTES = 4 * 1024 * 1024
# The status of an error is known already: its text is worth no long wait.
ERROR_TEXT_SECONDS = 5.0
# Servers close idle connections after 5 s or later. A connection that is older here could be closed while a request is
# on its way, and nobody could say whether it was read.
IDLE_SECONDS = 4.0


@dataclass(frozen=True, slots=True)
class Answer:
    """What came with status 200."""

    body: bytes = field(repr=False)
    request_id: str | None = None


class Http:
    """One per process and event loop. `hidden` is what never stands in an error: the keys."""

    def __init__(self, *, max_bytes: int = MAX_ANSWER_BYTES, hidden: Hidden | None = None) -> None:
        self._max_bytes = max_bytes
        self.hidden = hidden or Hidden()
        self._session: aiohttp.ClientSession | None = None

    async def ask(
        self,
        provider: str,
        url: str,
        body: bytes,
        *,
        headers: Mapping[str, str],
        seconds: float,
        max_bytes: int | None = None,
    ) -> Answer:
        """Post JSON, once. Connecting, sending, waiting and reading take at most `seconds` together.

        Raises ProviderTimeout, and ProviderFailed for anything but a 200 with at most `max_bytes`. Nothing of the
        exchange is left when this ends, however it ends: the connection is closed or whole.
        """
        answer: aiohttp.ClientResponse | None = None
        limit = asyncio.timeout(seconds)
        try:
            async with limit:
                answer = await self._open().post(
                    url,
                    # In pieces: what was handed over as a whole would still go out after the call has ended.
                    data=BytesIO(body),
                    headers={"content-type": "application/json", "accept-encoding": "identity", **headers},
                    allow_redirects=False,
                )
                if answer.status != 200:
                    raise as_failure(provider, answer.status, answer.headers, await _error_text(answer), self.hidden)
                read = await _read(provider, answer, max_bytes or self._max_bytes, self.hidden)
                return Answer(read, request_id(answer.headers, self.hidden))
        except TimeoutError as error:
            if answer is not None and answer.status != 200:
                raise as_failure(provider, answer.status, answer.headers, b"", self.hidden) from None
            if limit.expired():
                raise ProviderTimeout(f"Provider '{provider}' did not answer within {seconds:g} s.") from None
            raise _cut(provider, error, answer, self.hidden) from None
        except (aiohttp.ClientConnectorError, ValueError) as error:
            raise _unreachable(provider, error) from None
        except (aiohttp.ClientError, OSError) as error:
            raise _cut(provider, error, answer, self.hidden) from None
        finally:
            # A whole answer has given its connection back already; any other connection ends here.
            if answer is not None:
                answer.close()

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None

    def _open(self) -> aiohttp.ClientSession:
        if self._session is None:
            self._session = aiohttp.ClientSession(
                # How many calls there are at once is decided where they are made.
                connector=aiohttp.TCPConnector(
                    limit=0, keepalive_timeout=IDLE_SECONDS, socket_factory=make_factory(self._max_bytes)
                ),
                auto_decompress=False,
                trust_env=False,
                cookie_jar=aiohttp.DummyCookieJar(),
                timeout=aiohttp.ClientTimeout(total=None, sock_connect=None),
            )
        return self._session


# The text of an error may hold the address with what stands in it: its class is enough.


def _unreachable(provider: str, error: Exception) -> ProviderFailed:
    """There was no connection, so that nothing has been sent."""
    setting, why = f"HANGO_{provider.upper()}_BASE_URL", type(error).__name__
    message = f"Provider '{provider}' cannot be reached ({why}): check the network and {setting}."
    return ProviderFailed(message, fault=ProviderFault.UNREACHABLE)


def _cut(provider: str, error: Exception, answer: aiohttp.ClientResponse | None, hidden: Hidden) -> ProviderFailed:
    """The connection ended too early, before an answer or in it. What was sent may have been taken."""
    message = f"The answer of provider '{provider}' was cut or is no HTTP ({type(error).__name__})."
    return _spoilt(message, ProviderFault.PROTOCOL, answer, hidden)


async def _read(provider: str, answer: aiohttp.ClientResponse, max_bytes: int, hidden: Hidden) -> bytes:
    if _is_packed(answer):
        message = f"Provider '{provider}' packed its answer though it was asked not to."
        raise _spoilt(message, ProviderFault.PROTOCOL, answer, hidden)
    read = await _at_most(answer, max_bytes)
    if read is None:
        message = f"The answer of provider '{provider}' is larger than {max_bytes:,} bytes."
        raise _spoilt(message, ProviderFault.TOO_LARGE, answer, hidden)
    return read


def _spoilt(
    message: str, fault: ProviderFault, answer: aiohttp.ClientResponse | None, hidden: Hidden
) -> ProviderFailed:
    status, id = (answer.status, request_id(answer.headers, hidden)) if answer is not None else (None, None)
    return ProviderFailed(message, fault=fault, http_status=status, request_id=id)


async def _error_text(answer: aiohttp.ClientResponse) -> bytes:
    """The body of an error as far as it can be had; what is missing changes nothing of the failure."""
    if _is_packed(answer):
        return b""
    limit = asyncio.timeout(ERROR_TEXT_SECONDS)
    try:
        async with limit:
            return await _at_most(answer, MAX_ERROR_BYTES) or b""
    except (aiohttp.ClientError, OSError, ValueError):  # a TimeoutError is an OSError
        return b""


async def _at_most(answer: aiohttp.ClientResponse, max_bytes: int) -> bytes | None:
    """None when there is more."""
    if (answer.content_length or 0) > max_bytes:
        return None
    read = bytearray()
    async for chunk in answer.content.iter_chunked(CHUNK_BYTES):
        read += chunk
        if len(read) > max_bytes:
            return None
    return bytes(read)


def _is_packed(answer: aiohttp.ClientResponse) -> bool:
    return answer.headers.get("content-encoding", "identity").strip().lower() not in ("", "identity")
