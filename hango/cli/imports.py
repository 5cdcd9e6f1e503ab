"""`hango import`: a transcript or request body, as people have it, becomes an agent and sessions."""

from __future__ import annotations

import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, BinaryIO

import typer

from hango.cli.exits import Failure
from hango.cli.own_command import line, own_command

if TYPE_CHECKING:
    from hango.cli.output import Line
    from hango.cli.replies import Imported, ImportedSession

CHUNK = 256 * 1024  # bytes
MOST_FLAGS = 50  # shown of one session; --json has them all


class Format(StrEnum):
    AUTO = "auto"
    ANTHROPIC = "anthropic"
    OPENAI_CHAT = "openai_chat"
    OPENAI_RESPONSES = "openai_responses"
    CLAUDE_CODE = "claude_code"
    CHATGPT = "chatgpt"
    SHAREGPT = "sharegpt"
    LANGCHAIN = "langchain"
    SWE_AGENT = "swe_agent"


FORMATS = f"What the file is: {', '.join(Format)}."


def import_(
    file: Annotated[str, typer.Argument(metavar="FILE", help="A file, or - for stdin.")],
    *,
    format_: Annotated[Format, typer.Option("--format", metavar="FORMAT", help=FORMATS)] = Format.AUTO,
    agent: Annotated[
        str | None, typer.Option("--agent", metavar="ID", help="Put the sessions under this agent.")
    ] = None,
    model: Annotated[
        str | None, typer.Option("--model", metavar="PROVIDER/MODEL", help="The model of the agent.")
    ] = None,
    title: Annotated[str | None, typer.Option("--title", metavar="TEXT", help="The session's title.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the API's reply as it came.")] = False,
) -> None:
    """Make an agent and sessions of a transcript or request body.

    What is odd in it is imported as it is, and named by part and reason.

    Example: hango import conversations.json --format chatgpt
    """
    from hango.cli import import_refusal, output, replies
    from hango.cli.client import Client, Refused
    from hango.cli.progress import Progress

    query = {"format": format_.value, "agent_id": agent, "model": model, "title": title}
    missing = None if agent is None else f"no agent {agent} that you may read. `{own_command()} agents` lists them."
    with opened(file) as (stream, size), Client.from_environment() as client:
        progress = Progress("importing", size)
        try:
            body = client.upload("/v1/imports", query, progress.watch(_chunks(stream)), missing=missing)
        except Refused as refused:
            raise import_refusal.told(refused, file, format_.value) from None
        finally:
            progress.clear()
    if as_json:
        output.emit_reply(body)
        return
    imported = replies.read(body, replies.Imported)
    output.emit(report(imported, output.width()))
    if imported.sessions:
        output.note(f"look at it: {line('context', 'show', '--session', imported.sessions[0].session_id)}")


@contextmanager
def opened(file: str) -> Iterator[tuple[BinaryIO, int | None]]:
    """The file's bytes, and how many there are where that can be told."""
    if file == "-":
        if sys.stdin is None:
            raise Failure("stdin is closed, so there is nothing to import. Name a file.")
        yield sys.stdin.buffer, None
        return
    try:
        stream = Path(file).open("rb")  # noqa: SIM115  closed below; a failure to open has a sentence of its own
    except OSError as error:
        reason = (error.strerror or type(error).__name__).lower()
        raise Failure(f"{file} cannot be read: {reason}. Name a file, or - for stdin.") from None
    with stream:
        found = Path(file).stat()
        yield stream, found.st_size if stat.S_ISREG(found.st_mode) else None


def report(imported: Imported, width: int) -> Iterator[Line]:
    """The agent, then the sessions with what is odd in them. Ids are never cut."""
    from hango.cli.output import Line, Span, Style
    from hango.cli.text import one_line

    yield Line.of(Span(f"agent {one_line(imported.agent_id)}", Style.STRONG), f" · {one_line(imported.format)}")
    for session in imported.sessions:
        yield from _session(session, width)


def _session(session: ImportedSession, width: int) -> Iterator[Line]:
    from hango.cli import reasons
    from hango.cli.output import Line, Span, Style
    from hango.cli.text import cells, cut, number, one_line, wrap

    head = f"session {one_line(session.session_id)}"
    count = f"{number(session.messages)} message{'s' * (session.messages != 1)}"
    title = cut(one_line(session.title), width - cells(head) - len(count) - 6)
    yield Line.of(Span(head, Style.STRONG), " · ".join(["", count, *([title] if title else [])]))
    for flag in session.flagged[:MOST_FLAGS]:
        where = f"{flag.part}: " if flag.part is not None else ""
        told = reasons.OF_IMPORTS.get(flag.reason)
        why = flag.reason if told is None else f"{told} ({flag.reason})"
        for words in wrap(f"{where}{why}", width - 2):
            yield Line.of("  ", Span(words, Style.WARNING))
    if len(session.flagged) > MOST_FLAGS:
        yield Line.of(f"  … and {number(len(session.flagged) - MOST_FLAGS)} more; --json has them all")


def _chunks(stream: BinaryIO) -> Iterator[bytes]:
    while chunk := stream.read(CHUNK):
        yield chunk
