"""Parts of an agent (system:..., tool:...) that a call names and its context does not hold: the API lets them be."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from urllib.parse import quote

from hango.cli import replies
from hango.cli.client import Client
from hango.cli.exits import Failure
from hango.cli.override_report import alike
from hango.cli.override_sets import Level, level_of, no_session
from hango.cli.replies import GROUPS, Snapshot


def notes(client: Client, session: str, parts: Iterable[str]) -> Iterator[str]:
    """One sentence for each part that is not there."""
    for part, meant in _absent(client, session, parts):
        yield f"not in the context, so nothing changed: {part}{'.' if meant else ''}{meant}"


def refuse(client: Client, session: str, parts: Iterable[str]) -> None:
    """Raises Failure for a part whose variant would be the base once more, under another name."""
    found = [
        f"--without {part}: it is not in the context, so nothing would change.{meant}"
        for part, meant in _absent(client, session, parts)
    ]
    if found:
        raise Failure(found[0], more=found[1:])


def _absent(client: Client, session: str, parts: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Each such part, and in words what may be meant. The API is asked only where a part of an agent is named."""
    named = [part for part in dict.fromkeys(parts) if level_of(part) is Level.AGENT]
    if not named:
        return
    path = f"/v1/sessions/{quote(session, safe='')}/context"
    shot = replies.read(client.get(path, {"count": "estimate"}, missing=no_session(session)), Snapshot)
    there = {part.id for group in GROUPS for part in shot.parts(group)}
    for part in named:
        if part not in there:
            near = alike(part, there)
            yield part, f" Alike: {', '.join(near)}." if near else ""
