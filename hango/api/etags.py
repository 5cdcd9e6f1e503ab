"""Entity tags: made from what a resource holds, compared with a caller's If-Match (RFC 9110)."""

from __future__ import annotations

import re
from hashlib import sha256
from typing import Any

import msgspec
from starlette.requests import Request

from hango.errors import PreconditionFailed

# A weak tag is read too, so that it is not taken for a strong one: it never matches.
_TAG = re.compile(r'(?:W/)?"[\x21\x23-\x7e\x80-\xff]*"')


def of(content: Any) -> str:
    """A strong tag: equal content, equal tag, in another process too."""
    return f'"{sha256(msgspec.json.encode(content)).hexdigest()[:32]}"'


def check_match(request: Request, current: str) -> None:
    """Raise PreconditionFailed unless If-Match names the current tag, is `*`, or is not there."""
    given = request.headers.getlist("if-match")
    if given and "*" not in (one.strip() for one in given) and current not in _TAG.findall(",".join(given)):
        raise PreconditionFailed("The overrides changed since they were read. Read them again, then repeat the change.")
