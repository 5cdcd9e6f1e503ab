"""Failures: few, named, each with one status and one code."""

from __future__ import annotations

import inspect

import pytest

from hango import errors
from hango.errors import Detail, HangoError, Invalid, NotFound, RateLimited, Reason

# The closed set of the public API: class, status, code.
TABLE = [
    ("Conflict", 409, "conflict"),
    ("HangoError", 500, "internal"),
    ("Invalid", 422, "invalid"),
    ("Malformed", 400, "not_json"),
    ("NotFound", 404, "not_found"),
    ("PreconditionFailed", 412, "precondition_failed"),
    ("ProviderFailed", 502, "provider_failed"),
    ("ProviderTimeout", 504, "provider_timeout"),
    ("QuotaExceeded", 402, "quota_exceeded"),
    ("RateLimited", 429, "rate_limited"),
    ("TooDeep", 400, "too_deep"),
    ("TooLarge", 413, "too_large"),
    ("TooManyTries", 429, "too_many_tries"),
    ("Unauthenticated", 401, "unauthenticated"),
    ("Unavailable", 503, "unavailable"),
]


def classes() -> list[type[HangoError]]:
    return [kind for _, kind in inspect.getmembers(errors, inspect.isclass) if issubclass(kind, HangoError)]


def test_the_table_of_errors_is_whole() -> None:
    """`code` is a closed set: each class has one status and one code; there is no 403."""
    assert sorted((kind.__name__, kind.status, kind.code) for kind in classes()) == TABLE


def test_the_tree_in_the_docstring_is_the_code() -> None:
    """The drawn tree names every class with its status and code."""
    lines = (errors.__doc__ or "").splitlines()

    for name, status, code in TABLE[:1] + TABLE[2:]:
        if name in ("RunActive", "TooDeep", "TooManyTries"):  # drawn as a code of its parent
            continue
        assert any(line.split()[:2] == [name, str(status)] and code in line.split() for line in _joined(lines)), name


def _joined(lines: list[str]) -> list[str]:
    return [line.replace(",", " ").replace("the first detail's reason  else", "") for line in lines]


@pytest.mark.parametrize("kind", classes())
def test_a_bare_error_says_its_docstring(kind: type[HangoError]) -> None:
    """str(error) of a bare class is its docstring: one sentence or two for people."""
    error = kind()

    assert str(error) == (kind.__doc__ or "").split("\n\n")[0]
    assert str(error).endswith(".")
    assert error.errors == ()
    assert error.closed_code == kind.code


def test_an_invalid_carries_its_first_reason_as_code() -> None:
    """Programs branch on the code without looking into `errors`."""
    error = Invalid.because(Reason.REPLACE_TOOL, "The part 'tool:a' cannot be replaced.", part="tool:a")

    assert (error.status, error.closed_code) == (422, "replace_tool")
    assert error.errors == (Detail(Reason.REPLACE_TOOL, "The part 'tool:a' cannot be replaced.", "tool:a"),)


def test_not_yours_and_not_there_are_one_error() -> None:
    """There is no 403: not there and not yours alike."""
    assert (NotFound().status, str(NotFound())) == (404, "There is no such thing here.")


def test_a_rate_limit_says_when_to_come_back() -> None:
    """429 with Retry-After."""
    assert RateLimited(retry_after=2.5).retry_after == 2.5


def test_reasons_are_words() -> None:
    """`reason` is a closed set of lower-case words; its name and its value are one word."""
    assert [reason.value for reason in Reason] == [reason.name.lower() for reason in Reason]
