"""How a text becomes a setting's value: durations, sizes, addresses, secrets. Reads no variable."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Generic, TypeVar
from urllib.parse import SplitResult, unquote, urlsplit

T = TypeVar("T")
E = TypeVar("E", bound=StrEnum)

UNITS_OF_TIME = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0}  # seconds
UNITS_OF_SIZE = {"": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}  # bytes
LONGEST_SECONDS = 366 * 24 * 3600.0
LARGEST_BYTES = 1 << 40
LOOPBACK = re.compile(r"localhost|127(?:\.\d{1,3}){3}|::1", re.ASCII | re.IGNORECASE)
HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")


class BadValue(ValueError):
    """The text does not fit: the rest of a sentence that starts with the variable's name."""


class LogLevel(StrEnum):
    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


class LogFormat(StrEnum):
    TEXT = "text"  # for a person at a terminal
    JSON = "json"  # one event, one line


class Secret:
    """A text that is not to be seen: str, repr and format give `***`. Equal by text."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def reveal(self) -> str:
        """The text itself, for the one call that needs it."""
        return self._text

    def __str__(self) -> str:
        return "***"

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and other._text == self._text

    def __hash__(self) -> int:
        return hash(self._text)

    def __reduce__(self) -> str:
        raise TypeError("a secret is not to be pickled or copied into another form")


class SecretUrl(Secret):
    """An address that may hold a password. It is shown without account, password and query."""

    __slots__ = ()

    def __str__(self) -> str:
        parts = urlsplit(self._text)
        account, _, place = parts.netloc.rpartition("@")
        return f"{parts.scheme}://{'***@' if account else ''}{place}{parts.path}"


@dataclass(frozen=True, slots=True)
class Reader(Generic[T]):
    """How one kind of value is read and shown. `read` raises BadValue."""

    takes: str
    read: Callable[[str], T]
    show: Callable[[T], str] = str
    secret: bool = False


def _seconds(written: str) -> float:
    found = re.fullmatch(r"(\d+(?:\.\d+)?) ?([smh]?)", written, re.ASCII)
    value = float(found[1]) * UNITS_OF_TIME[found[2]] if found else 0.0
    if not 0 < value <= LONGEST_SECONDS:
        raise BadValue(f"is {written!r}, which is no duration: write it like 120s, 2m or 1h, more than 0.")
    return value


def _size(written: str) -> int:
    found = re.fullmatch(r"(\d{1,15}) ?(|KiB|MiB|GiB)", written, re.ASCII)
    value = int(found[1]) * UNITS_OF_SIZE[found[2]] if found else 0
    if not 0 < value <= LARGEST_BYTES:
        raise BadValue(f"is {written!r}, which is no size: write it like 4MiB, 512KiB or a number of bytes.")
    return value


def _shown_size(value: int) -> str:
    unit = next(unit for unit in ("GiB", "MiB", "KiB", "") if value % UNITS_OF_SIZE[unit] == 0)
    return f"{value // UNITS_OF_SIZE[unit]}{unit}"


def _flag(written: str) -> bool:
    if written.lower() in ("true", "yes", "on", "1"):
        return True
    if written.lower() in ("false", "no", "off", "0"):
        return False
    raise BadValue(f"is {written!r}: write true or false.")


def whole(least: int, most: int) -> Reader[int]:
    """A whole number in a range that includes both ends."""

    def read(written: str) -> int:
        value = int(written) if re.fullmatch(r"\d{1,15}", written, re.ASCII) else least - 1
        if not least <= value <= most:
            raise BadValue(f"is {written!r}: give a whole number from {least} to {most}.")
        return value

    return Reader(f"number, {least} to {most}", read)


def one_of(closed: type[E]) -> Reader[E]:
    """A word of a closed list, in any case."""
    words = [member.value for member in closed]

    def read(written: str) -> E:
        if written.lower() not in words:
            raise BadValue(f"is {written!r}: write one of {', '.join(words)}.")
        return closed(written.lower())

    return Reader(" or ".join(f"`{word}`" for word in words), read)


def _path(written: str) -> Path:
    return Path(written).expanduser().absolute()


def _file(written: str) -> Path:
    if not _path(written).is_file():
        raise BadValue(f"is {written!r}, and there is no such file: give the path of one, or leave it out.")
    return _path(written)


def _programs(written: str) -> Path:
    for program in ("initdb", "postgres"):
        if not (_path(written) / program).is_file():
            raise BadValue(f"is {written!r}, which holds no {program}: give PostgreSQL's bin folder.")
    return _path(written)


def _address(written: str, schemes: tuple[str, ...]) -> SplitResult:
    """Never quotes what was written: an address may hold a password."""
    mend = f"write one that starts with {' or '.join(f'{scheme}://' for scheme in schemes)}."
    try:
        parts = urlsplit(written)
        port_is_fine = parts.port is None or parts.port > 0
    except ValueError:
        raise BadValue(f"is no address: {mend}") from None
    if parts.scheme not in schemes or not port_is_fine or re.search(r"\s", written):
        raise BadValue(f"is no address that can be used here: {mend}")
    return parts


def _web(written: str) -> str:
    parts = _address(written, ("https", "http"))
    if not parts.hostname or "@" in parts.netloc or parts.query or parts.fragment:
        raise BadValue("has to be scheme, host and path alone: take out account, password, query and fragment.")
    return written.rstrip("/")


def _database(written: str) -> SecretUrl:
    _address(written, ("postgresql", "postgres"))
    return SecretUrl(written)


def _redis(written: str) -> SecretUrl:
    _address(written, ("redis", "rediss", "unix"))
    return SecretUrl(written)


def _headers(written: str) -> tuple[tuple[str, Secret], ...]:
    """Never quotes what was written: a header holds a token."""
    pairs = []
    for pair in filter(None, (piece.strip() for piece in written.split(","))):
        name, equals, value = (piece.strip() for piece in pair.partition("="))
        plain = unquote(value)
        if not equals or not HEADER_NAME.fullmatch(name) or re.search(r"[\x00-\x1f\x7f]", plain):
            raise BadValue("is no list of headers: write name=value, name=value, with % for special characters.")
        pairs.append((name.lower(), Secret(plain)))
    return tuple(pairs)


def _shown_headers(value: tuple[tuple[str, Secret], ...]) -> str:
    return ", ".join(f"{name}={secret}" for name, secret in value)


def is_plain_http_abroad(address: str) -> bool:
    """Whether content and keys would travel in the clear to another machine."""
    parts = urlsplit(address)
    return parts.scheme == "http" and not LOOPBACK.fullmatch(parts.hostname or "")


TEXT = Reader("text", str)
SECONDS = Reader("duration", _seconds, lambda value: f"{value:g}s")
SIZE = Reader("size", _size, _shown_size)
FLAG = Reader("`true` or `false`", _flag, lambda value: str(value).lower())
PATH = Reader("path", _path)
FILE = Reader("path of a file", _file)
PROGRAMS = Reader("path of a folder", _programs)
WEB_URL = Reader("http or https address", _web)
DATABASE_URL = Reader("`postgresql://` address", _database, secret=True)
REDIS_URL = Reader("`redis://`, `rediss://` or `unix://` address", _redis, secret=True)
SECRET = Reader("text", Secret, secret=True)
HEADERS = Reader("`name=value`, with commas between", _headers, _shown_headers, secret=True)
