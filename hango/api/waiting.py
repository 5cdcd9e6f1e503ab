"""How a request asks to wait: `Prefer: wait=N` (RFC 7240) or `?wait=N`; and how it is known that its client went away.

wish = waiting.wish_of(call)
found = await waiting.until(call, id, look, is_ended, wish)
Reply(body, 200, wish.headers())
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, TypeVar
from uuid import UUID

from pydantic import Field
from starlette.requests import ClientDisconnect, Request

from hango.api.endpoint import Call
from hango.api.fields import Query, Whole

_TOKEN = r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+"  # noqa: S105  the grammar's word for a name
# One preference of a list: up to a comma that is in no quotes. It matches any text, so a scan is linear.
_ELEMENT = re.compile(r'(?:[^",]|"(?:[^"\\]|\\.?)*+"?)++', re.DOTALL)
_WAIT = re.compile(rf'[ \t]*(?P<name>{_TOKEN})[ \t]*=[ \t]*(?:"(?P<quoted>[0-9]+)"|(?P<plain>[0-9]+))[ \t]*(?:;.*)?')
_NAME = re.compile(rf"[ \t]*({_TOKEN})[ \t]*(?:[=;].*)?", re.DOTALL)
T = TypeVar("T")

_DIGITS_READ = 9  # a number with more is over any bound, and so are its first nine


class WaitQuery(Query):
    """`wait`: seconds until the answer is given in any case; longer than HANGO_LONG_WAIT_MAX is that."""

    wait: Annotated[Whole, Field(ge=0)] | None = None


@dataclass(frozen=True, slots=True)
class Wish:
    """How long a request wants to wait, within what is allowed; `is_preference`: the header asked for it."""

    seconds: float = 0.0
    is_preference: bool = False

    def headers(self) -> dict[str, str]:
        """That the preference was followed. For an answer that came in time."""
        return {"Preference-Applied": f"wait={int(self.seconds)}"} if self.is_preference else {}


def wish(request: Request, query: WaitQuery | None, most: float) -> Wish:
    """What the query says, else the header, else no wait; at most `most` seconds."""
    if query is not None and query.wait is not None:
        return Wish(min(query.wait, most))
    preferred = preferred_wait(request.headers.getlist("prefer"))
    return Wish() if preferred is None else Wish(min(preferred, most), is_preference=True)


def wish_of(call: Call[Any, Any, Any]) -> Wish:
    """Of a call whose query is a WaitQuery, within HANGO_LONG_WAIT_MAX."""
    return wish(call.request, call.query, call.deps.settings.long_wait_max)


async def until(
    call: Call[Any, Any, Any],
    id: UUID,
    look: Callable[[], Awaitable[T]],
    is_ended: Callable[[T], bool],
    wish: Wish,
) -> T:
    """What `look` finds of a job when it has ended, or when the wait is over; whoever waits keeps no place to work in.

    Raises what `look` raises, and ClientDisconnect.
    """
    with call.place.aside():
        return await call.runtime.waiters.wait(
            id, call.principal.key_id, look, is_ended, seconds=wish.seconds, gone=leaving(call.request)
        )


def preferred_wait(headers: list[str]) -> int | None:
    """The seconds of the first `wait` in the Prefer headers; None where it is missing or is no number.

    Other preferences, parameters and what is no preference at all are passed over, as RFC 7240 asks for.
    """
    for header in headers:
        for element in _ELEMENT.findall(header):
            name = _NAME.fullmatch(element)
            if name and name[1].lower() == "wait":
                return _seconds(element)
    return None


def leaving(request: Request) -> Callable[[], Coroutine[Any, Any, None]]:
    """What ends when the client has gone away. For a request whose body has been read or is not wanted: what still
    comes of it is thrown away.
    """
    return partial(_disconnected, request)


async def while_there(request: Request, work: Coroutine[Any, Any, T], seconds: float) -> T:
    """What the work gives or raises. As `leaving`, for a request whose body has been read.

    The work is cancelled when its client goes away, which raises ClientDisconnect, and after so many seconds, which
    raises TimeoutError.
    """
    working, watch = asyncio.create_task(work), asyncio.create_task(_disconnected(request), name="client")
    try:
        await asyncio.wait({working, watch}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        if working.done():
            return working.result()
        raise ClientDisconnect if watch.done() else TimeoutError
    finally:
        working.cancel()
        watch.cancel()
        await asyncio.gather(working, watch, return_exceptions=True)


def _seconds(element: str) -> int | None:
    found = _WAIT.fullmatch(element)
    if not found:
        return None
    digits = (found["quoted"] or found["plain"]).lstrip("0") or "0"
    return int(digits[:_DIGITS_READ])


async def _disconnected(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
