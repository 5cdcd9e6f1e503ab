"""What the answers of several wires have in common: strict reading, usage, the input of a call. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import msgspec

from hango import jsontext
from hango.chain.providers.failures import unreadable
from hango.chain.providers.hiding import Hidden
from hango.chain.providers.http import Answer
from hango.errors import HangoError
from hango.messages import MAX_BLOCKS, Block, Response

T = TypeVar("T")
Names = Callable[[], Mapping[str, str]]

# No call holds more tokens; a larger figure is none.
MOST_TOKENS = 1_000_000_000
# One escape of a JSON string; a whole pair of surrogates is one.
_ESCAPE = re.compile(rb"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|.)", re.DOTALL)
_NO_TEXT = re.compile(rb"\\u(?:0000|[dD][89a-fA-F][0-9a-fA-F]{2})")
_UNKNOWN_LETTER = rb"\ufffd"
_NO_FIGURE = "no figure"


class Unreadable(ValueError):
    """The body is no answer of this wire."""


def as_response(provider: str, answer: Answer, read: Callable[[bytes], Response], hidden: Hidden) -> Response:
    """The answer read. Raises ProviderFailed (`provider_protocol`) where it is none."""
    try:
        return replace(read(mended(answer.body)), request_id=answer.request_id)
    except (HangoError, msgspec.MsgspecError, ValueError):
        # What is wrong with it may be told by its content only.
        raise unreadable(provider, answer.body, answer.request_id, hidden) from None


def mended(text: bytes) -> bytes:
    """JSON text in which no escape means NUL or half of a surrogate pair: the mark of an unknown letter stands there.

    A model may write such a thing, and the rest of its answer has been paid for.
    """
    if not _NO_TEXT.search(text):
        return text
    return _ESCAPE.sub(lambda escape: _UNKNOWN_LETTER if _NO_TEXT.fullmatch(escape[0]) else escape[0], text)


def members(body: bytes, type: type[T]) -> T:
    """The body as a struct, read strictly. Raises HangoError or msgspec's errors."""
    jsontext.read(body)
    return msgspec.json.decode(body, type=type)


def checked(block: Block) -> Block:
    """A block of an answer with the members that its type must have. Raises Unreadable."""
    view = block.view
    needed = {
        "text": (view.text,),
        "thinking": (view.thinking,),
        "redacted_thinking": (view.data,),
        "tool_use": (view.id or None, view.name or None),
    }
    if any(value is None for value in needed.get(view.type, ())):
        raise Unreadable(view.type)
    if view.type == "tool_use" and bytes(view.input) in (b"", b"null"):
        return block.with_fields(input=msgspec.Raw(b"{}"))
    return block


def bounded(blocks: list[T]) -> list[T]:
    if len(blocks) > MAX_BLOCKS:
        raise Unreadable("blocks")
    return blocks


def call_input(text: str) -> msgspec.Raw:
    """The input of a call from the text of its arguments: the text itself when it is a JSON object, digit for digit.

    Anything else is kept whole as a JSON string, as an import keeps it: a model may write what is no JSON.
    """
    raw = mended(text.strip().encode())
    if not raw:
        return msgspec.Raw(b"{}")
    try:
        if isinstance(jsontext.read(raw), dict):
            return msgspec.Raw(jsontext.compact(raw).encode())
    except HangoError:
        pass
    return msgspec.Raw(jsontext.dumps(text).encode())


def tokens(figures: Any, needed: Sequence[str], more: Sequence[str]) -> tuple[int, ...] | None:
    """The figures at dotted paths, those of `more` 0 where nothing stands. None when one is missing or cannot be."""
    found = [_at(figures, path) for path in (*needed, *more)]
    found[len(needed) :] = [0 if figure is None else figure for figure in found[len(needed) :]]
    if not all(type(figure) is int and 0 <= figure <= MOST_TOKENS for figure in found):
        return None
    return tuple(found)


def _at(figures: Any, path: str) -> Any:
    """What stands at a place, None for nothing. Where no object is on the way to it, something that is no figure."""
    here = figures
    for key in path.split("."):
        if not isinstance(here, dict):
            return None if here is None else _NO_FIGURE
        here = here.get(key)
    return here
