"""Memory: one system block per memory file, its text the file's text alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hango.chain.draft import SourcedBlock
from hango.chain.middleware.base import Middleware, block
from hango.chain.parts import memory_part
from hango.chain.state import State
from hango.domain import FileVersion
from hango.errors import Detail, Reason
from hango.store.connection import Scope

MAX_FILES = 64


@dataclass(frozen=True, slots=True)
class Memories:
    """The memory files of this run, in the agent's order."""

    files: tuple[FileVersion, ...]


class MemoryMiddleware(Middleware):
    name = "memory"

    async def before_run(self, state: State, scope: Scope) -> None:
        wanted = list(dict.fromkeys(state.agent.memory))
        found = [state.files[path] for path in wanted if path in state.files]
        state.put(Memories(tuple(found[:MAX_FILES])))
        for path in wanted:
            part = memory_part(path)
            if path not in state.files:
                message = f"The memory file {path} does not exist, so nothing of it is sent."
                state.problems.append(Detail(Reason.FILE_MISSING, message, part=part))
            elif state.files[path].cut:
                message = f"The memory file {path} is cut at 262,144 characters."
                state.problems.append(Detail(Reason.FILE_CUT, message, part=part))
        for file in found[MAX_FILES:]:
            message = f"At most {MAX_FILES} memory files are sent; {file.path} is left out."
            state.problems.append(Detail(Reason.TOO_MANY_FILES, message, part=memory_part(file.path)))

    def system_blocks(self, state: State) -> Sequence[SourcedBlock]:
        memories = state.get(Memories)
        return [block(memory_part(file.path), file.content) for file in memories.files] if memories else ()
