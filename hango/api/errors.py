"""Failures as RFC 9457 problem details. The one place that knows how an error looks on the wire."""

from __future__ import annotations

import math
from collections.abc import Mapping

import msgspec
from msgspec import UNSET, UnsetType
from starlette.responses import Response

from hango.errors import Detail, HangoError, NotFound, RateLimited, Unavailable

PROBLEM_JSON = "application/problem+json"
# Long enough for a restart of a database, short enough that a script does not give up.
UNAVAILABLE_RETRY_SECONDS = 2


# RFC 9110's words; those of Python's own table changed between its versions.
TITLES: Mapping[int, str] = {
    200: "OK",
    201: "Created",
    202: "Accepted",
    204: "No Content",
    400: "Bad Request",
    401: "Unauthorized",
    402: "Payment Required",
    404: "Not Found",
    405: "Method Not Allowed",
    409: "Conflict",
    412: "Precondition Failed",
    413: "Content Too Large",
    422: "Unprocessable Content",
    429: "Too Many Requests",
    500: "Internal Server Error",
    502: "Bad Gateway",
    503: "Service Unavailable",
    504: "Gateway Timeout",
}


class ProblemDetail(msgspec.Struct, frozen=True, omit_defaults=True):
    """One thing at fault. `part` is a part id, `pointer` an RFC 6901 pointer into the request body."""

    reason: str
    message: str
    part: str | UnsetType = UNSET
    pointer: str | UnsetType = UNSET


class ProblemDocument(msgspec.Struct, frozen=True):
    """RFC 9457 problem details. `code` and `reason` are closed sets for programs, `detail` is for people."""

    type: str
    title: str
    status: int
    detail: str
    code: str
    errors: list[ProblemDetail] | UnsetType = UNSET


def as_response(error: HangoError) -> Response:
    headers: dict[str, str] = {}
    if isinstance(error, RateLimited):
        headers["Retry-After"] = str(max(1, math.ceil(error.retry_after)))
    if isinstance(error, Unavailable):
        headers["Retry-After"] = str(UNAVAILABLE_RETRY_SECONDS)
    if error.status == 401:
        headers["WWW-Authenticate"] = 'Bearer realm="hango"'
    errors = [_detail(one) for one in error.errors]
    return problem(error.status, error.closed_code, str(error), errors=errors, headers=headers)


def problem(
    status: int,
    code: str,
    detail: str,
    *,
    errors: list[ProblemDetail] | None = None,
    headers: Mapping[str, str] | None = None,
) -> Response:
    body = ProblemDocument("about:blank", TITLES[status], status, detail, code, errors or UNSET)
    return Response(msgspec.json.encode(body), status, headers, media_type=PROBLEM_JSON)


def not_found() -> Response:
    """The one answer for what is not there, not yours, or has a malformed id."""
    return as_response(NotFound())


def internal() -> Response:
    """An unforeseen failure: its text stays inside."""
    return problem(500, "internal", "Something failed inside hango. It was logged; the request may be sent again.")


def _detail(detail: Detail) -> ProblemDetail:
    return ProblemDetail(
        reason=detail.reason.value,
        message=detail.message,
        part=UNSET if detail.part is None else detail.part,
        pointer=UNSET if detail.pointer is None else detail.pointer,
    )
