"""A file read whole, as plain values that a test can compare."""

from __future__ import annotations

import io
import json
from dataclasses import dataclass
from typing import Any

from hango.chain.formats import readers
from hango.chain.formats.oddities import Watch, check_agent, check_summary
from hango.chain.formats.source import Source
from hango.chain.formats.transcript import Format, ImportedAgent, ImportedMessage, ImportedSummary
from hango.messages import content_json


@dataclass(frozen=True)
class Session:
    title: str | None
    messages: list[ImportedMessage]
    flags: list[tuple[str, str]]
    summary: ImportedSummary | None = None

    @property
    def said(self) -> list[tuple[str, str]]:
        """Role and the JSON text of the blocks of every message."""
        return [(str(message.role), content_json(message.content)) for message in self.messages]

    @property
    def texts(self) -> list[str]:
        return ["|".join(b.view.text or b.type for b in message.content) for message in self.messages]


@dataclass(frozen=True)
class File:
    format: Format
    agent: ImportedAgent
    sessions: list[Session]

    @property
    def only(self) -> Session:
        (session,) = self.sessions
        return session


def source(content: bytes | str) -> Source:
    body = content.encode() if isinstance(content, str) else content
    return Source(io.BytesIO(body), len(body))


def lines(*values: Any) -> str:
    return "".join(json.dumps(value) + "\n" for value in values)


def read(content: Any, format: Format | None = None) -> File:
    """Bytes and text as they are, other values as JSON."""
    given = content if isinstance(content, bytes | str) else json.dumps(content)
    transcript = readers.read(source(given), format)
    check_agent(transcript.agent)
    sessions = []
    for session in transcript.sessions:
        watch = Watch()
        if session.summary is not None:
            check_summary(session.summary)
        messages = []
        for message in session.messages:
            messages.append(message)
            watch.see(len(messages), message)
        flags = [(flag.part, str(flag.reason)) for flag in (*session.flags, *watch.flags())]
        sessions.append(Session(session.title, messages, flags, session.summary))
    return File(transcript.format, transcript.agent, sessions)
