"""Many conversations, one agent: documents and JSON Lines become a transcript."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from itertools import chain

from hango.chain.formats.agents import one_a_name
from hango.chain.formats.reading import on_line, strict
from hango.chain.formats.source import MAX_DOCUMENT, Source
from hango.chain.formats.transcript import (
    Flag,
    Format,
    ImportedAgent,
    ImportedMessage,
    ImportedSession,
    Transcript,
    numbered,
)
from hango.errors import Invalid, Reason, TooLarge
from hango.messages import MessageRole, text_block


@dataclass(frozen=True, slots=True)
class Conversation:
    """One conversation of a file with the agent it speaks of. `messages` is read once, in order."""

    agent: ImportedAgent
    messages: Iterable[ImportedMessage]
    title: str | None = None


# All conversations of one JSON value.
Reader = Callable[[bytes], Iterable[Conversation]]


@dataclass(frozen=True, slots=True)
class _Document:
    body: bytes
    line: int | None  # None for a file that is one document
    fault: Invalid | None  # in a string somewhere


def gather(format: Format, source: Source, read: Reader, *, pieces: Callable[[bytes], bool]) -> Transcript:
    """Read a document, or JSON Lines with a conversation a line, or with a piece of one conversation a line.

    `pieces` tells from the first line which of the two it is. A system prompt that all conversations share is the
    agent's; where they differ, each keeps its own as a system message of its history.
    """
    documents = _Lines(source, pieces) if source.is_lines() else [_document(source)]
    agent = _shared_agent(conversation.agent for _, conversation in _conversations(documents, read))
    return Transcript(format, agent, _sessions(documents, read, keep_heads=not agent.system))


def _conversations(documents: Iterable[_Document], read: Reader) -> Iterator[tuple[_Document, Conversation]]:
    found = False
    for document in documents:
        with _placed(document):
            conversations = list(read(document.body))
        for conversation in conversations:
            found = True
            yield document, conversation
        if document.fault is not None and not conversations:
            raise document.fault
    if not found:
        raise Invalid.because(Reason.MISSING_FIELD, "The file holds no conversation.")


def _sessions(documents: Iterable[_Document], read: Reader, *, keep_heads: bool) -> Iterator[ImportedSession]:
    before: _Document | None = None
    for document, conversation in _conversations(documents, read):
        if before is not None and before is not document:
            _refuse(before)
        before = document
        head = _head(conversation.agent) if keep_heads else ()
        messages = _placed_messages(document, numbered(chain(head, conversation.messages)))
        yield ImportedSession(title=conversation.title, messages=messages)
    if before is not None:
        _refuse(before)


def _refuse(document: _Document) -> None:
    """A faulty string that is in no message is refused too, with its place in the file."""
    if document.fault is not None:
        with _placed(document):
            raise document.fault


def _document(source: Source) -> _Document:
    body, fault = strict(source.document())
    return _Document(body, None, fault)


@dataclass(frozen=True, slots=True)
class _Lines:
    """The documents of JSON Lines, read anew each time: a long file is never held."""

    source: Source
    pieces: Callable[[bytes], bool]

    def __iter__(self) -> Iterator[_Document]:
        joined: list[bytes] = []
        faults: list[Invalid] = []
        for line in self.source.lines():
            with on_line(line.number):
                body, fault = strict(line.text)
            if not joined and not self.pieces(body):
                yield _Document(body, line.number, fault)
                continue
            joined.append(body)
            if self.source.size > MAX_DOCUMENT:
                raise TooLarge("A conversation with one message a line may be 64 MiB. Split the file.")
            faults += [fault] if fault else []
        if joined:
            yield _Document(b"[" + b",".join(joined) + b"]", None, faults[0] if faults else None)


def _placed(document: _Document) -> AbstractContextManager[None]:
    """Names the line in a fault, where the file is JSON Lines."""
    return nullcontext() if document.line is None else on_line(document.line)


def _placed_messages(document: _Document, messages: Iterable[ImportedMessage]) -> Iterator[ImportedMessage]:
    with _placed(document):
        yield from messages


def _head(agent: ImportedAgent) -> tuple[ImportedMessage, ...]:
    return tuple(ImportedMessage(MessageRole.SYSTEM, (text_block(block.text),)) for block in agent.system)


def _shared_agent(agents: Iterable[ImportedAgent]) -> ImportedAgent:
    """The first agent, with the tools of all, the first model named, and the system prompt if all share it."""
    shared: ImportedAgent | None = None
    flags: dict[Flag, None] = {}
    for agent in agents:
        flags.update(dict.fromkeys(agent.flags))
        if shared is None:
            shared = agent
            continue
        known = {tool.name for tool in shared.tools}
        new = tuple(tool for tool in agent.tools if tool.name not in known)
        shared = replace(
            shared,
            model=shared.model or agent.model,
            system=shared.system if shared.system == agent.system else (),
            tools=shared.tools + new if new else shared.tools,
        )
    if shared is None:
        return ImportedAgent()
    tools, _ = one_a_name(shared.tools)
    return replace(shared, tools=tools, flags=tuple(flags))
