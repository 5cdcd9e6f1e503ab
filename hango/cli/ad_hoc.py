"""The overrides of one call as they are written on the command line: `--replace PART=TEXT` and its like."""

from __future__ import annotations

from collections.abc import Callable, Sequence, Set
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import typer

if TYPE_CHECKING:
    from hango.cli.client import Client

# The only ids that may hold a "=": they end in the path of a file.
OPEN_ENDED = "system:memory:"


def body(
    client: Client,
    session: str,
    *,
    exclude: Sequence[str],
    replace: Sequence[str],
    include: Sequence[str],
) -> dict[str, Any]:
    """The overrides as the API takes them. Raises typer.BadParameter for words that say nothing."""
    pairs: dict[str, str] = {}
    for word in replace:
        part, text = split(word, lambda: _parts(client, session))
        if part in pairs:
            raise typer.BadParameter(f"--replace names {part} twice. Give one text for it.")
        pairs[part] = text_of(text)
    return {"exclude": list(exclude), "replace": pairs, "include": list(include)}


def split(word: str, parts: Callable[[], Set[str]]) -> tuple[str, str]:
    """Part and text of PART=TEXT. `parts` gives the ids of the session; it is called only where they decide.

    The path of a memory file may hold a "=" as its text may: then the longest id that is there counts, and the first
    "=" where none is.
    """
    part, mark, text = word.partition("=")
    if not mark or not part:
        raise typer.BadParameter(f"--replace {word!r} is not PART=TEXT. Write it like message:4='Four boxes.'")
    if part.startswith(OPEN_ENDED) and "=" in text:
        there = [id for id in parts() if word.startswith(f"{id}=")]
        if there:
            part = max(there, key=len)
            text = word[len(part) + 1 :]
    return part, text


def text_of(text: str) -> str:
    """The text itself; of @FILE what the file holds, of @- the standard input; @@ begins a text with one @."""
    if text.startswith("@@") or not text.startswith("@"):
        return text.removeprefix("@")
    from hango.cli.editor import decoded
    from hango.cli.imports import opened

    file = text[1:]
    with opened(file) as (stream, _):
        return decoded(stream.read(), "the standard input" if file == "-" else file)


def _parts(client: Client, session: str) -> Set[str]:
    from hango.cli import replies
    from hango.cli.override_sets import no_session

    path = f"/v1/sessions/{quote(session, safe='')}/context"
    shot = replies.read(client.get(path, {"count": "estimate"}, missing=no_session(session)), replies.Snapshot)
    return {part.id for part in shot.parts("system")}
