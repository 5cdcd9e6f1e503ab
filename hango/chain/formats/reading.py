"""How strictly a file is read: no doubled keys, no NaN, values of the expected type, faults with their place."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any, TypeVar

import msgspec

from hango import jsontext
from hango.errors import Detail, HangoError, Invalid, Malformed, Reason, TooLarge
from hango.messages import Block, read_content

T = TypeVar("T")

# One escape of a JSON string: a pair of surrogates, any other code unit, or a letter.
_ESCAPE = re.compile(rb"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|.)", re.DOTALL)
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F][0-9a-fA-F]{2}")
_STEP = re.compile(r"\.([^.\[]+)|\[(\d+)\]")
# 2001-09-09 to 5138 in seconds: outside it, a number of the file is no time.
_EARLIEST, _LATEST = 1e9, 1e11


def strict(body: bytes) -> tuple[bytes, Invalid | None]:
    """The body as every later step reads it, and the fault in its strings, if any.

    Raises Malformed or TooDeep. A string with NUL or half of a surrogate pair is refused only after the parts are
    known, so that the fault can name its part: until then halves stand as NUL, which the decoder can read.
    """
    try:
        jsontext.read(body)
    except Invalid as fault:
        return _ESCAPE.sub(_halves_as_nul, body), fault
    return body, None


def decode(raw: bytes | msgspec.Raw, type: type[T], at: str = "") -> T:
    """A value of the type. Raises Invalid (`bad_field`) that names the place under `at`, never the content."""
    try:
        return msgspec.json.decode(raw, type=type)
    except msgspec.ValidationError as error:
        sentence, _, path = str(error).partition(" - at `$")
        pointer = at + "".join(f"/{name or number}" for name, number in _STEP.findall(path.rstrip("`")))
        raise _bad_field(f"{sentence} at '{pointer or '/'}'.", pointer) from None
    except msgspec.DecodeError:
        raise _bad_field(f"The value at '{at or '/'}' cannot be read.", at) from None


def blocks(raw: msgspec.Raw, at: str) -> tuple[Block, ...]:
    """Blocks of a content in hango's own words, as they came; null makes none. A fault has the pointer."""
    try:
        return () if is_nothing(raw) else read_content(raw)
    except Invalid as error:
        details = [Detail(each.reason, each.message, each.part, at) for each in error.errors]
        raise Invalid(f"{error} It stands at '{at}'.", errors=details) from None


def is_object(raw: bytes | msgspec.Raw) -> bool:
    return bytes(raw).lstrip()[:1] == b"{"


def is_array(raw: bytes | msgspec.Raw) -> bool:
    return bytes(raw).lstrip()[:1] == b"["


def is_string(raw: bytes | msgspec.Raw) -> bool:
    return bytes(raw).lstrip()[:1] == b'"'


def is_nothing(raw: bytes | msgspec.Raw) -> bool:
    """True for a member that is not there, and for null."""
    return bytes(raw).strip() in (b"", b"null")


def arguments(text: str) -> msgspec.Raw:
    """The arguments of a call as its input: the text itself when it is a JSON object, else the text as a string."""
    raw = text.encode("utf-8", "surrogatepass")
    if is_object(raw):
        try:
            jsontext.read(raw)
            return msgspec.Raw(jsontext.compact(raw).encode())
        except (Malformed, Invalid):
            pass
    return msgspec.Raw(jsontext.dumps(text).encode())


def time_of(value: Any) -> datetime | None:
    """A time from RFC 3339 text or seconds since 1970; None for anything else."""
    if isinstance(value, str):
        try:
            made = datetime.fromisoformat(value)
        except ValueError:
            return None
        # The calendar's ends are left out: in another time zone they would fall outside it.
        return (made if made.tzinfo else made.replace(tzinfo=UTC)) if 1970 <= made.year <= 9000 else None
    if isinstance(value, int | float) and not isinstance(value, bool) and _EARLIEST < value < _LATEST:
        return datetime.fromtimestamp(value, UTC)
    return None


def with_provider(provider: str, model: str | None) -> str | None:
    """`<provider>/<model>`; a name that has this provider or `offline` before it stays."""
    if not model:
        return None
    return model if model.startswith((f"{provider}/", "offline/")) else f"{provider}/{model}"


def guess_provider(model: str | None) -> str | None:
    """`<provider>/<model>` for formats that do not say whose model it is."""
    if not model:
        return None
    bare = model.removeprefix("anthropic/")
    return with_provider("anthropic" if bare.startswith("claude") else "openai", model)


@contextmanager
def on_line(number: int) -> Iterator[None]:
    """A fault inside names the line."""
    try:
        yield
    except TooLarge:
        raise
    except HangoError as error:
        message = f"Line {number}: {error}"
        details = error.errors or (Detail(Reason.BAD_LINE, message),)
        raise type(error)(message, errors=details) from None


def bad_line(number: int, sentence: str) -> Invalid:
    return Invalid.because(Reason.BAD_LINE, f"Line {number}: {sentence}")


def _bad_field(message: str, pointer: str) -> Invalid:
    return Invalid.because(Reason.BAD_FIELD, message, pointer=pointer)


def _halves_as_nul(match: re.Match[bytes]) -> bytes:
    escape = match.group(0)
    return rb"\u0000" if len(escape) == 6 and _SURROGATE.fullmatch(escape) else escape
