"""The skills slot: an index of skill files by their front matter."""

from __future__ import annotations

import pytest

from hango.chain.middleware.skills import HEAD, Skill, SkillsMiddleware, read_skill
from hango.domain import FileVersion
from hango.errors import Reason
from tests.states import NO_DATABASE, file, state_of

PATH = "/skills/pdf/SKILL.md"


def skill(front: str, *, mark: str = "---") -> FileVersion:
    return file(PATH, f"{mark}\n{front}\n{mark}\nThe text that is loaded on demand.\n")


@pytest.mark.parametrize(
    ("front", "read"),
    [
        ("name: pdf\ndescription: Reads PDFs.", Skill("pdf", "Reads PDFs.", PATH)),
        (
            "name: pdf\ndescription: >\n  Reads\n  PDFs.\nlicense: MIT\nallowed-tools: read_file, ls",
            Skill("pdf", "Reads PDFs.", PATH, ("read_file", "ls")),
        ),
        ("name: pdf\ndescription: x\nallowed-tools: [a, b]", Skill("pdf", "x", PATH, ("a", "b"))),
        ("name: pdf\ndescription: x\nallowed-tools: []", Skill("pdf", "x", PATH, ())),
        ("name: pdf\ndescription: x\nallowed-tools: 5", Skill("pdf", "x", PATH)),
        ("name: ' pdf '\ndescription: \"a: b # c\"", Skill("pdf", "a: b # c", PATH)),
        ("name: 料理\ndescription: 中文\nmetadata:\n  version: 1.0", Skill("料理", "中文", PATH)),
        ("description: no name", None),
        ("name: pdf", None),
        ("name: 5\ndescription: x", None),
        ("name: ' '\ndescription: x", None),
        ("name: pdf\ndescription: [", None),
        ("- a\n- b", None),
        ("", None),
        ("name: &a pdf\ndescription: *a", None),
        ("name: !!python/object/apply:os.system ['true']\ndescription: x", None),
        ("a: " + "[" * 5000 + "]" * 5000, None),
        (f"name: pdf\ndescription: {'x' * 20_000}", None),
        ("name: pdf\ndescription: x\ndate: 2026-99-99", None),  # a day that no calendar has
    ],
)
def test_front_matter(front: str, read: Skill | None) -> None:
    """YAML front matter `name`, `description`, `allowed-tools`; what cannot be read is no skill and no failure."""
    assert read_skill(skill(front)) == read


@pytest.mark.parametrize(
    "text",
    [
        "no front matter",
        "---\nname: pdf\ndescription: x\n",
        "text first\n---\nname: pdf\ndescription: x\n---\n",
        "---name: pdf\ndescription: x\n---\n",
    ],
)
def test_a_file_without_front_matter_is_no_skill(text: str) -> None:
    """The front matter stands between two lines of dashes at the head of the file."""
    assert read_skill(file(PATH, text)) is None


@pytest.mark.parametrize(
    "text", ["\ufeff---\nname: pdf\ndescription: x\n---\n", "---\r\nname: pdf\r\ndescription: x\r\n---"]
)
def test_how_other_editors_write_it(text: str) -> None:
    """A byte order mark and the line ends of Windows are fine."""
    assert read_skill(file(PATH, text)) == Skill("pdf", "x", PATH)


async def test_the_index_is_one_part() -> None:
    """The index of the skills is the part system:skills, by path; a file that is no skill stands in `problems`."""
    files = [
        file("/skills/b/SKILL.md", "---\nname: b\ndescription: Second.\n---\n"),
        file("/skills/a/SKILL.md", "---\nname: a\ndescription: First.\n---\n"),
        file("/skills/broken/SKILL.md", "no front matter"),
        file("/skills/a/other/SKILL.md", "---\nname: deep\ndescription: Not a skill.\n---\n"),
        file("/skills/a/notes.md", "not a skill"),
    ]
    state, slot = state_of(files=files), SkillsMiddleware()

    await slot.before_run(state, NO_DATABASE)

    assert [(item.part, item.value) for item in slot.system_blocks(state)] == [
        ("system:skills", f"{HEAD}\n\n- a: First.\n- b: Second.")
    ]
    assert [(detail.reason, detail.part) for detail in state.problems] == [(Reason.BAD_SKILL, "system:skills")]
    assert "/skills/broken/SKILL.md" in state.problems[0].message


async def test_without_skills_there_is_no_block() -> None:
    """No skill, no index."""
    state, slot = state_of(), SkillsMiddleware()

    await slot.before_run(state, NO_DATABASE)

    assert list(slot.system_blocks(state)) == []
