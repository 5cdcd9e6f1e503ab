"""Files of an agent through HTTP: written whole, read, listed by prefix, deleted."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import pytest

from tests.people import Person

TEXT = "# Notes\r\n\tKeep \U0001f469‍\U0001f680 and \u202e as they are.\n"


@pytest.fixture
async def files(caller: Person) -> str:
    """The address of a new agent's files."""
    agent = await caller.agent()
    return f"/v1/agents/{agent['id']}/files"


async def test_a_file_is_read_as_it_was_written(caller: Person, files: str) -> None:
    """PUT answers {path, content, version, chars, updated_at}: 201 for a new file, 200 for a new version."""
    first = await caller.put(f"{files}/memories/AGENTS.md", json={"content": TEXT})
    second = await caller.put(f"{files}/memories/AGENTS.md", json={"content": "short"})
    shown = await caller.get(f"{files}/memories/AGENTS.md")

    assert (first.status_code, first.headers["location"]) == (201, f"{files}/memories/AGENTS.md")
    assert without_time(first.json()) == {
        "path": "/memories/AGENTS.md",
        "content": TEXT,
        "version": 1,
        "chars": len(TEXT),
    }
    assert second.status_code == 200
    assert without_time(second.json()) == {
        "path": "/memories/AGENTS.md",
        "content": "short",
        "version": 2,
        "chars": 5,
    }
    assert (shown.status_code, shown.json()) == (200, second.json())


def without_time(file: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in file.items() if name != "updated_at"}


@pytest.mark.parametrize("path", ["/büro/tiếng Việt.md", "/笔记/一 二.md", "/a%b?c#d&e=f", "/x;y,z", "/\U0001f680"])
async def test_a_path_takes_any_letters(path: str, caller: Person, files: str) -> None:
    """A path is percent-encoded text in the address, and Location leads to it."""
    written = await caller.put(files + quote(path), json={"content": "x"})
    shown = await caller.get(written.headers["location"])

    assert (written.status_code, shown.status_code) == (201, 200)
    assert shown.json()["path"] == path


@pytest.mark.parametrize(
    "path",
    ["/", "//", "/a//b", "/a/", "/%2e%2e/etc/passwd", "/a/..%2f..%2fetc/passwd", "/a%00b", "/a%09b", "/%E2%80%AE",
     "/..%5c..%5cx%2f..", "/%ff", "/%ED%A0%80", "/" + "x" * 1024],
)  # fmt: skip
async def test_a_bad_path_names_nothing(path: str, caller: Person, files: str) -> None:
    """A path that climbs, hides or acts: 422 bad_path to write, 404 to read and delete."""
    written = await caller.put(files + path, json={"content": "x"})
    missing = await caller.get(f"{files}/nothing")

    assert (written.status_code, written.json()["code"]) == (422, "bad_path")
    assert (await caller.get(files + path)).content == missing.content
    assert (await caller.delete(files + path)).content == missing.content


async def test_a_list_is_of_a_prefix_without_texts(caller: Person, files: str) -> None:
    """`?prefix=` lists the files below it by path, a page at a time; a prefix is text, not a pattern."""
    for path in ("/memories/b.md", "/memories/a.md", "/skills/x/SKILL.md", "/mem%odd"):
        await caller.put(files + quote(path), json={"content": path})

    whole = (await caller.get(files)).json()
    below = (await caller.get(files, params={"prefix": "/memories/", "limit": 1})).json()
    rest = (await caller.get(files, params={"prefix": "/memories/", "cursor": below["next_cursor"]})).json()

    assert [file["path"] for file in whole["data"]] == [
        "/mem%odd",
        "/memories/a.md",
        "/memories/b.md",
        "/skills/x/SKILL.md",
    ]
    assert set(whole["data"][0]) == {"path", "version", "chars", "updated_at"}
    assert [file["path"] for file in below["data"] + rest["data"]] == ["/memories/a.md", "/memories/b.md"]
    assert rest["next_cursor"] is None
    assert [file["path"] for file in (await caller.get(files, params={"prefix": "/mem%"})).json()["data"]] == [
        "/mem%odd"
    ]


async def test_a_deleted_file_is_gone_and_comes_back_as_a_new_version(caller: Person, files: str) -> None:
    """DELETE hides a file; a later write goes on counting versions."""
    path = f"{files}/notes.md"
    await caller.put(path, json={"content": "one"})

    assert (await caller.delete(path)).status_code == 204
    assert (await caller.delete(path)).status_code == 404
    assert (await caller.get(path)).status_code == 404
    assert (await caller.get(files)).json() == {"data": [], "next_cursor": None}

    again = await caller.put(path, json={"content": "two"})
    assert (again.status_code, again.json()["version"]) == (201, 2)


async def test_a_text_over_a_mebi_is_422(caller: Person, files: str) -> None:
    """A file holds at most 1,048,576 characters; an empty one is a file."""
    most = 1024 * 1024

    assert (await caller.put(f"{files}/a", json={"content": "x" * most})).status_code == 201
    assert (await caller.put(f"{files}/b", json={"content": ""})).status_code == 201
    reply = await caller.put(f"{files}/c", json={"content": "x" * (most + 1)})
    assert (reply.status_code, reply.json()["errors"][0]["pointer"]) == (422, "/content")


async def test_writes_of_files_are_audited_without_path_or_text(caller: Person, files: str) -> None:
    """The audit row names the agent and the version."""
    agent_id = files.split("/")[3]
    await caller.put(f"{files}/secret-name.md", json={"content": "secret words"})
    await caller.delete(f"{files}/secret-name.md")

    assert [row for row in await caller.audit() if row[0].startswith("file.")] == [
        ("file.write", agent_id, {"version": 1}),
        ("file.delete", agent_id, {}),
    ]
