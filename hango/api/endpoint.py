"""One path of the table made an ASGI endpoint. The order is the contract: 503, 401, 429, 404, 413/400/422, handler."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send
from typing_extensions import TypeVar

from hango import logs
from hango.api import auth, authz, bodies
from hango.api.errors import as_response, problem
from hango.api.fields import Body, Query
from hango.api.headers import Header
from hango.api.limits import Limiter, OverLimit
from hango.api.places import Place, Places
from hango.api.waiters import Waiters
from hango.chain.deps import Deps
from hango.domain import Principal
from hango.errors import HangoError, Unavailable
from hango.logs import Log
from hango.workers.broker import Doorbell

JSON = "application/json"

TargetT = TypeVar("TargetT")
BodyT = TypeVar("BodyT")
QueryT = TypeVar("QueryT", default=Any)
ReplyT = TypeVar("ReplyT", default=Any)


@dataclass(frozen=True, slots=True)
class Runtime:
    """What a process opened for its requests."""

    deps: Deps
    limiter: Limiter
    waiters: Waiters
    doorbell: Doorbell
    places: Places = field(default_factory=Places)


@dataclass(frozen=True, slots=True)
class Call(Generic[TargetT, BodyT, QueryT]):
    """A request that may be answered: who asks, the loaded target, the valid body and query."""

    principal: Principal
    target: TargetT
    body: BodyT
    query: QueryT
    runtime: Runtime
    request: Request
    place: Place

    @property
    def deps(self) -> Deps:
        return self.runtime.deps


@dataclass(frozen=True, slots=True)
class PublicCall:
    """A request that needs no key."""

    runtime: Runtime
    request: Request


@dataclass(frozen=True, slots=True)
class Reply(Generic[ReplyT]):
    """An answer that is more than its body. `body` bytes are sent as they are; `status` None means the row's."""

    body: ReplyT
    status: int | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    media_type: str = JSON


@dataclass(frozen=True, slots=True)
class Row:
    """One row of the table of routes.

    `handler` takes a Call and returns a reply's Struct, bytes of JSON, a Reply, or None for 204; a PUBLIC one takes a
    PublicCall. `reply` is the type of the answer, or a tuple of types. `takes` says in words what a handler reads by
    itself from `call.request.stream()`: then there is no `body`.
    """

    method: str
    path: str
    access: authz.Access[Any]
    handler: Callable[[Any], Awaitable[Any]]
    summary: str
    reply: Any = None
    body: type[Body] | None = None
    query: type[Query] | None = None
    status: int = 200
    takes: str | None = None
    media_type: str = JSON
    also: tuple[int, ...] = ()  # other statuses of success, with the same body
    asks: tuple[Header, ...] = ()  # headers of a request, beside its key
    gives: tuple[Header, ...] = ()  # headers of its success, beside those of every answer
    refuses: tuple[int, ...] = ()  # statuses of refusal beside those that follow from the row


def created(location: str, body: ReplyT) -> Reply[ReplyT]:
    return Reply(body, 201, {"Location": location})


class Endpoint:
    """All rows of one path."""

    def __init__(self, rows: Sequence[Row]) -> None:
        self._rows = {row.method: row for row in rows}
        if "GET" in self._rows:
            self._rows["HEAD"] = self._rows["GET"]
        self._allow = ", ".join(sorted({*self._rows, "OPTIONS"}))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        row = self._rows.get(request.method)
        if row is not None:
            response = await answer(row, request)
        elif request.method == "OPTIONS":
            response = Response(status_code=204, headers={"Allow": self._allow})
        else:
            response = problem(
                405,
                "method_not_allowed",
                f"This path takes {self._allow}.",
                headers={"Allow": self._allow},
            )
        await response(scope, receive, send)


async def answer(row: Row, request: Request) -> Response:
    """Answer one request by its row; every foreseen failure becomes a problem document."""
    runtime: Runtime = request.app.state.runtime
    limit_headers: Mapping[str, str] = {}
    try:
        if row.access is authz.PUBLIC:
            return _response(row, await row.handler(PublicCall(runtime, request)))
        async with runtime.places.place() as place:
            principal = await auth.authenticate(runtime.deps.store, request.headers.get("authorization"))
            allowance = await runtime.limiter.take(principal)
            limit_headers = allowance.headers() if allowance else {}
            target = await authz.admit(row.access, runtime.deps.store, principal, request.path_params)
            query = bodies.read_query(request, row.query) if row.query else None
            with place.aside():
                body = await bodies.read_body(request, row.body) if row.body else None
            call = Call(principal, target, body, query, runtime, request, place)
            response = _response(row, await row.handler(call))
    except HangoError as error:
        if error.status >= 500:
            logs.warning(Log.UNAVAILABLE if isinstance(error, Unavailable) else Log.FAILED, error, route=row.path)
        response = as_response(error)
        if isinstance(error, OverLimit):
            limit_headers = error.allowance.headers()
    response.headers.update(limit_headers)
    return response


def _response(row: Row, made: Any) -> Response:
    if isinstance(made, Response):
        return made
    reply = made if isinstance(made, Reply) else Reply(made, media_type=row.media_type)
    status = reply.status or row.status
    if reply.body is None:
        return Response(status_code=status, headers=reply.headers)
    content = reply.body if isinstance(reply.body, bytes) else msgspec.json.encode(reply.body)
    return Response(content, status, reply.headers, media_type=reply.media_type)
