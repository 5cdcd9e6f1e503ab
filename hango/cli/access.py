"""Where the API is and which key it gets: the settings, else what `hango up` left. Opens no connection."""

from __future__ import annotations

import json
from dataclasses import dataclass

from hango.config import Settings


@dataclass(frozen=True, slots=True)
class Access:
    """Where the API is and the key for it; `origin` says where the key was found."""

    url: str
    key: str | None
    origin: str


def find_access(settings: Settings) -> Access:
    """HANGO_API_URL and HANGO_API_KEY; what is missing comes from `up.json`.

    The key in `up.json` is for the address in `up.json`: it is never sent to another.
    """
    up = _read_up_file(settings)
    url = (settings.api_url or up.get("url") or f"http://{settings.host}:{settings.port}").rstrip("/")
    if settings.api_key is not None:
        return Access(url, settings.api_key.reveal(), "HANGO_API_KEY")
    if url == up.get("url", "").rstrip("/"):
        return Access(url, up.get("api_key"), str(settings.up_file))
    return Access(url, None, "HANGO_API_KEY")


def _read_up_file(settings: Settings) -> dict[str, str]:
    """What `hango up` left; empty when there is none, or it is another account's."""
    try:
        found = json.loads(settings.up_file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    if not isinstance(found, dict):
        return {}
    return {name: value for name, value in found.items() if isinstance(value, str)}
