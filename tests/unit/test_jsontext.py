"""JSON as text: what is refused at the door, and what survives it."""

from __future__ import annotations

import json
import string
from typing import Any

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from hango import jsontext
from hango.errors import Detail, HangoError, Invalid, Malformed, Reason, TooDeep, TooLarge

# Digits that a common reader changes, and escapes that a common writer changes.
CURIOUS_TEXTS = (
    "100000000000000000000000000001",
    "9007199254740993",
    "1.10",
    "1E400",
    "-0.0",
    '"caf\\u00e9"',
    '"\\/"',
    '"\\ud83d\\ude00"',
    '{"b":1.0,"a":2.50}',
    '{" ":" a  b "}',
)


@pytest.mark.parametrize(
    ("body", "kind", "code"),
    [
        (b"", Malformed, "not_json"),
        (b"{", Malformed, "not_json"),
        (b"{} {}", Malformed, "not_json"),
        (b"[1,]", Malformed, "not_json"),
        (b"{'a':1}", Malformed, "not_json"),
        (b"\xff", Malformed, "not_json"),
        (b'"\xed\xa0\x80"', Malformed, "not_json"),  # half of a surrogate pair, written in bytes
        (b"\xef\xbb\xbf{}", Malformed, "not_json"),
        (b"NaN", Malformed, "not_json"),
        (b'{"a":[Infinity]}', Malformed, "not_json"),
        (b"-Infinity", Malformed, "not_json"),
        (b'{"a":1,"a":2}', Malformed, "not_json"),
        (b'{"a":{"b":1,"\\u0062":2}}', Malformed, "not_json"),  # one key, written in two ways
        (b"[" * 65 + b"]" * 65, TooDeep, "too_deep"),
        (b'{"a":' * 65 + b"1" + b"}" * 65, TooDeep, "too_deep"),
        (b"[" * 100_000, TooDeep, "too_deep"),
        (b'"\\u0000"', Invalid, "invalid_text"),
        (b'{"\\u0000":1}', Invalid, "invalid_text"),
        (b'["\\ud800"]', Invalid, "invalid_text"),
        (b'["\\udc00\\ud800"]', Invalid, "invalid_text"),
    ],
)
def test_what_two_readers_could_take_for_two_things_is_refused(body: bytes, kind: type[HangoError], code: str) -> None:
    """400 not_json: not JSON, bad UTF-8, NaN or Infinity, duplicate keys; too_deep over 64; 422 invalid_text."""
    with pytest.raises(kind) as raised:
        jsontext.read(body)

    assert (type(raised.value), raised.value.closed_code) == (kind, code)


@pytest.mark.parametrize(
    ("body", "value"),
    [
        (b'{"a":[1,2.5,null,true,"x"]}', {"a": [1, 2.5, None, True, "x"]}),
        (b" [ ] \n", []),
        (b"[" * 64 + b"]" * 64, json.loads("[" * 64 + "]" * 64)),
        (b'"' + b"[" * 500 + b'"', "[" * 500),  # brackets in a text nest nothing
        (b'"\\"[\\\\"', '"[\\'),
        (b'"\\ud83d\\ude00"', "\U0001f600"),
        (b'"\\\\u0000"', "\\u0000"),  # an escaped backslash, no NUL
        (b"1" * 3999, int("1" * 3999)),
        (b"1" * 5000, float("inf")),  # Python refuses to read it; its digits are kept as text
    ],
)
def test_what_is_json_is_read(body: bytes, value: Any) -> None:
    """JSON in, UTF-8; up to 64 levels; numbers as Python's own."""
    assert jsontext.read(body) == value


@pytest.mark.parametrize(
    ("body", "fits"),
    [
        (b"[1,2,3]", True),
        (b"[1,2,3,4]", False),
        (b'{"a":[{}]}', True),
        (b'{"a":[{},{}]}', False),
        (b'["a,[{\\",[{",2]', True),  # what stands in a text is no value
        (b"[" * 1000, False),
    ],
)
def test_values_are_counted_before_they_are_read(body: bytes, fits: bool) -> None:
    """Many small values cost far more than their length: over a bound the body is too large."""
    if fits:
        jsontext.check_values(body, 3)
        return
    with pytest.raises(TooLarge) as raised:
        jsontext.check_values(body, 3)
    assert str(raised.value) == "The body holds more than 3 values, which is the most taken here."


def test_a_text_that_cannot_be_stored_is_named_by_its_place() -> None:
    """422 invalid_text: NUL or a lone surrogate in a string, naming the pointer."""
    with pytest.raises(Invalid) as raised:
        jsontext.read(b'{"a/b":[{"~":"\\u0000"}]}')

    message = "The string at '/a~1b/0/~0' holds NUL or half of a surrogate pair."
    assert raised.value.errors == (Detail(Reason.INVALID_TEXT, message, pointer="/a~1b/0/~0"),)


def test_a_refusal_never_repeats_what_it_refuses() -> None:
    """Content of messages is never in an error."""
    for body in (
        b'{"secret-4711":1,"secret-4711":2}',
        b'["secret-4711\\u0000"]',
        b'{"secret-4711\\u0000":1}',
        b"secret-4711",
    ):
        with pytest.raises(HangoError) as raised:
            jsontext.read(body)
        assert "secret-4711" not in str(raised.value)


texts = st.text(st.characters(codec="utf-8", exclude_characters="\x00"))
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=12,
)


@given(json_values, st.booleans())
def test_reading_gives_what_was_written(value: Any, ascii_only: bool) -> None:
    """Any JSON value comes back as it is, escaped or not, indented or not."""
    written = json.dumps(value, ensure_ascii=ascii_only, indent=2).encode()

    assert jsontext.read(written) == value


@given(json_values, st.booleans())
def test_compact_takes_white_space_off_and_nothing_else(value: Any, ascii_only: bool) -> None:
    """Digits, key order and escapes survive: the compact text is the text without white space outside strings."""
    spread = json.dumps(value, ensure_ascii=ascii_only, indent=3)

    assert jsontext.compact(spread) == json.dumps(value, ensure_ascii=ascii_only, separators=(",", ":"))


@pytest.mark.parametrize("text", CURIOUS_TEXTS)
def test_curious_texts_survive(text: str) -> None:
    """Numbers keep their digits, 2^53 and beyond; escapes and key order stay."""
    nested = f'{{"x":[{text}]}}'

    assert jsontext.compact(f' {{ "x" : [ {text} ] }} ') == nested
    assert jsontext.compact(nested) == nested
    assert jsontext.dumps({"x": [msgspec.Raw(text.encode())]}) == nested
    assert {key: bytes(raw).decode() for key, raw in jsontext.fields(nested).items()} == {"x": f"[{text}]"}


def test_fields_keep_their_order() -> None:
    """The members of an object come in the order of the text."""
    letters = string.ascii_lowercase[::-1]
    text = "{" + ",".join(f'"{letter}":{n}' for n, letter in enumerate(letters)) + "}"

    assert list(jsontext.fields(text)) == list(letters)


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ('"caf\\u00e9"', '"café"'),
        ('"\\uD83D\\uDE00"', '"\U0001f600"'),
        ('"\\u001f\\u00e9"', '"\\u001fé"'),
        ('"\\u0022\\u005c\\u000a\\/"', '"\\"\\\\\\n/"'),  # what must stay escaped has one form
        ('"\\\\u0041"', '"\\\\u0041"'),  # an escaped backslash, then letters: as in a path of Windows
        ('"\\u0000"', '"\\u0000"'),
        ('"\\ud800"', '"\\ud800"'),
        ('"\\ud800\\u0041"', '"\\ud800A"'),
        ("no escapes", "no escapes"),
    ],
)
def test_plain_writes_letters_out(text: str, plain: str) -> None:
    """There is one way to count `caf\\u00e9` and `café`; what must stay escaped stays so."""
    assert jsontext.plain(text) == plain


@given(json_values)
@example("\\u0041")
def test_two_writers_give_one_plain_text(value: Any) -> None:
    """Writing letters out changes no value, and two serialisers' texts become one."""
    escaped = json.dumps(value, ensure_ascii=True, separators=(",", ":"))
    written = json.dumps(value, ensure_ascii=False, separators=(",", ":"))

    assert json.loads(jsontext.plain(escaped)) == value
    assert jsontext.plain(escaped) == jsontext.plain(written) == written
