"""Headers and bodies of errors: the time to wait, the id of the call, the words without keys."""

from __future__ import annotations

import base64
import json
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hango.chain.providers.failures import MOST_SAID_CHARACTERS, as_failure, request_id, retry_after
from hango.chain.providers.hiding import Hidden
from hango.config.values import Secret

NOW = datetime(2026, 11, 30, 12, 0, 0, tzinfo=UTC)
KEY = "sk-ant-api03-Ab+/=_-0123456789"


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": " 7 "}, 7.0),
        ({"retry-after": "0"}, 0.0),
        ({"retry-after": "1.5"}, 1.5),
        ({"retry-after": "1000000000"}, 3600.0),
        ({"retry-after": "-1"}, None),
        ({"retry-after": "1e9"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after": "٧"}, None),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "9" * 5000}, None),
        ({"retry-after": "Mon, 30 Nov 2026 12:00:30 GMT"}, 30.0),
        ({"retry-after": "Mon, 30 Nov 2026 13:00:30 +0100"}, 30.0),
        ({"retry-after": "Mon, 30 Nov 2026 12:00:30 -0000"}, 30.0),
        ({"retry-after": "Mon, 30 Nov 2020 12:00:30 GMT"}, 0.0),
        ({"retry-after": "Fri, 31 Dec 9999 23:59:59 GMT"}, 3600.0),
        ({"retry-after": "Fri, 99 Dec 9999 23:59:59 GMT"}, None),
        ({"retry-after-ms": "1500"}, 1.5),
        ({"retry-after-ms": "1500", "retry-after": "9"}, 1.5),
        ({"retry-after-ms": "soon", "retry-after": "9"}, 9.0),
    ],
)
def test_retry_after(headers: dict[str, str], seconds: float | None) -> None:
    """Seconds or a date, an hour at most; what nobody can read counts as none."""
    assert retry_after(headers, now=NOW) == seconds


@given(st.text(max_size=40), st.text(max_size=40))
def test_retry_after_never_raises(one: str, other: str) -> None:
    """Whatever a header holds: a number from 0 to 3,600, or none."""
    found = retry_after({"retry-after": one, "retry-after-ms": other}, now=NOW)

    assert found is None or 0 <= found <= 3600


@pytest.mark.parametrize(
    ("headers", "id"),
    [
        ({}, None),
        ({"request-id": "req_1"}, "req_1"),
        ({"x-request-id": "req_2"}, "req_2"),
        ({"request-id": "req_1", "x-request-id": "req_2"}, "req_1"),
        ({"request-id": "x" * 500}, "x" * 128),
        ({"request-id": "a\x00\x1b[2Jb\u202ec\udcff é"}, "a[2Jbc"),
        ({"request-id": "\x00"}, None),
        ({"request-id": ""}, None),
        ({"request-id": KEY}, "***"),
        ({"x-request-id": f"req_1 Bearer {KEY[:10]}\x00{KEY[10:]} a"}, "req_1 *** a"),
        ({"request-id": "x" * 110 + f" {KEY}"}, "x" * 110 + " ***"),
    ],
)
def test_request_id(headers: dict[str, str], id: str | None) -> None:
    """At most 128 printable ASCII characters; a provider that repeats its key there is not believed."""
    assert request_id(headers, Hidden([Secret(KEY)])) == id


def said(body: Any) -> str | None:
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    return as_failure(
        "openai", 400, {}, raw, Hidden([Secret(KEY), Secret("none"), Secret("sk-short-key"), Secret("")])
    ).said


@pytest.mark.parametrize(
    "body",
    [
        {"type": "error", "error": {"type": "invalid_request_error", "message": "Too long."}},
        {"error": {"message": "Too long.", "type": "invalid_request_error", "code": None}},
        {"error": "Too long."},
        {"object": "error", "message": "Too long."},
        {"detail": "Too long."},
    ],
)
def test_the_words_of_an_error(body: dict[str, Any]) -> None:
    """Both APIs' shapes, and those of servers like them."""
    assert said(body) == "Too long."


@pytest.mark.parametrize(
    "body", [b"", b"<html>", b"\xff", b"[]", b"7", {}, {"error": None}, {"error": {"message": ""}}]
)
def test_an_error_without_words(body: Any) -> None:
    """Nothing to read is nothing said."""
    assert said(body) is None


def test_words_are_short_and_of_one_line() -> None:
    """500 characters at most, and no control character or sign that turns a line around."""
    assert said({"error": "x" * 5000}) == "x" * MOST_SAID_CHARACTERS
    assert said({"error": "a\nb\x1b[2J\x9bc\u202ed\u200be"}) == "a b [2J c d e"


@pytest.mark.parametrize(
    ("words", "left"),
    [
        (f"Key {KEY} is bad.", "Key *** is bad."),
        (f"Key {quote(KEY, safe='')} is bad.", "Key *** is bad."),
        (f"Key {base64.b64encode(KEY.encode()).decode()} is bad.", "Key *** is bad."),
        (f"Key {base64.b64encode(b'sk-short-key').decode()} is bad.", "Key *** is bad."),
        (f"Key {KEY[:20]}... is bad.", "Key *** is bad."),
        (f"Key {KEY[:12]} is bad.", "Key *** is bad."),
        ("Key none is bad, nonetheless.", "Key *** is bad, nonetheless."),
        ("Key sk-proj-********abcd is bad.", "Key *** is bad."),
        ("Key hango_abc_def, is bad.", "Key ***, is bad."),
        ("Header 'Authorization: Bearer abc.def' is bad.", "Header 'Authorization: ***' is bad."),
        ("The task-list and the mask-image stay.", "The task-list and the mask-image stay."),
    ],
)
def test_keys_are_taken_out(words: str, left: str) -> None:
    """The configured keys in every form that servers echo, and whatever looks like a key."""
    assert said({"error": {"message": words}}) == left


def test_a_key_at_the_cut_is_taken_out() -> None:
    """Keys go before the words are cut: no beginning of one is left at the end."""
    words = said({"error": "x" * (MOST_SAID_CHARACTERS - 5) + " " + KEY}) or ""

    assert words.endswith("x ***")


@given(st.text(max_size=30), st.text(max_size=30), st.sampled_from([KEY, "sk-" + "a" * 20, "hango_1_2345"]))
def test_no_key_survives(before: str, after: str, key: str) -> None:
    """Whatever stands around it."""
    hidden = Hidden([Secret(KEY), Secret("sk-" + "a" * 20), Secret("hango_1_2345")])

    assert key not in hidden.one_line(before + key + after, 500)
