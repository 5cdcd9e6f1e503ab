"""Claude Code session files: the last branch is the session, every side chain is one of its own. Read in two passes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from hango.chain.formats.claude_tree import MAIN, Kind, Node, Tree, groups, index
from hango.chain.formats.reading import blocks, decode, on_line, strict, time_of, with_provider
from hango.chain.formats.source import Source
from hango.chain.formats.transcript import (
    Flag,
    Format,
    ImportedAgent,
    ImportedMessage,
    ImportedSession,
    ImportedSummary,
    Transcript,
    numbered,
)
from hango.errors import Invalid, Reason
from hango.messages import Block, MessageRole

PROVIDER = "anthropic"
_ROLES = {Kind.USER: MessageRole.USER, Kind.SUMMARY: MessageRole.USER, Kind.ASSISTANT: MessageRole.ASSISTANT}


class _Message(msgspec.Struct):
    content: msgspec.Raw = msgspec.Raw(b"")


class _Line(msgspec.Struct):
    message: _Message
    timestamp: Any = None


def read(source: Source) -> Transcript:
    """The transcript of a file. The first pass orders the lines; each session reads its own when it is asked for."""
    tree = index(source)
    lanes = tree.lanes()
    if not lanes:
        raise Invalid.because(Reason.MISSING_FIELD, "The file holds no message.")
    models = [node.model for node in tree.nodes if node.model and (node.lane == MAIN or MAIN not in lanes)]
    agent = ImportedAgent(model=with_provider(PROVIDER, models[-1] if models else None))
    return Transcript(Format.CLAUDE_CODE, agent, _sessions(source, tree, lanes))


def _sessions(source: Source, tree: Tree, lanes: dict[str, int]) -> Iterator[ImportedSession]:
    aside = 0
    for lane, leaf in lanes.items():
        branch = tree.branch(leaf)
        title = _title(tree, branch)
        if lane == MAIN:
            yield _session(source, tree, branch, title, ())
        else:
            aside += 1
            named = f"{title} (side chain {aside})" if title else f"Side chain {aside}"
            yield _session(source, tree, branch, named, (Flag("message:1", Reason.SIDE_CHAIN),))


def _session(
    source: Source, tree: Tree, branch: Sequence[int], title: str | None, flags: tuple[Flag, ...]
) -> ImportedSession:
    made = list(groups(tree, branch))
    last = max((n for n, group in enumerate(made) if group[0].kind is Kind.SUMMARY), default=0)
    summary = None
    # A summary with nothing before it stands for no message, and a blank one for nothing: it stays a message itself.
    if last and (text := _text(_message(source, made[last]))).strip():
        summary = ImportedSummary(text, through_seq=last)
        made = made[:last] + made[last + 1 :]
    messages = numbered(_message(source, group) for group in made)
    return ImportedSession(title, messages, summary, flags)


def _message(source: Source, group: Sequence[Node]) -> ImportedMessage:
    """One message of all its lines; a block that was written twice is there once."""
    found: dict[Block, None] = {}
    times = []
    for node in group:
        with on_line(node.line):
            text = source.line_at(node.offset, node.line).text
            line = decode(strict(text)[0] if node.fault else text.removeprefix(b"\xef\xbb\xbf"), _Line)
            found.update(dict.fromkeys(blocks(line.message.content, "/message/content")))
            times.append(time_of(line.timestamp))
    first = group[0]
    model = next((node.model for node in group if node.model), None)
    return ImportedMessage(_ROLES[first.kind], tuple(found), with_provider(PROVIDER, model), times[0])


def _text(message: ImportedMessage) -> str:
    return "\n\n".join(block.view.text or "" for block in message.content if block.type == "text")


def _title(tree: Tree, branch: Sequence[int]) -> str | None:
    """The name a person gave, else the summary of this branch, else the last summary of the file."""
    if tree.title or not tree.summaries:
        return tree.title
    places = set(branch)
    own = [title for leaf, title in tree.summaries.items() if tree.places.get(leaf) in places]
    return (own or list(tree.summaries.values()))[-1]
