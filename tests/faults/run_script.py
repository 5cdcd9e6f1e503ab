"""What the provider says in a run: so many tools in turn, each told from the others, then an answer.

A run says in its message how many tools it wants (`times`). The provider finds out from the history how far it is, so
that every call of a run has a name of its own, whoever makes it, and one that is made twice is found.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from typing import Any

from tests.providers_server import chat, message

MARK = re.compile(r"mark:([0-9a-f]{32}) do:([a-z_]+) for:([0-9.]+) times:([0-9]+)")
# From so many tools on the second one is a subagent, which makes a call of its own.
TOOLS_WITH_A_TASK = 3
TASK_AT = 1


def spoken(body: bytes) -> tuple[str, int]:
    """The last words of the user, and how often the model has answered since."""
    history = json.loads(body)["messages"]
    for at in range(len(history) - 1, -1, -1):
        if history[at]["role"] == "user" and MARK.search(said := _text(history[at]["content"])):
            return said, sum(one["role"] == "assistant" for one in history[at:])
    return "", 0


def answer(mark: str, turn: int, tools: int, *, anthropic: bool) -> dict[str, Any]:
    """The answer of this turn: a call of a tool, or the end."""
    if turn >= tools:
        return message("Well.") if anthropic else chat("Well.")
    name, arguments = _tool(mark, turn, tools)
    if anthropic:
        call = {"type": "tool_use", "id": f"toolu_{turn}", "name": name, "input": arguments}
        return message(call, stop_reason="tool_use")
    asked = {"id": f"call_{turn}", "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
    return chat(None, finish_reason="tool_calls", tool_calls=[asked])


def has_task(tools: int) -> bool:
    return tools >= TOOLS_WITH_A_TASK


def files_of(mark: str, tools: int) -> list[str]:
    """What a run that succeeded has written."""
    return [path(mark, turn) for turn in range(tools) if not (has_task(tools) and turn == TASK_AT)]


def path(mark: str, turn: int) -> str:
    return f"/{mark}-{turn}.md"


def mark_of_task(mark: str) -> str:
    """That of the subagent's call."""
    return hashlib.sha256(mark.encode()).hexdigest()[:32]


def _tool(mark: str, turn: int, tools: int) -> tuple[str, dict[str, str]]:
    if has_task(tools) and turn == TASK_AT:
        return "task", {"description": f"mark:{mark_of_task(mark)} do:answer for:0.1 times:0"}
    return "write_file", {"path": path(mark, turn), "content": "Well."}


def _text(content: str | Sequence[dict[str, Any]]) -> str:
    if isinstance(content, str):
        return content
    return " ".join(one["text"] for one in content if one["type"] == "text")
