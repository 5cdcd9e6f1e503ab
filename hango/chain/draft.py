"""The request being assembled. Every item keeps its part; an override marks it and drops nothing.

Messages are digests: a draft of 10,000 messages reads no body. `to_request` is the one place that drops what is left
out and takes the provenance off.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Generic, TypeVar

from hango.agent_definition import AgentDefinition
from hango.chain.history import Repair
from hango.chain.parts import message_part
from hango.chain.replacement import replaced_blocks
from hango.chain.size import Size
from hango.digests import MessageDigest
from hango.domain import Override, OverrideAction, PartID
from hango.errors import Detail, Reason
from hango.messages import Block, Message, MessageRole, Request, SystemText, ToolSpec, text_block, tool_result

T = TypeVar("T")

Bodies = Mapping[int, Sequence[Block]]  # the blocks of persisted messages, by seq

# Items of a history that are not persisted messages have these numbers.
SUMMARY_SEQ = 0
EXTRA_SEQ = -1

# Of each message of a history: several times faster than asking the enum.
_ROLES = {role.value: role for role in MessageRole}

NOT_CARRIED_OUT = "This call was not carried out: it has no result in the history."


@dataclass(frozen=True, slots=True)
class Sourced(Generic[T]):
    """A value, the part it came from, and its size in tokens of the counting encoding."""

    part: PartID
    value: T
    tokens: int


SourcedBlock = Sourced[str]  # the text of one system block
SourcedTool = Sourced[ToolSpec]


@dataclass(frozen=True, slots=True)
class Mark:
    """What happens to a part: its override, or that it leaves with its partner."""

    override: Override | None = None
    because: PartID | None = None  # the named part with which this one leaves
    tokens: int = 0  # of the replacement
    drifted: bool = False  # the part's text has changed since the override was saved

    @property
    def paired(self) -> bool:
        return self.because is not None

    @property
    def excluded(self) -> bool:
        return self.paired or (self.override is not None and self.override.action is OverrideAction.EXCLUDE)

    @property
    def replacement(self) -> str | None:
        return self.override.replacement if self.override else None


NO_MARK = Mark()


@dataclass(frozen=True, slots=True)
class Stale:
    """An override that does nothing now, and why. `scope` says where it comes from: agent, session or call."""

    override: Override
    scope: str
    reason: Reason


@dataclass(frozen=True, slots=True)
class Draft:
    """The next request, still knowing where everything came from.

    `messages` are the items of the history in order: the summary first (seq 0), the extra text last (seq -1). A
    replaced one stands there with its new text.
    `repair` says how the items that are not left out go on the wire, `unmarked` how all would without any override.
    `breakpoint` is a part, not an index, so that it survives exclusion. `problems` are what people should know about
    this request.
    """

    system: tuple[SourcedBlock, ...]
    tools: tuple[SourcedTool, ...]
    messages: tuple[MessageDigest, ...]
    untaken: frozenset[PartID] = frozenset()  # tools that only another provider knows
    texts: Mapping[int, str] = field(default_factory=dict)  # of the items that are not persisted, by seq
    marks: Mapping[PartID, Mark] = field(default_factory=dict)
    originals: Mapping[int, MessageDigest] = field(default_factory=dict)  # of the replaced messages, by seq
    left_out: frozenset[int] = frozenset()  # the excluded items, by seq
    stale: tuple[Stale, ...] = ()
    repair: Repair | None = None
    unmarked: Repair | None = None
    breakpoint: PartID | None = None
    would_compact: bool = False
    compact_at: int | None = None
    problems: tuple[Detail, ...] = ()
    size: Size | None = None

    def mark(self, part: PartID) -> Mark:
        return self.marks.get(part, NO_MARK)

    def kept_system(self) -> list[tuple[PartID, str]]:
        """Part and text of each system block that is sent: not left out, and not empty."""
        if not self.marks:
            return [(item.part, item.value) for item in self.system if item.value and not item.value.isspace()]
        return [
            (item.part, text)
            for item in self.system
            if not (mark := self.mark(item.part)).excluded and (text := mark.replacement or item.value).strip()
        ]

    def kept_tools(self) -> Sequence[SourcedTool]:
        if not self.marks and not self.untaken:
            return self.tools
        return [item for item in self.tools if not self.mark(item.part).excluded and item.part not in self.untaken]

    def kept_messages(self) -> Sequence[MessageDigest]:
        """The items that no override leaves out; the whole history when there is no override."""
        if not self.left_out:
            return self.messages
        return [item for item in self.messages if item.seq not in self.left_out]

    def stored_messages(self) -> Sequence[MessageDigest]:
        """All items, the replaced ones as they were."""
        return [self.originals.get(item.seq, item) for item in self.messages] if self.originals else self.messages

    def without_overrides(self) -> Draft:
        """The same call as if nobody had left anything out or replaced it."""
        stored = tuple(self.stored_messages())
        return replace(self, messages=stored, marks={}, originals={}, left_out=frozenset(), repair=self.unmarked)

    def to_request(self, agent: AgentDefinition, bodies: Bodies) -> Request:
        """Drop what is left out, repair what is sent, take the provenance off.

        `bodies` holds the blocks of every kept persisted message, by seq.
        """
        system = self.kept_system()
        return Request(
            model=agent.model_name,
            system=tuple(SystemText(text, marked=part == self.breakpoint) for part, text in system),
            tools=tuple(item.value for item in self.kept_tools()),
            messages=self._wire_messages(bodies),
            max_output_tokens=agent.max_output_tokens,
            params=agent.params,
            mark_last_tool=self.breakpoint is not None and self.breakpoint.startswith("tool:"),
            cache_ttl=agent.cache.ttl,
        )

    def _wire_messages(self, bodies: Bodies) -> tuple[Message, ...]:
        assert self.repair is not None, "the context_overrides slot sets the repair"
        kept = self.kept_messages()

        def blocks(index: int) -> Sequence[Block]:
            seq = kept[index].seq
            stored = (text_block(self.texts[seq]),) if seq in self.texts else bodies[seq]
            text = self.mark(message_part(seq)).replacement if seq in self.originals else None
            return stored if text is None else replaced_blocks(stored, text)

        made = []
        for turn in self.repair.turns:
            if isinstance(turn, int):
                item = kept[turn]
                made.append(Message(_ROLES[item.role], tuple(blocks(turn)), item.model))
                continue
            content = [
                tool_result(ref.missing, NOT_CARRIED_OUT, is_error=True)
                if ref.missing is not None
                else blocks(ref.item)[ref.block]
                for ref in turn.blocks
            ]
            made.append(Message(MessageRole(turn.role), tuple(content), turn.model))
        return tuple(made)
