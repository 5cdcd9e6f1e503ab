"""The memory slot: one part a file, its text the file's text alone."""

from __future__ import annotations

from hango.agent_definition import AgentDefinition
from hango.chain.middleware.memory import MAX_FILES, MemoryMiddleware
from hango.chain.state import State
from hango.domain import FileVersion
from hango.errors import Detail, Reason
from tests.histories import OWN_MODEL
from tests.states import NO_DATABASE, file, state_of


async def blocks_of(wanted: list[str], files: list[FileVersion]) -> tuple[list[tuple[str, str]], list[Detail], State]:
    state = state_of(AgentDefinition(OWN_MODEL, memory=tuple(wanted)), files=files)
    slot = MemoryMiddleware()
    await slot.before_run(state, NO_DATABASE)
    return [(item.part, item.value) for item in slot.system_blocks(state)], state.problems, state


async def test_one_part_a_path_in_the_agents_order() -> None:
    """Part id system:memory:<path>, one part a path, its text the file's text alone; a doubled path is one part."""
    files = [file("/memories/a.md", "A."), file("/memories/材料.md", "中文"), file("/notes/b.md", "not a memory")]

    made, problems, _ = await blocks_of(["/memories/材料.md", "/memories/a.md", "/memories/材料.md"], files)

    assert made == [("system:memory:/memories/材料.md", "中文"), ("system:memory:/memories/a.md", "A.")]
    assert problems == []


async def test_a_missing_file_is_said() -> None:
    """A memory file that is not there is no part, and stands in `problems`."""
    made, problems, _ = await blocks_of(["/gone.md", "/a.md"], [file("/a.md", "A.")])

    assert made == [("system:memory:/a.md", "A.")]
    message = "The memory file /gone.md does not exist, so nothing of it is sent."
    assert problems == [Detail(Reason.FILE_MISSING, message, "system:memory:/gone.md")]


async def test_a_cut_file_is_said() -> None:
    """A file over the size that a part may have is sent cut, and stands in `problems`."""
    made, problems, _ = await blocks_of(["/a.md"], [file("/a.md", "A.", cut=True)])

    assert made == [("system:memory:/a.md", "A.")]
    assert [(detail.reason, detail.part) for detail in problems] == [(Reason.FILE_CUT, "system:memory:/a.md")]


async def test_more_files_than_are_sent_are_said() -> None:
    """At most 64 memory files are sent; each other one stands in `problems`."""
    files = [file(f"/m/{n:03}.md", f"Memory {n}.") for n in range(MAX_FILES + 2)]

    made, problems, _ = await blocks_of([one.path for one in files], files)

    assert [part for part, _ in made] == [f"system:memory:{one.path}" for one in files[:64]]
    assert [(detail.reason, detail.part) for detail in problems] == [
        (Reason.TOO_MANY_FILES, f"system:memory:{one.path}") for one in files[64:]
    ]


async def test_before_the_run_nothing_is_known() -> None:
    """Blocks come from what was read before the run, never from a read in between."""
    state = state_of(AgentDefinition(OWN_MODEL, memory=("/a.md",)), files=[file("/a.md", "A.")])

    assert list(MemoryMiddleware().system_blocks(state)) == []
