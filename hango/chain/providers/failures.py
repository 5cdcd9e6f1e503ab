"""What a provider's error says, as one closed failure. Pure but for the clock that a date is compared with."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

from hango import jsontext
from hango.chain.providers.hiding import Hidden
from hango.errors import HangoError, ProviderFailed, ProviderFault

LONGEST_RETRY_SECONDS = 3600.0
MOST_ID_CHARACTERS = 128
MOST_SAID_CHARACTERS = 500
# An error page has its message at the start; what is longer is no JSON of a provider.
MAX_ERROR_BYTES = 64 * 1024

OVERLOADED = 529  # Anthropic's own status
_NUMBER = re.compile(r"\d{1,15}(?:\.\d{1,9})?", re.ASCII)
_NOT_PRINTABLE = re.compile(r"[^\x20-\x7e]")


def as_failure(provider: str, status: int, headers: Mapping[str, str], body: bytes, hidden: Hidden) -> ProviderFailed:
    """The failure that a status other than 200 is."""
    error = _error_of(body)
    fault = fault_of(status, _text_at(error, "type"))
    return ProviderFailed(
        _sentence(provider, status, fault),
        fault=fault,
        http_status=status,
        retry_after=retry_after(headers, now=datetime.now(UTC)),
        request_id=request_id(headers, hidden),
        said=_words(error, hidden),
    )


def unreadable(provider: str, body: bytes, id: str | None, hidden: Hidden) -> ProviderFailed:
    """The failure that a 200 is whose body is no answer."""
    return ProviderFailed(
        f"The answer of provider '{provider}' cannot be read.",
        fault=ProviderFault.PROTOCOL,
        http_status=200,
        request_id=id,
        said=_words(_error_of(body), hidden),
    )


def fault_of(status: int, type: str | None) -> ProviderFault:
    """`type` is the error's own, where its body names one."""
    if status == 429:
        return ProviderFault.RATE_LIMITED
    if status == OVERLOADED or (status == 503 and type == "overloaded_error"):
        return ProviderFault.OVERLOADED
    if 400 <= status < 500:
        return ProviderFault.REFUSED
    # Another success than 200 may mean that the model ran; its answer is not one of this wire.
    return ProviderFault.PROTOCOL if 200 <= status < 300 else ProviderFault.ERROR


def retry_after(headers: Mapping[str, str], *, now: datetime) -> float | None:
    """Seconds from 0 to 3,600; None where the provider asks for none or in words that nobody can read."""
    for name, unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        written = headers.get(name, "").strip()
        if _NUMBER.fullmatch(written):
            return min(float(written) * unit, LONGEST_RETRY_SECONDS)
    try:
        date = parsedate_to_datetime(headers.get("retry-after", ""))
        seconds = (date.replace(tzinfo=date.tzinfo or UTC) - now).total_seconds()
    except (ValueError, OverflowError):
        return None
    return min(max(seconds, 0.0), LONGEST_RETRY_SECONDS)


def request_id(headers: Mapping[str, str], hidden: Hidden) -> str | None:
    """The provider's name for the call, by which its makers find it. It is kept and logged, so no key stands in it."""
    given = headers.get("request-id") or headers.get("x-request-id") or ""
    return hidden.without_keys(_NOT_PRINTABLE.sub("", given))[:MOST_ID_CHARACTERS].strip() or None


def _error_of(body: bytes) -> Any:
    """The error in a body: an object or a text, with every shape that servers use; None when there is none."""
    if len(body) > MAX_ERROR_BYTES:
        return None
    try:
        read = jsontext.read(body)
    except HangoError:
        return None
    if not isinstance(read, dict):
        return None
    return read.get("error") or read.get("message") or read.get("detail")


def _words(error: Any, hidden: Hidden) -> str | None:
    words = error if isinstance(error, str) else _text_at(error, "message")
    return hidden.one_line(words, MOST_SAID_CHARACTERS) or None if words else None


def _text_at(error: Any, key: str) -> str | None:
    value = error.get(key) if isinstance(error, dict) else None
    return value if isinstance(value, str) else None


def _sentence(provider: str, status: int, fault: ProviderFault) -> str:
    setting = f"HANGO_{provider.upper()}"
    if fault is ProviderFault.RATE_LIMITED:
        return f"Provider '{provider}' takes no more calls for now (status {status}): try again later."
    if fault is ProviderFault.OVERLOADED:
        return f"Provider '{provider}' is overloaded (status {status}): try again later."
    if status in (401, 403):
        return f"Provider '{provider}' refused the key (status {status}): check {setting}_API_KEY."
    if status == 404:
        return f"Provider '{provider}' knows no such model or address (status 404): check both."
    if fault is ProviderFault.REFUSED:
        return f"Provider '{provider}' refused the request (status {status})."
    if 300 <= status < 400:
        return f"Provider '{provider}' points elsewhere (status {status}): check {setting}_BASE_URL."
    return f"Provider '{provider}' failed (status {status})."
