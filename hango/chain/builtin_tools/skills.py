"""`load_skill`: the whole text of a skill, as it was when the run began."""

from __future__ import annotations

from collections.abc import Mapping

from hango.chain.builtin_tools.base import Arguments, Outcome, Work, Workplace, failed
from hango.chain.middleware.skills import LOAD_SKILL, MAX_FRONT_CHARS, MAX_SKILLS, is_skill, read_skill
from hango.domain import FileVersion
from hango.files import CONTENT_CHARS
from hango.store import files

# Of a skill's file what holds its front matter: its bound and the fences.
HEAD_CHARS = MAX_FRONT_CHARS + 1024


async def load_skill(place: Workplace, arguments: Arguments) -> Outcome:
    """The file of the skill of this name in the index; of two the one whose path is first."""
    skills = await _listed(place)
    file = skills.get(arguments["name"].strip())
    if file is None:
        known = ", ".join(skills) or "none"
        return failed(f"There is no skill of this name. The skills are: {known}.")
    texts = await files.texts(place.scope, [file.version_id], most_chars=CONTENT_CHARS)
    # The path, because a skill's text speaks of the other files in its folder.
    return Outcome(f"[{file.path}]\n{texts[file.version_id]}", skill=file.version_id)


async def _listed(place: Workplace) -> dict[str, FileVersion]:
    """The skills of the run's index by their names."""
    known = sorted((file for file in place.base.files if is_skill(file.path)), key=lambda file: file.path)
    heads = await files.texts(place.scope, [file.version_id for file in known], most_chars=HEAD_CHARS)
    made = [
        FileVersion(file.version_id, file.path, heads[file.version_id], file.version, file.chars, file.updated_at)
        for file in known
    ]
    readable = [(skill.name, file) for file in made if (skill := read_skill(file)) is not None]
    named: dict[str, FileVersion] = {}
    for name, file in readable[:MAX_SKILLS]:
        named.setdefault(name, file)
    return named


WORK: Mapping[str, Work] = {LOAD_SKILL.name: load_skill}
