"""The conversations of a ChatGPT export: of each tree the branch that the person saw last."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from hango import jsontext
from hango.chain.formats import agents
from hango.chain.formats.gather import Conversation
from hango.chain.formats.reading import decode, is_array, is_nothing, is_string, time_of, with_provider
from hango.chain.formats.transcript import ImportedMessage
from hango.errors import Invalid, Reason
from hango.messages import Block, MessageRole, text_block

PROVIDER = "openai"
_ROLES = {
    "user": MessageRole.USER,
    "assistant": MessageRole.ASSISTANT,
    "system": MessageRole.SYSTEM,
    "tool": MessageRole.USER,
}
_SYSTEM = frozenset({"system", "developer"})


class _Author(msgspec.Struct):
    role: str
    name: str | None = None


class _Metadata(msgspec.Struct):
    model_slug: str | None = None
    is_visually_hidden_from_conversation: bool | None = None


class _Message(msgspec.Struct):
    author: _Author
    content: msgspec.Raw = msgspec.Raw(b"")
    create_time: Any = None
    metadata: _Metadata | None = None


class _Node(msgspec.Struct):
    message: msgspec.Raw = msgspec.Raw(b"")
    parent: str | None = None


class _Tree(msgspec.Struct):
    mapping: dict[str, _Node]
    current_node: str | None = None
    title: str | None = None
    default_model_slug: str | None = None


class _Content(msgspec.Struct):
    content_type: str = "text"
    parts: list[msgspec.Raw] | None = None
    text: str | None = None
    result: str | None = None
    thoughts: list[_Thought] | None = None


class _Thought(msgspec.Struct):
    summary: str | None = None
    content: str | None = None


class _Part(msgspec.Struct):
    content_type: str = "part"
    text: str | None = None


def read(body: bytes) -> Iterator[Conversation]:
    """One conversation, or the list of them."""
    if not is_array(body):
        yield _conversation(body, "")
        return
    for n, raw in enumerate(decode(body, list[msgspec.Raw])):
        yield _conversation(bytes(raw), f"/{n}")


def _conversation(body: bytes, at: str) -> Conversation:
    tree = decode(body, _Tree, at)
    shown = [node for node in _branch(tree) if not is_nothing(tree.mapping[node].message)]
    kept = [(node, message) for node in shown for message in [_message(tree, node, at)] if not _is_hidden(message)]
    system: list[str] = []
    while kept and kept[0][1].author.role in _SYSTEM:
        node, message = kept.pop(0)
        system += [block.view.text or "" for block in _blocks(message.content, _pointer(at, node))]
    models = [m.metadata.model_slug for _, m in kept if m.metadata and m.metadata.model_slug]
    model = with_provider(PROVIDER, models[-1] if models else tree.default_model_slug)
    return Conversation(agents.make_agent(model=model, system=system), _messages(kept, at), tree.title)


def _branch(tree: _Tree) -> list[str]:
    """The nodes from the root to the current one; without one that is there, to the last of the file."""
    node = tree.current_node if tree.current_node in tree.mapping else next(reversed(tree.mapping), None)
    found: dict[str, None] = {}
    while node is not None and node in tree.mapping and node not in found:
        found[node] = None
        node = tree.mapping[node].parent
    return list(reversed(found))


def _message(tree: _Tree, node: str, at: str) -> _Message:
    return decode(tree.mapping[node].message, _Message, _pointer(at, node))


def _pointer(at: str, node: str) -> str:
    return f"{at}/mapping/{node.replace('~', '~0').replace('/', '~1')}/message"


def _is_hidden(message: _Message) -> bool:
    hidden = message.metadata is not None and message.metadata.is_visually_hidden_from_conversation
    return bool(hidden) or is_nothing(message.content) or not _blocks(message.content, "")


def _messages(kept: Sequence[tuple[str, _Message]], at: str) -> Iterator[ImportedMessage]:
    for node, message in kept:
        place = _pointer(at, node)
        role = message.author.role
        blocks = _blocks(message.content, f"{place}/content")
        if role == "tool":
            blocks = [_with_author(block, message.author.name or "tool") for block in blocks]
        elif role not in _ROLES and role not in _SYSTEM:
            sentence = f"The role at '{place}/author/role' is none of {', '.join(_ROLES)}."
            raise Invalid.because(Reason.BAD_FIELD, sentence, pointer=f"{place}/author/role")
        slug = message.metadata.model_slug if message.metadata and role == "assistant" else None
        yield ImportedMessage(
            role=_ROLES.get(role, MessageRole.SYSTEM),
            content=tuple(blocks),
            model=with_provider(PROVIDER, slug),
            created_at=time_of(message.create_time),
        )


def _blocks(raw: msgspec.Raw, at: str) -> list[Block]:
    """The blocks of a content; empty texts make none. What is neither text nor thought is kept as it came."""
    content = decode(raw, _Content, at)
    if content.thoughts is not None:
        thoughts = ["\n".join(filter(None, (each.summary, each.content))) for each in content.thoughts]
        return [Block.make("thinking", thinking=text) for text in thoughts if text]
    if content.parts is not None:
        return [b for n, part in enumerate(content.parts) for b in _part(part, f"{at}/parts/{n}")]
    text = content.text if content.text is not None else content.result
    if text is not None:
        return [text_block(text)] if text else []
    return [_as_it_came(content.content_type, raw)]


def _part(raw: msgspec.Raw, at: str) -> list[Block]:
    if is_string(raw):
        text = decode(raw, str, at)
        return [text_block(text)] if text else []
    if is_nothing(raw):
        return []
    part = decode(raw, _Part, at)
    return [text_block(part.text)] if part.text else [_as_it_came(part.content_type, raw)]


def _as_it_came(type: str, raw: msgspec.Raw) -> Block:
    members: Mapping[str, msgspec.Raw] = jsontext.fields(bytes(raw).decode())
    rest = {name: value for name, value in members.items() if name != "type"}
    return Block.of(jsontext.dumps({"type": type, **rest}))


def _with_author(block: Block, name: str) -> Block:
    return text_block(f"[{name}] {block.view.text}") if block.type == "text" else block
