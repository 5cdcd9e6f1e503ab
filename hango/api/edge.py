"""The outermost layer: security headers on every answer, span and log line of a request, a 500 that tells nothing."""

from __future__ import annotations

import time

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from hango import logs, telemetry
from hango.api.errors import internal
from hango.logs import Log

HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "X-Frame-Options": "DENY",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
}
CLIENT_CLOSED = 499  # as proxies log it; nothing is sent


class Edge:
    """ASGI middleware. Logs the route's template, never the path or the query: both may hold what people wrote."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        status = 0
        started = time.perf_counter()

        async def send_with_headers(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
            elif message["type"] == "http.response.body" and scope["method"] == "HEAD":
                message = {**message, "body": b""}
            await send(message)

        with telemetry.request_span(scope["method"], Headers(scope=scope)) as request:
            try:
                await self._app(scope, receive, send_with_headers)
            except ClientDisconnect:
                status = status or CLIENT_CLOSED
            except Exception as error:
                request.failed(error)
                logs.error(Log.UNEXPECTED, error, route=_route(scope))
                if not status:
                    await internal()(scope, receive, send_with_headers)
            finally:
                request.answered(_route(scope), status)
                logs.info(
                    Log.REQUEST,
                    method=scope["method"],
                    route=_route(scope),
                    status=status,
                    ms=round((time.perf_counter() - started) * 1000, 1),
                )


def _route(scope: Scope) -> str:
    return getattr(scope.get("route"), "path", "-")
