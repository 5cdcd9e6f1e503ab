"""Bodies: strict JSON, errors with reason and pointer and no content, digits kept, bombs refused in time."""

from __future__ import annotations

import time
from typing import Annotated, ClassVar

import msgspec
import pytest
from pydantic import Field

from hango.api import bodies
from hango.api.fields import Body, RawJson, Time, Whole, parse_time
from hango.errors import Detail, Invalid, Malformed, Reason, TooDeep, TooLarge

CANARY = "canary-7f3a"


class Inner(Body):
    content: RawJson
    n: int = 0


class Outer(Body):
    raw_fields: ClassVar[tuple[tuple[str, ...], ...]] = (("items", "*", "content"),)

    name: Annotated[str, Field(max_length=20)]
    items: Annotated[list[Inner], Field(default_factory=list)]
    at: Time | None = None


def details(content: bytes) -> list[Detail]:
    with pytest.raises(Invalid) as refused:
        bodies.parse_body(content, Outer)
    return list(refused.value.errors)


def test_raw_fields_keep_digits_order_and_escapes() -> None:
    """Tool inputs and unknown blocks are kept as their own JSON text."""
    raw = rb'{"z":123456789012345678901234567890,"a":1.10,"e":"caf\u00e9"}'
    body = bodies.parse_body(b'{"name":"x","items":[{"content": ' + raw + b' ,"n":1},{"content":"s"}]}', Outer)

    assert [bytes(item.content) for item in body.items] == [raw, b'"s"']


@pytest.mark.parametrize(
    ("content", "reason", "pointer"),
    [
        (b"{}", Reason.MISSING_FIELD, "/name"),
        (b'{"name":"x","a~/b":1}', Reason.UNKNOWN_FIELD, "/a~0~1b"),
        (b'{"name":7}', Reason.BAD_FIELD, "/name"),
        (b'{"name":null}', Reason.BAD_FIELD, "/name"),
        (b'{"name":"x","items":[{"content":1,"n":true}]}', Reason.BAD_FIELD, "/items/0/n"),
        (b'{"name":"x","items":[{"content":1},7]}', Reason.BAD_FIELD, "/items/1"),
        (b'{"name":"x","items":{"0":1}}', Reason.BAD_FIELD, "/items"),
        (b'{"name":"x","items":[{"n":1}]}', Reason.MISSING_FIELD, "/items/0/content"),
        (b'{"name":"x","at":"2026-11-30T09:00:00"}', Reason.BAD_FIELD, "/at"),
        (b"[]", Reason.BAD_FIELD, ""),
        (b'"text"', Reason.BAD_FIELD, ""),
        (b"null", Reason.BAD_FIELD, ""),
        (b'{"name":"a\\u0000b"}', Reason.INVALID_TEXT, "/name"),
        (b'{"name":"\\ud800"}', Reason.INVALID_TEXT, "/name"),
        (b'{"name":"x","items":[{"content":{"deep":["\\udc00"]}}]}', Reason.INVALID_TEXT, "/items/0/content/deep/0"),
    ],
)
def test_a_broken_rule_names_the_field(content: bytes, reason: Reason, pointer: str) -> None:
    """422: a rule is broken, naming the place with an RFC 6901 pointer."""
    assert [(one.reason, one.pointer) for one in details(content)] == [(reason, pointer)]


def test_every_fault_is_named_at_once() -> None:
    """All faults of a body come in one answer."""
    found = details(b'{"items":[{"content":1,"n":"x"},{"content":2,"q":1}]}')

    assert [(one.reason, one.pointer) for one in found] == [
        (Reason.MISSING_FIELD, "/name"),
        (Reason.BAD_FIELD, "/items/0/n"),
        (Reason.UNKNOWN_FIELD, "/items/1/q"),
    ]


def test_what_was_sent_is_never_repeated() -> None:
    """No error holds a value of the body."""
    sent = [
        f'{{"name":"{CANARY}-much-too-long-for-a-name"}}',
        f'{{"name":"x","items":[{{"content":1,"n":"{CANARY}"}}]}}',
        f'{{"name":"x","at":"{CANARY}"}}',
        f'{{"name":"x","items":"{CANARY}"}}',
    ]
    for content in sent:
        with pytest.raises(Invalid) as refused:
            bodies.parse_body(content.encode(), Outer)
        assert CANARY not in str(refused.value) + repr(refused.value.errors)


@pytest.mark.parametrize(
    "content",
    [b"", b" ", b"{", b'{"name":"x"', b'{"name":"x"}}', b"\xff\xfe", b'{"name":"\xff"}', b'{"name":NaN}',
     b'{"name":Infinity}', b'{"name":-Infinity}', b'{"name":"a","name":"b"}', b"{'name':'x'}", b'{"name":"x",}',
     b'{"name":"x\n"}', b'\xef\xbb\xbf{"name":"x"}', b'{"name":01}'],
)  # fmt: skip
def test_what_is_not_json_is_400(content: bytes) -> None:
    """400 not_json: not JSON, bad UTF-8, NaN or Infinity, duplicate keys."""
    with pytest.raises(Malformed) as refused:
        bodies.parse_body(content, Outer)

    assert refused.value.closed_code == "not_json"


@pytest.mark.parametrize(
    "content",
    [b"[" * 65, b'{"a":' * 65 + b"1" + b"}" * 65, b"[" * bodies.VALUES_MOST, b"[" * 65 + b'"' + b'\\"' * 2_000_000],
    ids=["lists", "objects", "as many as there may be", "a string without end"],
)
def test_nesting_over_64_is_refused_in_linear_time(content: bytes) -> None:
    """400 too_deep; the search for the depth takes no more than the reading would."""
    started = time.perf_counter()
    with pytest.raises(TooDeep):
        bodies.parse_body(content, Outer)

    # Two orders of magnitude above the time of a linear search, four below that of a quadratic one.
    assert time.perf_counter() - started < 20


def test_64_levels_are_taken() -> None:
    """Nesting up to 64 is no fault."""
    deep = b"[" * 61 + b"]" * 61
    body = bodies.parse_body(b'{"name":"x","items":[{"content":' + deep + b"}]}", Outer)

    assert bytes(body.items[0].content) == deep


def test_a_long_integer_is_kept_as_its_digits() -> None:
    """A number of 5,000 digits is text to us: kept, not read."""
    digits = b"9" * 5000
    body = bodies.parse_body(b'{"name":"x","items":[{"content":' + digits + b"}]}", Outer)

    assert bytes(body.items[0].content) == digits


@pytest.mark.parametrize(
    ("text", "utc"),
    [
        ("2026-11-30T09:00:00Z", "2026-11-30T09:00:00+00:00"),
        ("2026-11-30t09:00:00.5z", "2026-11-30T09:00:00.500000+00:00"),
        ("2026-11-30T09:00:00.123456789+02:00", "2026-11-30T07:00:00.123456+00:00"),
    ],
)
def test_times_are_rfc_3339_and_become_utc(text: str, utc: str) -> None:
    """Times are RFC 3339 UTC; an offset is counted in."""
    assert parse_time(text).isoformat() == utc


class Digits(Body):
    n: Whole


@pytest.mark.parametrize("text", ["", " 5", "5 ", "+5", "-0", "05", "1_000", "5.0", "1e3", "٥", "0x5", "9" * 30])
def test_a_number_in_a_query_is_plain_digits(text: str) -> None:
    """Numbers in a query are never read with Python's leniency."""
    with pytest.raises(ValueError, match="whole number"):
        Digits.model_validate({"n": text})


def test_a_pointer_escapes_and_ends() -> None:
    """RFC 6901: `~` is `~0`, `/` is `~1`; a pointer made of long keys is cut."""
    assert bodies.pointer("a/b", 0, "~c") == "/a~1b/0/~0c"
    assert len(bodies.pointer("x" * 100_000)) == bodies.POINTER_CHARS


def test_raw_is_written_back_as_it_came() -> None:
    """A raw field in a reply is embedded as its own text."""
    body = bodies.parse_body(b'{"name":"x","items":[{"content":{"n":1.10}}]}', Outer)

    assert msgspec.json.encode({"content": body.items[0].content}) == b'{"content":{"n":1.10}}'


def test_a_body_of_too_many_values_is_too_large() -> None:
    """8 MiB of empty lists is a 413 before anything is made of it."""
    with pytest.raises(TooLarge):
        bodies.parse_body(b"[" + b"[]," * bodies.VALUES_MOST + b"[]]", Outer)


def test_of_very_many_faults_the_number_is_told() -> None:
    """A hundred thousand unknown fields are refused in the time that reading them takes, and none is repeated."""
    names = ",".join(f'"{CANARY}{number}":0' for number in range(100_000))

    with pytest.raises(Invalid) as refused:
        bodies.parse_body(f'{{"name":"x",{names}}}'.encode(), Outer)

    assert (str(refused.value), refused.value.errors) == ("The body does not fit: 100,000 fields at fault.", ())
