"""The tree of a Claude Code session file: which lines are one conversation, and which lines are one message of it.

Holds a small record a line and never the content, so that a large file can be ordered before it is read again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import IntEnum, auto
from itertools import groupby

import msgspec

from hango.chain.formats.reading import bad_line, decode, is_array, is_object, on_line, strict
from hango.chain.formats.source import Line, Source
from hango.errors import Invalid

MAIN = ""  # the lane of lines that are on no side chain
_NO_MODEL = "<synthetic>"


class Kind(IntEnum):
    OTHER = auto()  # bookkeeping that may stand between messages in the tree
    USER = auto()
    ASSISTANT = auto()
    SUMMARY = auto()  # what a compaction wrote in place of the messages before it


class _BlockHead(msgspec.Struct):
    type: str = ""
    id: str | None = None
    tool_use_id: str | None = None


class _MessageHead(msgspec.Struct):
    id: str | None = None
    model: str | None = None
    content: msgspec.Raw = msgspec.Raw(b"")


class _Entry(msgspec.Struct, rename="camel"):
    type: str = ""
    uuid: str | None = None
    parent_uuid: str | msgspec.UnsetType | None = msgspec.UNSET
    logical_parent_uuid: str | None = None
    is_sidechain: bool | None = None
    is_meta: bool | None = None
    is_compact_summary: bool | None = None
    is_api_error_message: bool | None = None
    subtype: str | None = None
    agent_id: str | None = None
    summary: str | None = None
    leaf_uuid: str | None = None
    custom_title: str | None = None
    ai_title: str | None = None
    parent_tool_use_id: str | None = msgspec.field(default=None, name="parent_tool_use_id")
    message: _MessageHead | None = None


@dataclass(slots=True)
class Node:
    """A line of the tree. `parent` is a place in the list of nodes."""

    offset: int
    line: int
    kind: Kind
    lane: str
    parent: int | None = None
    group: str | None = None  # lines of one answer share the id of its message
    model: str | None = None
    calls: tuple[str, ...] = ()
    results: tuple[str, ...] = ()
    boundary: bool = False  # a compaction: the tree begins again here
    fault: bool = False  # a string of the line cannot be stored


@dataclass(slots=True)
class Tree:
    nodes: list[Node] = field(default_factory=list)
    places: dict[str, int] = field(default_factory=dict)  # uuid -> place
    title: str | None = None
    summaries: dict[str, str] = field(default_factory=dict)  # uuid of a leaf -> title of its branch

    def lanes(self) -> dict[str, int]:
        """The lanes that hold a message, in order, each with the place of its last one."""
        found = {node.lane: place for place, node in enumerate(self.nodes) if node.kind is not Kind.OTHER}
        return dict(sorted(found.items(), key=lambda lane: lane[0] != MAIN))

    def branch(self, leaf: int) -> list[int]:
        """The places from the root of the leaf's lane to the leaf, over compactions."""
        lane = self.nodes[leaf].lane
        found: dict[int, None] = {}
        place: int | None = leaf
        while place is not None and place not in found and self.nodes[place].lane == lane:
            found[place] = None
            node = self.nodes[place]
            begins_again = node.boundary or node.kind is Kind.SUMMARY
            place = self._before(place, lane) if node.parent is None and begins_again else node.parent
        return list(reversed(found))

    def _before(self, place: int, lane: str) -> int | None:
        """The last message of the lane before the place, for a compaction that does not say what it follows."""
        earlier = range(place - 1, -1, -1)
        return next((p for p in earlier if self.nodes[p].lane == lane and self.nodes[p].kind is not Kind.OTHER), None)


def index(source: Source) -> Tree:
    """The tree of a file. Raises Malformed or Invalid that names the line."""
    tree = Tree()
    unknown: list[tuple[int, str]] = []  # places whose parent comes later in the file
    last: dict[str, int] = {}  # lane -> its last place, for lines that name no parent
    for line in source.lines():
        entry, fault = _entry(line)
        if entry is None:
            continue
        _take_title(tree, entry)
        if (entry.uuid is None and entry.message is None) or entry.uuid in tree.places:
            continue
        place = len(tree.nodes)
        node = _node(line, entry, fault)
        parent = entry.logical_parent_uuid if node.boundary else entry.parent_uuid
        if isinstance(parent, str):
            node.parent = tree.places.get(parent)
            if node.parent is None:
                unknown.append((place, parent))
        if entry.is_sidechain and not node.lane:
            above = tree.nodes[node.parent].lane if node.parent is not None else MAIN
            node.lane = above or f"#{place}"
        if parent is msgspec.UNSET:
            node.parent = last.get(node.lane)
        if entry.uuid is not None:
            tree.places[entry.uuid] = place
        last[node.lane] = place
        tree.nodes.append(node)
    for place, parent in unknown:
        tree.nodes[place].parent = tree.places.get(parent)
    return tree


def groups(tree: Tree, branch: Sequence[int]) -> Iterator[list[Node]]:
    """The lines of each message of a branch, in order.

    Lines of one answer are one message, also where results stand between them. Parallel calls fork the tree: a call or
    a result that hangs beside the branch belongs to it too.
    """
    made: list[list[Node]] = []
    beside = _beside(tree, branch)
    for place in branch:
        node = tree.nodes[place]
        if node.kind is Kind.OTHER:
            continue
        answer = _open_answer(made, node)
        if answer is not None:
            answer.append(node)
            continue
        made.append([node])
        if node.kind is Kind.ASSISTANT and node.group in beside:
            calls, results = beside.pop(node.group)
            made[-1] += calls
            made += [[result] for result in results]
    for is_result, run in groupby(made, key=lambda group: bool(group[0].results)):
        together = list(run)
        yield from sorted(together, key=lambda group: group[0].line) if is_result else together


def _open_answer(made: Sequence[list[Node]], node: Node) -> list[Node] | None:
    """The message that the line goes on with: the last one, results aside, when it has the same id."""
    if node.kind is not Kind.ASSISTANT or node.group is None:
        return None
    for group in reversed(made):
        if group[0].kind is Kind.ASSISTANT:
            return group if group[0].group == node.group else None
        if not group[0].results:
            return None
    return None


def _beside(tree: Tree, branch: Sequence[int]) -> dict[str | None, tuple[list[Node], list[Node]]]:
    """For the id of a message on the branch: its calls and results that are not on the branch themselves."""
    on_branch = set(branch)
    ids = {tree.nodes[place].group for place in branch} - {None}
    callers = {call: tree.nodes[place].group for place in branch for call in tree.nodes[place].calls}
    answered = {id for place in branch for id in tree.nodes[place].results}
    found: dict[str | None, tuple[list[Node], list[Node]]] = {}
    lane = tree.nodes[branch[-1]].lane if branch else MAIN
    for place, node in enumerate(tree.nodes):
        if place in on_branch or node.lane != lane:
            continue
        if node.kind is Kind.ASSISTANT and node.group in ids:
            found.setdefault(node.group, ([], []))[0].append(node)
            callers.update(dict.fromkeys(node.calls, node.group))
        elif node.kind is Kind.USER and node.results and answered.isdisjoint(node.results):
            caller = callers.get(node.results[0])
            if caller is not None:
                answered.update(node.results)
                found.setdefault(caller, ([], []))[1].append(node)
    return found


def _entry(line: Line) -> tuple[_Entry | None, bool]:
    """The line's entry, None for a line of a kind that holds no message and is written otherwise."""
    with on_line(line.number):
        body, fault = strict(line.text)
    if not is_object(body):
        raise bad_line(line.number, "is not a JSON object.")
    try:
        with on_line(line.number):
            return decode(body, _Entry), fault is not None
    except Invalid:
        if decode(body, _Kind).type in ("user", "assistant"):
            raise
        return None, False


class _Kind(msgspec.Struct):
    type: str | None = None


def _node(line: Line, entry: _Entry, fault: bool) -> Node:
    node = Node(
        offset=line.offset,
        line=line.number,
        kind=_kind(entry),
        lane=entry.agent_id or entry.parent_tool_use_id or MAIN if _is_aside(entry) else MAIN,
        boundary=entry.subtype == "compact_boundary",
        fault=fault,
    )
    message = entry.message
    if message is None or node.kind is Kind.OTHER:
        return node
    if is_array(message.content):
        with on_line(line.number):
            heads = decode(message.content, list[_BlockHead], "/message/content")
        node.calls = tuple(head.id for head in heads if head.type == "tool_use" and head.id)
        node.results = tuple(head.tool_use_id for head in heads if head.type == "tool_result" and head.tool_use_id)
    if node.kind is Kind.ASSISTANT:
        node.group = message.id
        node.model = None if message.model == _NO_MODEL else message.model
    return node


def _is_aside(entry: _Entry) -> bool:
    return bool(entry.is_sidechain or entry.parent_tool_use_id)


def _kind(entry: _Entry) -> Kind:
    if entry.message is None or entry.is_meta or entry.is_api_error_message:
        return Kind.OTHER
    if entry.type == "user":
        return Kind.SUMMARY if entry.is_compact_summary else Kind.USER
    return Kind.ASSISTANT if entry.type == "assistant" else Kind.OTHER


def _take_title(tree: Tree, entry: _Entry) -> None:
    if entry.custom_title or entry.ai_title:
        tree.title = entry.custom_title or tree.title or entry.ai_title
    elif entry.type == "summary" and entry.summary:
        tree.summaries[entry.leaf_uuid or ""] = entry.summary
