"""Request bodies inside an envelope: batch files, logs of a proxy, hango's own `?format=provider`."""

from __future__ import annotations

import msgspec

from hango.chain.formats.reading import decode, is_array, is_object

_ENVELOPES = ("request", "body", "params")


def request(body: bytes, wanted: str) -> tuple[bytes, str]:
    """The body that has the wanted member, with its JSON pointer: the value itself, or a member of its envelope."""
    members = decode(body, dict[str, msgspec.Raw])
    if wanted not in members:
        for name in _ENVELOPES:
            if name in members and is_object(members[name]):
                inner = bytes(members[name])
                if wanted in decode(inner, dict[str, msgspec.Raw], f"/{name}"):
                    return inner, f"/{name}"
    return body, ""


def is_list_of(body: bytes, wanted: str) -> bool:
    """True for a list whose first item is an object with the wanted member."""
    if not is_array(body):
        return False
    items = decode(body, list[msgspec.Raw])
    return bool(items) and is_object(items[0]) and wanted in decode(items[0], dict[str, msgspec.Raw], "/0")
