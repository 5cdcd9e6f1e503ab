"""JSON as text: strict reading, and compact text that keeps digits, key order and escapes.

Tool inputs and unknown blocks are kept as their own JSON text, because every common reader changes some number: a
30-digit integer becomes a float, 1.10 becomes 1.1. What two readers could take for two values (doubled keys, NaN) is
refused here, at the door, so that what is shown is what is sent.
"""

from __future__ import annotations

import json
import re
from functools import lru_cache
from typing import Any

import msgspec

from hango.errors import Detail, Invalid, Malformed, Reason, TooDeep, TooLarge

MAX_DEPTH = 64
# Python refuses to read longer integers as numbers; they are kept as text anyway.
_LONG_INTEGER = 4000

# A string without its end runs to the end of the text: a match from every quote, so the time stays linear.
_STRINGS = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*(?:"|\\?\Z)', re.DOTALL)
_NOT_BRACKETS = bytes(sorted(set(range(256)) - set(b"[]{}")))
_ESCAPED_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")
# One escape of a JSON string: a pair of surrogates, any other code unit, or a letter.
_ESCAPE = re.compile(r"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|.)")
_NUL_ESCAPE = b"\\u0000"


def check_values(body: bytes, most: int) -> None:
    """Raise TooLarge for more values than that, before anything is made of them: small ones cost a hundred times their
    length."""
    if _values(body, 0, len(body)) <= most:
        return
    # String by string, and no further than needed: this is what the costly bodies come to.
    found, at = 0, 0
    for string in _STRINGS.finditer(body):
        found += _values(body, at, string.start())
        at = string.end()
        if found > most:
            break
    if found + _values(body, at, len(body)) > most:
        raise TooLarge(f"The body holds more than {most:,} values, which is the most taken here.")


def read(body: bytes) -> Any:
    """Read strictly. Raises Malformed (not UTF-8, not JSON, NaN, doubled keys), TooDeep, Invalid (`invalid_text`).

    Numbers come back as Python numbers; where digits matter, take them from the text through `msgspec.Raw`.
    """
    _check_depth(body)
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError:
        raise Malformed("The body is not UTF-8.") from None
    try:
        value = json.loads(text, object_pairs_hook=_object, parse_constant=_no_constant, parse_int=_integer)
    except Malformed:
        raise
    except (ValueError, RecursionError):
        raise Malformed("The body is not valid JSON.") from None
    if _NUL_ESCAPE in body or _ESCAPED_SURROGATE.search(body):
        check_text(value)
    return value


def check_text(value: Any) -> None:
    """Raise Invalid (`invalid_text`, with a JSON pointer) where a string holds NUL or half of a surrogate pair."""
    waiting: list[tuple[str, Any]] = [("", value)]
    while waiting:
        pointer, here = waiting.pop()
        if isinstance(here, str):
            if not is_text(here):
                message = f"The string at '{pointer or '/'}' holds NUL or half of a surrogate pair."
                raise Invalid(message, errors=[Detail(Reason.INVALID_TEXT, message, pointer=pointer)])
        elif isinstance(here, dict):
            for key, item in here.items():
                if not is_text(key):
                    message = f"A key at '{pointer or '/'}' holds NUL or half of a surrogate pair."
                    raise Invalid(message, errors=[Detail(Reason.INVALID_TEXT, message, pointer=pointer)])
                waiting.append((f"{pointer}/{key.replace('~', '~0').replace('/', '~1')}", item))
        elif isinstance(here, list):
            waiting.extend((f"{pointer}/{n}", item) for n, item in enumerate(here))


def is_text(value: str) -> bool:
    """True when Postgres and UTF-8 can hold the string."""
    if "\x00" in value:
        return False
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def compact(raw: bytes | str | msgspec.Raw) -> str:
    """The same JSON text without white space outside strings; digits, key order and escapes stay."""
    data = raw.encode() if isinstance(raw, str) else bytes(raw)
    return msgspec.json.format(data, indent=-1).decode()


def plain(text: str) -> str:
    """JSON text with its letters written out, and the shortest escape for what must be escaped.

    Two writers' texts of one value become one, so that they count the same: `caf\\u00e9` and `café`, `\\/` and `/`.
    """
    return _ESCAPE.sub(lambda match: _written_out(match.group()), text) if "\\" in text else text


def dumps(value: Any) -> str:
    """Compact JSON text of a value; `msgspec.Raw` inside it is written as it stands."""
    return msgspec.json.encode(value).decode()


def fields(text: str) -> dict[str, msgspec.Raw]:
    """The members of a JSON object as their own texts, in order."""
    return msgspec.json.decode(text.encode(), type=dict[str, msgspec.Raw])


def _values(text: bytes, start: int, end: int) -> int:
    """No less than there are, where no string holds the signs that are counted."""
    return text.count(b",", start, end) + text.count(b"[", start, end) + text.count(b"{", start, end)


def _check_depth(body: bytes) -> None:
    if body.count(b"[") + body.count(b"{") <= MAX_DEPTH:
        return
    depth = 0
    for byte in _STRINGS.sub(b"", body).translate(None, _NOT_BRACKETS):
        depth += 1 if byte in b"[{" else -1
        if depth > MAX_DEPTH:
            raise TooDeep


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs):
        raise Malformed("The body holds one key twice in an object.")
    return made


def _no_constant(name: str) -> Any:
    raise Malformed(f"The body holds {name}, which is not JSON.")


def _integer(digits: str) -> int | float:
    return int(digits) if len(digits) < _LONG_INTEGER else float("inf")


@lru_cache(maxsize=1024)
def _written_out(escape: str) -> str:
    letter = json.loads(f'"{escape}"')
    # Half of a pair has no letter.
    return json.dumps(letter, ensure_ascii=False)[1:-1] if letter == "\x00" or is_text(letter) else escape
