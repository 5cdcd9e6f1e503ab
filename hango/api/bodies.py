"""Reading a request: the body counted while it comes, strict JSON, its model; errors with a pointer, no content."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import msgspec
from pydantic import ValidationError
from pydantic_core import ErrorDetails
from starlette.requests import Request

from hango import jsontext
from hango.api.fields import Body, Query
from hango.errors import Detail, Invalid, Reason, TooLarge

BODY_MOST = 8 * 1024 * 1024
# Over this a body is read in a thread, so that one large body does not hold up every other request.
READ_IN_THREAD = 64 * 1024
# A conversation of 20,000 messages has less; reading that many takes a tenth of a second.
VALUES_MOST = 200_000
DETAILS_MOST = 50
# Of more faults than this only the number is told: to describe each would take longer than to read them.
DESCRIBED_MOST = 1000
POINTER_CHARS = 200

_REASONS = {"extra_forbidden": Reason.UNKNOWN_FIELD, "missing": Reason.MISSING_FIELD}

AnyBody = TypeVar("AnyBody", bound=Body)
AnyQuery = TypeVar("AnyQuery", bound=Query)


async def receive(request: Request, most: int = BODY_MOST) -> bytes:
    """The whole body. Raises TooLarge as soon as it is known to be over `most` bytes."""
    too_large = TooLarge(f"The body is larger than {most // (1024 * 1024)} MiB, which is the most taken here.")
    declared = request.headers.get("content-length", "")
    if declared.isascii() and declared.isdigit() and int(declared[:20]) > most:
        raise too_large
    chunks: list[bytes] = []
    size = 0
    async for chunk in request.stream():
        size += len(chunk)
        if size > most:
            raise too_large
        chunks.append(chunk)
    return b"".join(chunks)


async def read_body(request: Request, model: type[AnyBody]) -> AnyBody:
    """Raises TooLarge, Malformed, TooDeep or Invalid, in this order."""
    content = await receive(request)
    if len(content) > READ_IN_THREAD:
        return await asyncio.to_thread(parse_body, content, model)
    return parse_body(content, model)


def parse_body(content: bytes, model: type[AnyBody]) -> AnyBody:
    jsontext.check_values(content, VALUES_MOST)
    value = jsontext.read(content)
    for path in model.raw_fields:
        _keep_raw(value, msgspec.Raw(content), path)
    try:
        return model.model_validate(value)
    except ValidationError as error:
        raise as_invalid(error, "The body") from None


def read_query(request: Request, model: type[AnyQuery]) -> AnyQuery:
    pairs = request.query_params.multi_items()
    known = {field.alias or name for name, field in model.model_fields.items()}
    given: dict[str, str] = {}
    for name, value in pairs:
        if name not in known:
            continue
        if name in given:
            raise _refused(name, "is given twice")
        if not jsontext.is_text(value):
            raise Invalid.because(Reason.INVALID_TEXT, f"The query parameter '{name}' holds NUL or half a letter.")
        given[name] = value
    try:
        return model.model_validate(given)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        raise _refused(str(first["loc"][0]) if first["loc"] else "", first["msg"]) from None


def as_invalid(error: ValidationError, what: str) -> Invalid:
    """The same in hango's words: reason and pointer of each field at fault; what was sent is never repeated."""
    if error.error_count() > DESCRIBED_MOST:
        return Invalid(f"{what} does not fit: {error.error_count():,} fields at fault.")
    details = [_detail(one) for one in error.errors(include_url=False, include_input=False, include_context=False)]
    places = ", ".join(f"'{one.pointer}'" for one in details[:3] if one.pointer)
    more = f" ({places})" if places else ""
    count = "one field" if len(details) == 1 else f"{len(details)} fields"
    return Invalid(f"{what} does not fit: {count} at fault{more}; see `errors`.", errors=details[:DETAILS_MOST])


def pointer(*steps: str | int) -> str:
    """An RFC 6901 pointer."""
    joined = "".join("/" + str(step).replace("~", "~0").replace("/", "~1") for step in steps)
    return joined[:POINTER_CHARS]


def _detail(error: ErrorDetails) -> Detail:
    reason = _REASONS.get(error["type"], Reason.BAD_FIELD)
    return Detail(reason, error["msg"].rstrip(".") + ".", pointer=pointer(*error["loc"]))


def _refused(name: str, message: str) -> Invalid:
    sentence = f"The query parameter '{name}' cannot be read: {message}."
    return Invalid.because(Reason.BAD_FIELD, sentence)


def _keep_raw(value: Any, raw: msgspec.Raw, path: Sequence[str]) -> None:
    """Put the JSON text of what stands at `path` in place of its value; what has another shape is left as it is."""
    step, rest = path[0], path[1:]
    if step == "*":
        if not isinstance(value, list):
            return
        items = msgspec.json.decode(raw, type=list[msgspec.Raw])
        for index, item in enumerate(items):
            if rest:
                _keep_raw(value[index], item, rest)
            else:
                value[index] = msgspec.Raw(bytes(item))
        return
    if not isinstance(value, dict) or step not in value:
        return
    members: Mapping[str, msgspec.Raw] = msgspec.json.decode(raw, type=dict[str, msgspec.Raw])
    if rest:
        _keep_raw(value[step], members[step], rest)
    else:
        value[step] = msgspec.Raw(bytes(members[step]))
