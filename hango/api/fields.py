"""Types of fields that bodies, queries and replies share: names, ids, times, digits, raw JSON."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Annotated, Any, ClassVar
from uuid import UUID

import msgspec
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema
from pydantic_core import PydanticCustomError

from hango.errors import NotFound

PAGE_DEFAULT = 50
PAGE_MOST = 500
NAME_CHARS = 200
CURSOR_CHARS = 500

_CANONICAL_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", re.ASCII)
_DIGITS = re.compile(r"0|[1-9][0-9]{0,17}", re.ASCII)
_TIME = re.compile(r"\d{4}-\d{2}-\d{2}[Tt]\d{2}:\d{2}:\d{2}(?:\.\d{1,9})?(?:[Zz]|[+-]\d{2}:\d{2})", re.ASCII)
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")


def parse_id(text: str) -> UUID:
    """A canonical lower-case UUID. Raises NotFound: a malformed id names nothing that is here."""
    if not _CANONICAL_UUID.fullmatch(text):
        raise NotFound
    return UUID(text)


def parse_time(text: Any) -> datetime:
    """An RFC 3339 time with its offset, as UTC. Raises what pydantic turns into a field's error."""
    if not isinstance(text, str) or not _TIME.fullmatch(text):
        raise PydanticCustomError("time", "Not an RFC 3339 time with an offset, such as 2026-11-30T09:00:00Z")
    try:
        # Six digits of a second are kept: what the database keeps.
        cut = re.sub(r"(\.\d{6})\d+", r"\1", text.upper())
        return datetime.fromisoformat(cut).astimezone(UTC)
    except (ValueError, OverflowError):
        raise PydanticCustomError("time", "No such time in the calendar") from None


def parse_day_or_time(text: Any) -> datetime:
    """A day (its start in UTC) or an RFC 3339 time."""
    if isinstance(text, str) and _DAY.fullmatch(text):
        text = f"{text}T00:00:00Z"
    return parse_time(text)


def _digits(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    if not _DIGITS.fullmatch(value):
        raise PydanticCustomError("digits", "Not a whole number in decimal digits")
    return int(value)


def _shown_on_one_line(value: str) -> str:
    if _CONTROL.search(value):
        raise PydanticCustomError("one_line", "Holds a control character")
    if not value.strip():
        raise PydanticCustomError("one_line", "Is blank")
    return value


def _raw(value: Any) -> Any:
    """Present as its own text when the body could be sliced; a plain value means that an outer part is at fault."""
    return value if isinstance(value, msgspec.Raw) else msgspec.Raw(msgspec.json.encode(value))


Name = Annotated[str, Field(min_length=1, max_length=NAME_CHARS), AfterValidator(_shown_on_one_line)]
Time = Annotated[datetime, BeforeValidator(parse_time), WithJsonSchema({"type": "string", "format": "date-time"})]
# A time in a reply: always with its offset, which is UTC.
Moment = Annotated[datetime, msgspec.Meta(tz=True)]
# An id in a body is text first: a malformed one is answered like one that is not there.
IdText = Annotated[str, Field(max_length=100, json_schema_extra={"format": "uuid"})]
Whole = Annotated[int, BeforeValidator(_digits)]
RawJson = Annotated[Any, AfterValidator(_raw)]
RawObject = Annotated[RawJson, WithJsonSchema({"type": "object"})]


class Body(BaseModel):
    """A JSON body. `raw_fields` are paths ("*" stands for any index) that are kept as `msgspec.Raw`, digits and all."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, arbitrary_types_allowed=True)

    raw_fields: ClassVar[tuple[tuple[str, ...], ...]] = ()


def _without_defaults(schema: dict[str, Any]) -> None:
    for field in schema["properties"].values():
        field.pop("default", None)


class Patch(Body):
    """A change: a field that is not given stays as it is, so no default of it means anything."""

    model_config = ConfigDict(json_schema_extra=_without_defaults)


class Query(BaseModel):
    """The query parameters that a route knows; others are ignored, a doubled one is refused."""

    model_config = ConfigDict(extra="ignore", frozen=True, populate_by_name=True)


class PageQuery(Query):
    """Which stretch of a list: `cursor` is the `next_cursor` of the page before."""

    limit: Annotated[Whole, Field(ge=1, le=PAGE_MOST)] = PAGE_DEFAULT
    cursor: Annotated[str, Field(min_length=1, max_length=CURSOR_CHARS)] | None = None


class SearchQuery(PageQuery):
    """`q`: a text that the name or title holds."""

    q: Annotated[str, Field(max_length=NAME_CHARS)] | None = None
