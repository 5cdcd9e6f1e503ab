"""Work given to a child with a fresh context: the block that explains it and the `task` tool."""

from __future__ import annotations

from collections.abc import Sequence

from hango.chain.draft import SourcedBlock
from hango.chain.middleware.base import Middleware, block
from hango.chain.parts import system_part
from hango.chain.state import State
from hango.messages import ToolSpec

PROMPT = """\
# Subagents

With `task` you give a piece of work to a subagent. It starts with an empty context: it knows your files and what you
write in the task, nothing of this conversation. Use it for work that needs much reading and has a short answer, and say
what the answer must contain."""

TASK = ToolSpec(
    name="task",
    description="Give a piece of work to a subagent with a fresh context and get its answer.",
    input_schema=(
        '{"type":"object","properties":{"description":{"type":"string","description":"All the subagent needs to '
        'know, and what its answer must contain."}},"required":["description"]}'
    ),
)


class SubagentMiddleware(Middleware):
    name = "subagent"

    def system_blocks(self, state: State) -> Sequence[SourcedBlock]:
        return (block(system_part(self.name), PROMPT),)

    def tools(self, state: State) -> Sequence[ToolSpec]:
        return (TASK,)
