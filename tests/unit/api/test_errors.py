"""Failures on the wire: one status, one closed code and one sentence each."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from hango.api.errors import as_response, internal, not_found, problem
from hango.errors import Detail, HangoError, Invalid, RateLimited, Reason, Unauthenticated, Unavailable

PAGE = Path(__file__).resolve().parents[3] / "docs" / "http-api.md"


def every(kind: type[HangoError]) -> Iterator[type[HangoError]]:
    yield kind
    for below in kind.__subclasses__():
        yield from every(below)


# What people meet; a class of a test or of a command is not among them.
KINDS = [kind for kind in every(HangoError) if kind.__module__ == "hango.errors"]


def body(response: Any) -> dict[str, Any]:
    read: dict[str, Any] = msgspec.json.decode(response.body)
    return read


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: str(kind.__name__))
def test_every_failure_is_a_problem_document(kind: type[HangoError]) -> None:
    """RFC 9457: {type, title, status, detail, code}; the class's docstring is the sentence."""
    response = as_response(kind())

    assert response.media_type == "application/problem+json"
    assert body(response) == {
        "type": "about:blank",
        "title": body(response)["title"],
        "status": kind.status,
        "detail": (kind.__doc__ or "").split("\n\n", maxsplit=1)[0],
        "code": kind.code,
    }
    assert response.status_code == kind.status


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: str(kind.__name__))
def test_every_code_is_documented_with_its_status(kind: type[HangoError]) -> None:
    """docs/http-api.md lists the closed set of codes."""
    assert f"| `{kind.code}` | {kind.status} |" in PAGE.read_text(encoding="utf-8")


def test_a_broken_rule_has_its_first_reason_as_code() -> None:
    """422: every fault with its reason; absent part and pointer are not there."""
    error = Invalid(
        "Two faults.",
        errors=[Detail(Reason.BAD_PATH, "First.", pointer="/memory/0"), Detail(Reason.BAD_MODEL, "Second.", "tool:x")],
    )

    assert body(as_response(error)) == {
        "type": "about:blank",
        "title": body(as_response(error))["title"],
        "status": 422,
        "detail": "Two faults.",
        "code": "bad_path",
        "errors": [
            {"reason": "bad_path", "message": "First.", "pointer": "/memory/0"},
            {"reason": "bad_model", "message": "Second.", "part": "tool:x"},
        ],
    }


def test_who_must_wait_is_told_how_long() -> None:
    """429 and 503 carry Retry-After in whole seconds, at least one; 401 names the scheme."""
    assert as_response(RateLimited(retry_after=0.2)).headers["retry-after"] == "1"
    assert as_response(RateLimited(retry_after=11.1)).headers["retry-after"] == "12"
    assert int(as_response(Unavailable()).headers["retry-after"]) > 0
    assert as_response(Unauthenticated()).headers["www-authenticate"] == 'Bearer realm="hango"'


def test_the_answers_without_a_cause() -> None:
    """What is not there has one body; a fault of ours tells nothing; the router's refusals have codes too."""
    assert not_found().body == not_found().body
    assert body(internal())["code"] == "internal"
    refused = problem(405, "method_not_allowed", "x", headers={"Allow": "GET"})
    assert (refused.headers["allow"], body(refused)["title"]) == ("GET", "Method Not Allowed")
