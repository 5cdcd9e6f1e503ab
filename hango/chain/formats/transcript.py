"""What every format is read into: an agent, and sessions of messages that are made one at a time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from hango.agent_definition import SystemBlock
from hango.errors import Detail, Invalid, Reason
from hango.messages import Block, MessageRole, ToolSpec


class Format(StrEnum):
    ANTHROPIC = "anthropic"  # a Messages request, or a list of its messages
    OPENAI_CHAT = "openai_chat"  # a Chat Completions request, or a list of its messages
    OPENAI_RESPONSES = "openai_responses"  # a Responses request, or a list of its items
    CLAUDE_CODE = "claude_code"  # a session file, JSON Lines
    CHATGPT = "chatgpt"  # conversations.json of an export
    SHAREGPT = "sharegpt"
    LANGCHAIN = "langchain"  # messages as dicts, or as serialized constructors
    SWE_AGENT = "swe_agent"  # a trajectory file


@dataclass(frozen=True, slots=True)
class Flag:
    """Something odd that was imported all the same: which part, and why."""

    part: str
    reason: Reason


@dataclass(frozen=True, slots=True)
class ImportedMessage:
    """One message. `model` is `<provider>/<model>`, None where the file does not say who wrote it."""

    role: MessageRole
    content: tuple[Block, ...]
    model: str | None = None
    created_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class ImportedAgent:
    """What the file says of the agent. `model` is `<provider>/<model>`; `params` are of api.md's closed list."""

    model: str | None = None
    system: tuple[SystemBlock, ...] = ()
    tools: tuple[ToolSpec, ...] = ()
    params: Mapping[str, Any] = field(default_factory=dict)
    max_output_tokens: int | None = None
    flags: tuple[Flag, ...] = ()


@dataclass(frozen=True, slots=True)
class ImportedSummary:
    """A compaction summary: it stands for the messages up to `through_seq`."""

    text: str
    through_seq: int


@dataclass(frozen=True, slots=True)
class ImportedSession:
    """One conversation. `messages` is read once, in order; `flags` are known before it is read."""

    title: str | None
    messages: Iterable[ImportedMessage]
    summary: ImportedSummary | None = None
    flags: tuple[Flag, ...] = ()


@dataclass(frozen=True, slots=True)
class Transcript:
    """A whole file. `sessions` is read once, each session's messages before the next session is taken."""

    format: Format
    agent: ImportedAgent
    sessions: Iterable[ImportedSession]


def numbered(messages: Iterable[ImportedMessage]) -> Iterator[ImportedMessage]:
    """The same messages; a fault met while the n-th is made names the part `message:<n>`."""
    waiting = iter(messages)
    count = 0
    while True:
        count += 1
        try:
            message = next(waiting)
        except StopIteration:
            return
        except Invalid as error:
            raise named(error, f"message:{count}") from None
        yield message


def named(error: Invalid, part: str) -> Invalid:
    """The same fault with the part where none is named yet."""
    details = [Detail(detail.reason, detail.message, detail.part or part, detail.pointer) for detail in error.errors]
    return Invalid(f"{part}: {error}", errors=details)
