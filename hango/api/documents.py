"""The API's two documents: /openapi.json for programs, /docs for people. Made once a process, at the first question."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import msgspec

from hango.api import docs_page, openapi
from hango.api.endpoint import PublicCall, Reply, Row


class Documents:
    def __init__(self, rows: Sequence[Row]) -> None:
        self._rows = rows

    @cached_property
    def openapi(self) -> bytes:
        return msgspec.json.encode(openapi.document(self._rows))

    @cached_property
    def page(self) -> bytes:
        return docs_page.render(openapi.document(self._rows)).encode()


async def show_openapi(call: PublicCall) -> bytes:
    return _documents(call).openapi


async def show_page(call: PublicCall) -> Reply[bytes]:
    headers = {"Content-Security-Policy": docs_page.CONTENT_SECURITY_POLICY}
    return Reply(_documents(call).page, headers=headers, media_type="text/html; charset=utf-8")


def _documents(call: PublicCall) -> Documents:
    documents: Documents = call.request.app.state.documents
    return documents
