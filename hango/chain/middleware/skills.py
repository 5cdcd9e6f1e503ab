"""Skills: an index of the agent's skill files in the prompt, and the tool that loads one.

A skill is a file /skills/<name>/SKILL.md in the Agent Skills format: YAML front matter with `name`, `description` and,
if it likes, `allowed-tools`; then the text that is loaded on demand.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import yaml

from hango.chain.draft import SourcedBlock
from hango.chain.middleware.base import Middleware, block
from hango.chain.parts import system_part
from hango.chain.state import State
from hango.domain import FileVersion
from hango.errors import Detail, Reason
from hango.messages import ToolSpec
from hango.store.connection import Scope

MAX_SKILLS = 256
# The head is short; the bound keeps a hostile file from costing time in the YAML reader.
MAX_FRONT_CHARS = 16_384

HEAD = """\
# Skills

Each skill is a written way to do one kind of work. When a skill fits, load it with `load_skill` before you begin."""

LOAD_SKILL = ToolSpec(
    name="load_skill",
    description="Load the whole text of a skill by its name.",
    input_schema='{"type":"object","properties":{"name":{"type":"string"}},"required":["name"]}',
)

_PATH = re.compile(r"/skills/([^/]+)/SKILL\.md")
_OPENED = re.compile(r"\ufeff?---[ \t]*\r?\n")
_CLOSED = re.compile(r"\n---[ \t]*(?:\r?\n|$)")


@dataclass(frozen=True, slots=True)
class Skill:
    """The front matter of one skill file. `allowed_tools` None: the skill says nothing of tools."""

    name: str
    description: str
    path: str
    allowed_tools: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class Skills:
    """The skills of this run, by path."""

    skills: tuple[Skill, ...]


class SkillsMiddleware(Middleware):
    name = "skills"

    async def before_run(self, state: State, scope: Scope) -> None:
        found = []
        for path in sorted(state.files):
            if not is_skill(path):
                continue
            skill = read_skill(state.files[path])
            if skill is None:
                message = f"The front matter of {path} cannot be read: give it `name` and `description`."
                state.problems.append(Detail(Reason.BAD_SKILL, message, part=system_part(self.name)))
            else:
                found.append(skill)
        if len(found) > MAX_SKILLS:
            message = f"At most {MAX_SKILLS} skills are listed; those after {found[MAX_SKILLS - 1].path} are left out."
            state.problems.append(Detail(Reason.TOO_MANY_FILES, message, part=system_part(self.name)))
        state.put(Skills(tuple(found[:MAX_SKILLS])))

    def system_blocks(self, state: State) -> Sequence[SourcedBlock]:
        skills = state.get(Skills)
        if not skills or not skills.skills:
            return ()
        lines = (f"- {skill.name}: {skill.description}" for skill in skills.skills)
        return (block(system_part(self.name), HEAD + "\n\n" + "\n".join(lines)),)

    def tools(self, state: State) -> Sequence[ToolSpec]:
        return (LOAD_SKILL,)


def is_skill(path: str) -> bool:
    """Whether it is the path of a skill's file."""
    return _PATH.fullmatch(path) is not None


def read_skill(file: FileVersion) -> Skill | None:
    """The front matter of a skill file; None when it cannot be read."""
    return _read(file.path, _front_matter(file.content))


def _front_matter(text: str) -> str:
    opened = _OPENED.match(text)
    closed = _CLOSED.search(text, opened.end()) if opened else None
    if opened is None or closed is None or closed.start() - opened.end() > MAX_FRONT_CHARS:
        return ""
    return text[opened.end() : closed.start()].removesuffix("\r")


@lru_cache(maxsize=1024)
def _read(path: str, front: str) -> Skill | None:
    if "&" in front and "*" in front:  # anchors and aliases can blow a small text up
        return None
    try:
        head = yaml.safe_load(front)
    except (yaml.YAMLError, ValueError, RecursionError):
        return None
    if not isinstance(head, dict):
        return None
    name, description = head.get("name"), head.get("description")
    if not isinstance(name, str) or not isinstance(description, str) or not name.strip():
        return None
    return Skill(name.strip(), " ".join(description.split()), path, _tools(head.get("allowed-tools")))


def _tools(value: object) -> tuple[str, ...] | None:
    if isinstance(value, str):
        return tuple(value.replace(",", " ").split())
    if isinstance(value, list):
        return tuple(item for item in value if isinstance(item, str))
    return None
