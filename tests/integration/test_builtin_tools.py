"""The built-in tools on the agent's files in PostgreSQL: each call, and the whole result that the model reads."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pytest

from hango.agent_definition import AgentDefinition
from hango.chain.builtin_tools.base import MAX_RESULT_CHARS, Outcome, Workplace, failed
from hango.chain.builtin_tools.files import MOST_FOUND, MOST_LISTED
from hango.chain.builtin_tools.run_tool import SPECS, WORK, run_tool
from hango.chain.builtin_tools.task import task_of
from hango.chain.middleware.filesystem import TOOLS
from hango.chain.middleware.skills import LOAD_SKILL
from hango.chain.middleware.subagent import TASK
from hango.chain.middleware.todo import WRITE_TODOS
from hango.domain import Agent, AuditAction, FileVersionID, Principal
from hango.files import CONTENT_CHARS
from hango.messages import Block, ToolSpec
from hango.store import agents, audit, context_bases, files
from hango.store.connection import Store
from hango.store.context_bases import CurrentBase
from tests.rows import make_agent, make_session

ALL = {spec.name: spec for spec in (WRITE_TODOS, *TOOLS, LOAD_SKILL, TASK)}
PLAN = "one\ntwo\nthree\n"


def call(name: str, arguments: Mapping[str, Any]) -> Block:
    return Block(json.dumps({"type": "tool_use", "id": "call_0", "name": name, "input": arguments}))


@dataclass(frozen=True)
class Bench:
    """An agent's files and the tools on them; each call in a transaction of its own."""

    store: Store
    owner: Principal
    agent: Agent
    base: CurrentBase

    async def run(self, name: str, tools: Mapping[str, ToolSpec] = ALL, /, **arguments: Any) -> Outcome:
        async with self.store.begin(self.owner) as scope:
            return await run_tool(Workplace(scope, self.base), call(name, arguments), tools)

    async def put(self, texts: Mapping[str, str]) -> None:
        async with self.store.begin(self.owner) as scope:
            for path, text in texts.items():
                await files.write(scope, self.agent.id, path, text)

    async def text(self, path: str) -> str | None:
        async with self.store.read(self.owner) as scope:
            file = await files.read(scope, self.agent.id, path)
        return None if file is None else file.content

    async def begun_anew(self) -> Bench:
        """The same agent with the base that a run would begin with now."""
        async with self.store.begin(self.owner) as scope:
            session = await make_session(scope, self.agent)
            base = await context_bases.current(scope, session.id)
        assert base is not None
        return Bench(self.store, self.owner, self.agent, base)


async def make_bench(store: Store, owner: Principal) -> Bench:
    async with store.begin(owner) as scope:
        agent = await make_agent(scope, definition=AgentDefinition(model="offline/extract"))
        session = await make_session(scope, agent)
        base = await context_bases.current(scope, session.id)
    assert base is not None
    return Bench(store, owner, agent, base)


@pytest.fixture
async def bench(store: Store, admin: Principal) -> Bench:
    return await make_bench(store, admin)


def test_every_tool_of_the_middlewares_is_carried_out() -> None:
    """What a request promises is done: each built-in tool has its work, but `task`, which is a conversation."""
    assert set(WORK) == set(SPECS) == set(ALL) - {TASK.name}


async def test_a_file_is_written_read_and_written_again(bench: Bench) -> None:
    """write_file writes a whole text file, a file of that path is replaced; read_file gives it to the letter."""
    wrote = await bench.run("write_file", path="/notes/büro.md", content="é\r\n\U0001f680\x1b[1m")
    read = await bench.run("read_file", path="/notes/büro.md")
    again = await bench.run("write_file", path="/notes/büro.md", content="")
    empty = await bench.run("read_file", path="/notes/büro.md")

    assert wrote == Outcome("Wrote /notes/büro.md (version 1, 8 characters).")
    assert read == Outcome("é\r\n\U0001f680\x1b[1m")
    assert again == Outcome("Wrote /notes/büro.md (version 2, 0 characters).")
    assert empty == Outcome("[the file is empty]")


async def test_a_write_is_audited_as_the_api_audits_it(bench: Bench) -> None:
    """Each write and edit leaves a row in the audit log, by the run's user, without content; a refused one none."""
    await bench.run("write_file", path="/a", content="x")
    await bench.run("edit_file", path="/a", old_text="x", new_text="y")
    await bench.run("edit_file", path="/a", old_text="x", new_text="z")
    await bench.run("write_file", path="a", content="x")

    async with bench.store.read(bench.owner) as scope:
        events = (await audit.list_all(scope)).data
    assert [
        (event.action, event.target_kind, event.target_id, event.user_id, event.detail)
        for event in reversed(events)
        if event.action is AuditAction.FILE_WRITE
    ] == [
        (AuditAction.FILE_WRITE, "agent", bench.agent.id, bench.owner.user_id, {"version": 1}),
        (AuditAction.FILE_WRITE, "agent", bench.agent.id, bench.owner.user_id, {"version": 2}),
    ]


async def test_some_lines_of_a_file(bench: Bench) -> None:
    """read_file reads a text file, or some lines of it: 2,000 when no limit is given, and says what is left."""
    await bench.put({"/plan.md": PLAN, "/long.txt": "x\n" * 2001, "/wide.txt": "y" * 150_000})

    assert await bench.run("read_file", path="/plan.md", offset=1, limit=1) == Outcome(
        "two\n[lines 2 to 2 of 3: go on with offset 2]"
    )
    assert await bench.run("read_file", path="/plan.md", offset=2.0) == Outcome("three\n[lines 3 to 3, the last]")
    assert await bench.run("read_file", path="/plan.md", offset=3) == failed(
        "/plan.md ends before the line of this offset: read it with a smaller one."
    )
    assert await bench.run("read_file", path="/long.txt") == Outcome(
        "x\n" * 2000 + "[lines 1 to 2000 of 2001: go on with offset 2000]"
    )
    assert await bench.run("read_file", path="/wide.txt") == Outcome(
        "y" * (MAX_RESULT_CHARS - 200) + "\n[line 1 is cut: 50,200 more characters]"
    )


async def test_an_edit_changes_one_place(bench: Bench) -> None:
    """edit_file replaces a text that stands there exactly once, or everywhere with replace_all; else nothing."""
    await bench.put({"/a": "red blue red"})

    refused = await bench.run("edit_file", path="/a", old_text="red", new_text="green")
    one = await bench.run("edit_file", path="/a", old_text="blue", new_text="red")
    every = await bench.run("edit_file", path="/a", old_text="red", new_text="green", replace_all=True)
    missing = await bench.run("edit_file", path="/a", old_text="red", new_text="x")

    assert refused == failed("The old text stands 2 times in the file: give more of what is around it, or replace_all.")
    assert one == Outcome("Replaced 1 place in /a (version 2, 11 characters).")
    assert every == Outcome("Replaced 3 places in /a (version 3, 17 characters).")
    assert missing == failed("The old text does not stand in the file: read it and copy the text to the letter.")
    assert await bench.text("/a") == "green green green"


async def test_edits_at_the_same_time_are_all_kept(bench: Bench) -> None:
    """Who reads a file to change it holds it: no edit of several runs is lost, and none waits for ever."""
    await bench.put({"/a": "".join(f"[{n}]" for n in range(8)), "/b": "".join(f"[{n}]" for n in range(8))})

    async def both(n: int) -> list[Outcome]:
        paths = ("/a", "/b") if n % 2 else ("/b", "/a")
        async with bench.store.begin(bench.owner) as scope:
            place = Workplace(scope, bench.base)
            return [
                await run_tool(
                    place, call("edit_file", {"path": path, "old_text": f"[{n}]", "new_text": f"<{n}>"}), ALL
                )
                for path in paths
            ]

    made = await asyncio.gather(*(both(n) for n in range(8)))

    assert [outcome.is_error for pair in made for outcome in pair] == [False] * 16
    whole = "".join(f"<{n}>" for n in range(8))
    assert (await bench.text("/a"), await bench.text("/b")) == (whole, whole)


async def test_files_are_listed_below_a_path(bench: Bench) -> None:
    """ls lists the files below a path, by path, with their sizes; a path is a folder, not the start of a name."""
    await bench.put({"/notes/b.md": "12", "/notes/a/c.md": "x" * 1234, "/notes.md": "", "/other": "1"})

    below = Outcome("/notes/a/c.md (1,234 characters)\n/notes/b.md (2 characters)")
    assert await bench.run("ls", path="/notes") == below
    assert await bench.run("ls", path="/notes/") == below
    assert await bench.run("ls", path="/other") == Outcome("/other (1 characters)")
    assert await bench.run("ls", path="/nothing") == Outcome("There are no files below /nothing.")
    assert await bench.run("ls", path="/") == Outcome(
        "/notes.md (0 characters)\n/notes/a/c.md (1,234 characters)\n/notes/b.md (2 characters)\n/other (1 characters)"
    )


async def test_files_are_found_by_a_pattern(bench: Bench) -> None:
    """glob finds files by a pattern such as /notes/**/*.md; a deleted file is not found."""
    await bench.put({"/notes/b.md": "", "/notes/a/c.md": "", "/notes/a/d.txt": "", "/gone.md": ""})
    async with bench.store.begin(bench.owner) as scope:
        await files.delete(scope, bench.agent.id, "/gone.md")

    assert await bench.run("glob", pattern="/notes/**/*.md") == Outcome("/notes/a/c.md\n/notes/b.md")
    assert await bench.run("glob", pattern="**/*.md") == Outcome("/notes/a/c.md\n/notes/b.md")
    assert await bench.run("glob", pattern="/notes/*.txt") == Outcome("No file has such a path.")
    assert await bench.run("glob", pattern="") == failed("A pattern has 1 to 1,024 characters, such as /notes/**/*.md.")


async def test_lines_are_found_by_a_text(bench: Bench) -> None:
    """grep finds the lines that hold a text, as it stands, in the files below a path or in all."""
    await bench.put(
        {"/a.md": "Bolts\n\nbolts 4%\r\nfour", "/notes/b.md": "bolts\n", "/notes/c.md": "nuts", "/notes2": "bolts"}
    )

    assert await bench.run("grep", pattern="bolts") == Outcome(
        "/a.md:3: bolts 4%\n/notes/b.md:1: bolts\n/notes2:1: bolts"
    )
    assert await bench.run("grep", pattern="bolts", path="/notes") == Outcome("/notes/b.md:1: bolts")
    assert await bench.run("grep", pattern="b", path="/notes2") == Outcome("/notes2:1: bolts")
    assert await bench.run("grep", pattern="4%") == Outcome("/a.md:3: bolts 4%")
    assert await bench.run("grep", pattern="b.lts") == Outcome("No line below / holds this text.")
    assert await bench.run("grep", pattern="a\nb") == failed(
        "The text to look for is part of one line: give some characters, and no line break."
    )


async def test_long_lists_are_cut_and_say_so(bench: Bench) -> None:
    """What is found is bounded, and the result says when there may be more."""
    await bench.put({f"/many/{n:04}.md": "x\nx\n" for n in range(MOST_LISTED + 1)})
    paths = [f"/many/{n:04}.md" for n in range(MOST_LISTED)]
    lines = [f"{path}:{number}: x" for path in paths[: MOST_FOUND // 2] for number in (1, 2)]

    assert await bench.run("ls", path="/many") == Outcome(
        "\n".join([*(f"{path} (4 characters)" for path in paths), "[more than 1,000 files: name a folder]"])
    )
    assert await bench.run("glob", pattern="/many/*") == Outcome(
        "\n".join([*paths, "[there may be more: give a narrower pattern]"])
    )
    assert await bench.run("grep", pattern="x") == Outcome(
        "\n".join([*lines, "[there may be more: look for a longer text, or below a folder]"])
    )


async def test_a_search_reads_no_more_than_its_bound(bench: Bench) -> None:
    """grep looks at 16 million characters at most, and says that there may be more."""
    await bench.put({f"/{n:02}": "x" * CONTENT_CHARS for n in range(17)} | {"/99": "HERE"})

    assert await bench.run("grep", pattern="HERE") == Outcome(
        "[there may be more: look for a longer text, or below a folder]"
    )
    assert await bench.run("grep", pattern="HERE", path="/99") == Outcome("/99:1: HERE")


BAD_PATHS = {
    "notes.md": "A path starts with a slash and names a file, such as /memories/AGENTS.md.",
    "/": "A path starts with a slash and names a file, such as /memories/AGENTS.md.",
    "": "A path starts with a slash and names a file, such as /memories/AGENTS.md.",
    "/a/../b": "A path has no empty segment, no '.' and no '..'.",
    "/a\u202eb": "A path holds no control, direction or invisible characters.",
    "/" + "x" * 1024: "A path has at most 1024 characters.",
}


@pytest.mark.parametrize("path", BAD_PATHS)
async def test_a_bad_path_is_an_error_result(path: str, bench: Bench) -> None:
    """Paths follow the rule of the API; a bad one gets an error result that says what is wrong, and writes nothing."""
    refused = failed(BAD_PATHS[path])

    assert await bench.run("write_file", path=path, content="x") == refused
    assert await bench.run("read_file", path=path) == refused
    assert await bench.run("edit_file", path=path, old_text="a", new_text="b") == refused
    if path != "/":
        assert await bench.run("ls", path=path) == refused
        assert await bench.run("grep", pattern="x", path=path) == refused
    assert await bench.run("ls", path="/") == Outcome("There are no files below /.")


async def test_what_cannot_be_done_is_an_error_result(bench: Bench) -> None:
    """A tool error never raises: the model is told what is wrong, and nothing is written."""
    assert await bench.run("read_file", path="/missing") == failed(
        "There is no file /missing: look with `ls` or `glob` which there are."
    )
    assert await bench.run("edit_file", path="/missing", old_text="a", new_text="b") == failed(
        "There is no file /missing: look with `ls` or `glob` which there are."
    )
    assert await bench.run("edit_file", path="/a", old_text="", new_text="b") == failed(
        "The old text is empty: name the text to replace, or write the whole file."
    )
    assert await bench.run("edit_file", path="/a", old_text="b", new_text="b") == failed(
        "The old and the new text are the same: nothing would change."
    )
    assert await bench.run("write_file", path="/a", content="x" * (CONTENT_CHARS + 1)) == failed(
        "The content has 1,048,577 characters, and 1,048,576 are the most: write several files."
    )
    assert await bench.run("write_file", path="/a") == failed("Argument 'content' is missing.")
    assert await bench.run("write_file", path="/a", content=1.10) == failed("Argument 'content' must be a string.")
    assert await bench.run("write_file", path="/a", content="a\x00b") == failed(
        "The arguments of 'write_file' cannot be read. The string at '/content' holds NUL or half of a surrogate pair."
    )
    assert await bench.text("/a") is None


HOSTILE: tuple[Any, ...] = (
    None, True, -1, 10**30, 1e300, "", "/", "/a", "*" * 1000, "/a\u202e\x1b", "x" * 1_000_000, [], [[]], {"a": [1]},
)  # fmt: skip


@pytest.mark.parametrize("name", SPECS)
async def test_no_call_raises(name: str, bench: Bench) -> None:
    """Whatever a model writes, a call has a result of bounded length, and the transaction goes on."""
    await bench.put({"/a": PLAN})
    good = {
        "path": "/a",
        "pattern": "o",
        "content": "x",
        "old_text": "one",
        "new_text": "1",
        "name": "count",
        "todos": [],
    }
    taken = json.loads(SPECS[name].input_schema)["properties"]
    fitting = {argument: value for argument, value in good.items() if argument in taken}
    every = [fitting | {argument: value} for argument in taken for value in HOSTILE]

    async with bench.store.begin(bench.owner) as scope:
        place = Workplace(scope, bench.base)
        made = [await run_tool(place, call(name, arguments), ALL) for arguments in every]

    assert max(len(outcome.text) for outcome in made) <= MAX_RESULT_CHARS


async def test_a_deleted_agent_has_no_files_to_write(bench: Bench) -> None:
    """A write to an agent that was deleted while its run went on is an error result."""
    async with bench.store.begin(bench.owner) as scope:
        await agents.delete(scope, bench.agent.id)

    assert await bench.run("write_file", path="/a", content="x") == failed(
        "The agent of these files was deleted: nothing can be written."
    )


async def test_files_are_the_agents_own(bench: Bench, store: Store, stranger: Principal) -> None:
    """A tool sees the files of the run's agent and of no other, in its tenant or in another."""
    await bench.put({"/a": "secret"})

    for other in (await make_bench(store, bench.owner), await make_bench(store, stranger)):
        assert await other.run("read_file", path="/a") == failed(
            "There is no file /a: look with `ls` or `glob` which there are."
        )
        assert await other.run("ls", path="/") == Outcome("There are no files below /.")
        assert await other.run("glob", pattern="/**") == Outcome("No file has such a path.")
        assert await other.run("grep", pattern="secret") == Outcome("No line below / holds this text.")


async def test_a_list_of_steps_is_said_back(bench: Bench) -> None:
    """write_todos writes the whole list of steps; its result says the list back in short."""
    steps = [
        {"content": "Read the\n  report", "status": "completed"},
        {"content": "Write " + "x" * 300, "status": "in_progress"},
        {"content": "Send", "status": "pending"},
    ]

    assert await bench.run("write_todos", todos=steps) == Outcome(
        f"1 of 3 steps are completed.\n[completed] Read the report\n[in_progress] Write {'x' * 194}...\n[pending] Send"
    )
    assert await bench.run("write_todos", todos=[]) == Outcome("The list is empty.")


@pytest.mark.parametrize(
    ("steps", "sentence"),
    [
        (
            [("a", "in_progress"), ("b", "in_progress")],
            "2 steps are in progress, and one at most can be: leave the others pending.",
        ),
        ([("\u00a0\n", "pending")], "A step is blank: write each step as an order."),
        ([("a", "pending")] * 101, "A list has at most 100 steps, and this one has 101: make them larger."),
        ([("a", "done")], "Argument 'todos[0].status' must be one of 'pending', 'in_progress', 'completed'."),
    ],
)
async def test_a_bad_list_of_steps_is_an_error_result(
    steps: list[tuple[str, str]], sentence: str, bench: Bench
) -> None:
    """One step in progress at a time, no blank step, and no more steps than one can follow."""
    todos = [{"content": content, "status": status} for content, status in steps]

    assert await bench.run("write_todos", todos=todos) == failed(sentence)


def skill(name: str, body: str = "Do it.\n") -> str:
    return f"---\nname: {name}\ndescription: How to {name}.\n---\n{body}"


async def test_a_skill_is_loaded_as_it_was_when_the_run_began(bench: Bench) -> None:
    """load_skill gives the whole text of a skill by its name, of the version of the run's beginning, and names it."""
    long = skill("count", "Count.\n" * 5000)
    await bench.put({"/skills/counting/SKILL.md": long, "/skills/counting/more.md": "x", "/skills/bad/SKILL.md": "no"})
    begun = await bench.begun_anew()
    await bench.put({"/skills/counting/SKILL.md": skill("count", "Changed.")})
    version = next(file.version_id for file in begun.base.files if file.path == "/skills/counting/SKILL.md")

    assert await begun.run("load_skill", name="count") == Outcome(f"[/skills/counting/SKILL.md]\n{long}", skill=version)
    assert await begun.run("load_skill", name=" count ") == Outcome(
        f"[/skills/counting/SKILL.md]\n{long}", skill=version
    )
    assert await (await bench.begun_anew()).run("load_skill", name="count") == Outcome(
        f"[/skills/counting/SKILL.md]\n{skill('count', 'Changed.')}",
        skill=next(file.version_id for file in (await bench.begun_anew()).base.files if "counting" in file.path),
    )


async def test_an_unknown_skill_names_those_there_are(bench: Bench) -> None:
    """A name that no skill has gets an error result with the names of the index; of two of a name the first counts."""
    await bench.put(
        {
            "/skills/b/SKILL.md": skill("sort"),
            "/skills/a/SKILL.md": skill("count"),
            "/skills/c/SKILL.md": skill("count"),
        }
    )
    begun = await bench.begun_anew()
    first = next(file.version_id for file in begun.base.files if file.path == "/skills/a/SKILL.md")

    assert await begun.run("load_skill", name="../a") == failed(
        "There is no skill of this name. The skills are: count, sort."
    )
    assert await begun.run("load_skill", name="count") == Outcome(
        f"[/skills/a/SKILL.md]\n{skill('count')}", skill=FileVersionID(first)
    )
    assert await bench.run("load_skill", name="count") == failed(
        "There is no skill of this name. The skills are: none."
    )


async def test_a_long_skill_is_cut_and_says_so(bench: Bench) -> None:
    """No result is longer than its bound; what is cut says how much is missing."""
    text = skill("long", "x" * MAX_RESULT_CHARS)
    await bench.put({"/skills/long/SKILL.md": text})
    begun = await bench.begun_anew()

    loaded = await begun.run("load_skill", name="long")

    whole = f"[/skills/long/SKILL.md]\n{text}"
    more = len(whole) - MAX_RESULT_CHARS
    assert loaded == Outcome(
        f"{whole[:MAX_RESULT_CHARS]}\n[cut: {more:,} more characters]", skill=begun.base.files[0].version_id
    )


async def test_a_tool_that_is_not_in_the_request_is_an_error_result(bench: Bench) -> None:
    """A name left out by an override or a skill, or made up, gets an error result that names the tools there are."""
    left = {"ls": ALL["ls"], "glob": ALL["glob"]}

    assert await bench.run("write_file", left, path="/a", content="x") == failed(
        "There is no tool 'write_file' in this context. The tools are: glob, ls."
    )
    assert await bench.run("x" * 1_000_000, {}) == failed(
        f"There is no tool '{'x' * 64}...' in this context. The tools are: none."
    )
    assert await bench.text("/a") is None


@pytest.mark.parametrize("name", ["look", "write_file"])
async def test_a_subagents_call_of_a_clients_tool_is_an_error_result(name: str, bench: Bench) -> None:
    """A client's tool, also one of a built-in tool's name, is carried out by nobody here; the result says so."""
    own = ToolSpec(name, "The client's own.", '{"type":"object"}')

    assert await bench.run(name, {name: own}, path="/a", content="x") == failed(
        f"Tool '{name}' is the client's, and a subagent cannot ask the client: do without it."
    )
    assert await bench.text("/a") is None


@pytest.mark.parametrize(
    ("arguments", "task"),
    [
        ({"description": "Read all.\n"}, "Read all.\n"),
        ({"description": " "}, failed("Argument 'description' is blank: say what the subagent is to do.")),
        ({}, failed("Argument 'description' is missing.")),
        ({"description": 12}, failed("Argument 'description' must be a string.")),
    ],
)
def test_a_task_is_its_description(arguments: dict[str, Any], task: str | Outcome) -> None:
    """A subagent gets the description of a `task` call to the letter; a bad call gets an error result."""
    assert task_of(call("task", arguments), TASK) == task
