"""What is odd in a conversation: kept as it is, and told by part and reason. Only text that cannot be is refused."""

from __future__ import annotations

import json

from hango import jsontext
from hango.chain.formats.transcript import Flag, ImportedAgent, ImportedMessage, ImportedSummary
from hango.errors import Invalid, Reason
from hango.messages import Block, MessageRole, is_blank, is_call, is_result

_NUL = "\\u0000"
_KNOWN = frozenset(
    {
        "text", "image", "document", "search_result", "tool_use", "thinking", "redacted_thinking", "server_tool_use",
        "mcp_tool_use", "container_upload", "compaction",
    }
)  # fmt: skip


class Watch:
    """Sees the messages of one session in order; `flags` tells what was odd, after the last."""

    def __init__(self) -> None:
        self._flags: dict[tuple[int, Reason], None] = {}
        self._waiting: dict[str, list[int]] = {}  # id of a call -> seqs of its unanswered uses
        self._answered: set[str] = set()

    def see(self, seq: int, message: ImportedMessage) -> None:
        """Raises Invalid (`invalid_text`) that names the part when a string of it cannot be stored."""
        for block in message.content:
            check_text(block, f"message:{seq}")
        if message.role is MessageRole.SYSTEM:
            self._flag(seq, Reason.SYSTEM_IN_HISTORY)
        if not message.content:
            self._flag(seq, Reason.EMPTY_MESSAGE)
        for block in message.content:
            self._look(seq, block)

    def flags(self) -> tuple[Flag, ...]:
        unanswered = [(seq, Reason.UNPAIRED_TOOL_USE) for seqs in self._waiting.values() for seq in seqs]
        found = sorted({**self._flags, **dict.fromkeys(unanswered)})
        return tuple(Flag(f"message:{seq}", reason) for seq, reason in found)

    def _look(self, seq: int, block: Block) -> None:
        type = block.type
        if is_call(type):
            self._call(seq, block)
        elif is_result(type):
            self._result(seq, block.view.tool_use_id or "")
        elif type == "text" and is_blank(block.view.text or ""):
            self._flag(seq, Reason.EMPTY_TEXT)
        elif type == "thinking" and not block.view.signature:
            self._flag(seq, Reason.UNSIGNED_THINKING)
        elif type not in _KNOWN:
            self._flag(seq, Reason.UNKNOWN_BLOCK)

    def _call(self, seq: int, block: Block) -> None:
        if not bytes(block.view.input).startswith(b"{"):
            self._flag(seq, Reason.BAD_TOOL_ARGUMENTS)
        seqs = self._waiting.setdefault(block.view.id or "", [])
        if seqs:
            self._flag(seq, Reason.DUPLICATE_TOOL_USE_ID)
        seqs.append(seq)

    def _result(self, seq: int, id: str) -> None:
        """A result answers the nearest earlier call of its id that has no result yet: ids come back in later turns."""
        seqs = self._waiting.get(id)
        if seqs:
            seqs.pop()
            if not seqs:
                del self._waiting[id]
            self._answered.add(id)
        else:
            known = id in self._answered
            self._flag(seq, Reason.DUPLICATE_TOOL_RESULT if known else Reason.UNPAIRED_TOOL_RESULT)

    def _flag(self, seq: int, reason: Reason) -> None:
        self._flags[seq, reason] = None


def check_agent(agent: ImportedAgent) -> None:
    """Raise Invalid (`invalid_text`) that names the part when a text of the agent cannot be stored."""
    for block in agent.system:
        if not jsontext.is_text(block.text):
            raise _bad_text(f"system:{block.name}")
    for place, tool in enumerate(agent.tools, 1):
        if not jsontext.is_text(tool.name):
            raise _bad_text(f"tool:{place}")
        if not jsontext.is_text(tool.description) or any(_holds_nul(t) for t in (tool.input_schema, tool.definition)):
            raise _bad_text(f"tool:{tool.name}")


def check_summary(summary: ImportedSummary) -> None:
    """Raise Invalid (`invalid_text`) when the text of the summary cannot be stored."""
    if not jsontext.is_text(summary.text):
        raise _bad_text("summary")


def check_text(block: Block, part: str) -> None:
    """Raise Invalid (`invalid_text`) that names the part when a string of the block holds NUL."""
    if _holds_nul(block.json):
        raise _bad_text(part)


def _holds_nul(text: str | None) -> bool:
    """True when a string of the JSON text holds NUL; a backslash before the escape makes it plain letters."""
    if text is None or _NUL not in text:
        return False
    try:
        jsontext.check_text(json.loads(text))
    except Invalid:
        return True
    return False


def _bad_text(part: str) -> Invalid:
    message = f"{part} holds NUL or half of a surrogate pair, which cannot be stored. Take it out of the file."
    return Invalid.because(Reason.INVALID_TEXT, message, part=part)
