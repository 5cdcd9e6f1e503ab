"""The HTTP session that all providers share: opened at the first call, closed with the process.

No redirect is followed, no proxy is taken from the environment, no cookie is kept, nothing is unpacked. Nothing
is tried twice; callers decide. What a provider answers with an error is not passed on: it may hold the key or the
content.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

import aiohttp

from hango.errors import ProviderFailed, ProviderTimeout

CHUNK_BYTES = 64 * 1024


class Http:
    """One per process and event loop."""

    def __init__(self) -> None:
        self._session: aiohttp.ClientSession | None = None

    async def post(self, url: str, body: bytes, *, headers: Mapping[str, str], seconds: float, max_bytes: int) -> bytes:
        """Post JSON and give back the answer's body. The whole exchange takes at most `seconds`.

        Raises ProviderTimeout, and ProviderFailed for anything but a 200 with at most `max_bytes`.
        """
        try:
            async with (
                asyncio.timeout(seconds),
                self._open().post(
                    url,
                    data=body,
                    headers={"content-type": "application/json", "accept-encoding": "identity", **headers},
                    allow_redirects=False,
                ) as answer,
            ):
                if answer.status != 200:
                    raise ProviderFailed(f"The provider answered with status {answer.status}.")
                return await _read(answer, max_bytes)
        except TimeoutError:
            raise ProviderTimeout(f"The provider did not answer within {seconds:g} s.") from None
        except (aiohttp.ClientError, OSError, ValueError) as error:
            # The text of the error may hold the address with what stands in it: its class is enough.
            raise ProviderFailed(f"The provider cannot be reached ({type(error).__name__}).") from None

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None

    def _open(self) -> aiohttp.ClientSession:
        if self._session is None:
            self._session = aiohttp.ClientSession(
                auto_decompress=False,
                trust_env=False,
                cookie_jar=aiohttp.DummyCookieJar(),
                timeout=aiohttp.ClientTimeout(total=None),
            )
        return self._session


async def _read(answer: aiohttp.ClientResponse, max_bytes: int) -> bytes:
    if answer.headers.get("content-encoding", "identity") != "identity":
        raise ProviderFailed("The provider packed its answer though it was asked not to.")
    read = bytearray()
    async for chunk in answer.content.iter_chunked(CHUNK_BYTES):
        read += chunk
        if len(read) > max_bytes:
            raise ProviderFailed(f"The provider's answer is larger than {max_bytes:,} bytes.")
    return bytes(read)
