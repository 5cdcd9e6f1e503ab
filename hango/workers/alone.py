"""A fault of one must not keep the others waiting."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Unpack

from hango import logs
from hango.domain import Principal
from hango.errors import Unavailable
from hango.logs import Fields, Log


@asynccontextmanager
async def alone(
    ping: Callable[[], Awaitable[None]], principal: Principal, **ids: Unpack[Fields]
) -> AsyncIterator[None]:
    """What fails inside is logged, and met again the next time.

    Raises Unavailable when PostgreSQL is away, by `ping`: then it is the fault of none of them.
    """
    found: Fields = {**ids, "tenant_id": principal.tenant_id}
    try:
        yield
    except Unavailable as error:
        await ping()
        logs.warning(Log.UNAVAILABLE, error, **found)
    except Exception as error:
        logs.error(Log.UNEXPECTED, error, **found)
