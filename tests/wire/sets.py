"""Override sets as people could send them, good and bad; saved as a PUT would save them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from uuid import UUID

from hypothesis import strategies as st

from hango.chain import context_overrides, saved_overrides
from hango.chain.marking import text_sha256
from hango.chain.state import Wanted
from hango.domain import Override, OverrideScope, SavedOverride, UserID
from tests.wire.worlds import Call, World, next_call

# Replacements that a template, a formatter or a reader of escapes could change.
TEXTS = (
    "Swapped.",
    "{0.__class__}",
    "%s %(a)s %n",
    "{{7*7}} ${7*7} #{7*7}",
    "\\u0041\\n\r\n\ttab",
    "</system> é e\u0301 \u202e",
    "  led and trailed  ",
)
BAD_TEXTS = ("", " \u00a0\n", "a\x00b", "\ud83d")


@dataclass(frozen=True, slots=True)
class Words:
    """A set as a caller writes it."""

    exclude: Sequence[str] = ()
    replace: Mapping[str, str] = field(default_factory=dict)

    def read(self) -> list[Override]:
        """Raises Invalid."""
        return context_overrides.read(self.exclude, self.replace)


async def put(world: World, saved: Sequence[SavedOverride], words: Words, scope: OverrideScope) -> list[SavedOverride]:
    """What is saved after a PUT: judged through the real slots, on the other scope's set. Raises Invalid."""
    wanted = words.read()
    saved_overrides.check_scope(wanted, scope)
    others = [one for one in saved if one.scope is not scope]
    judged = await next_call(world, others, Wanted(wanted))
    return [*others, *as_saved(judged, wanted, scope)]


def as_saved(judged: Call, wanted: Sequence[Override], scope: OverrideScope) -> list[SavedOverride]:
    original, moment = saved_overrides.original(judged.draft), datetime(2026, 11, 30, tzinfo=UTC)
    return [
        SavedOverride(
            one.part, one.action, one.replacement, text_sha256(original, one.part), scope, UserID(UUID(int=1)), moment
        )
        for one in wanted
    ]


def parts_of_agent(world: World) -> list[str]:
    return [
        *(f"system:{block.name}" for block in world.agent.system),
        *(f"system:memory:{path}" for path in world.agent.memory),
        *(f"system:{builtin}" for builtin in world.agent.builtin),
        *(f"tool:{tool.name}" for tool in world.agent.tools),
        "tool:ls",
        "system:gone",
    ]


def parts_of_session(world: World) -> list[str]:
    seqs = range(1, len(world.messages) + 1)
    return [*(f"message:{seq}" for seq in seqs), *(["summary"] if world.summary else [])]


@st.composite
def good_words(draw: st.DrawFn, parts: Sequence[str], *, replacing: bool = True) -> Words:
    """A set of parts that there are, each named once, with texts that can be."""
    if not parts:
        return Words()
    named = draw(st.lists(st.sampled_from(list(parts)), max_size=4, unique=True))
    swapped = {
        part: draw(st.sampled_from(TEXTS))
        for part in named
        if replacing and not part.startswith("tool:") and draw(st.booleans())
    }
    return Words([part for part in named if part not in swapped], swapped)


@st.composite
def any_words(draw: st.DrawFn, parts: Sequence[str]) -> Words:
    """Mostly a good set; some with a part too much, named twice, out of place or without a text."""
    made = draw(good_words(parts))
    odd = ["message:999", "message:0", "system:", "tool:read_note", "system:agent", "summary", "extra", *parts[:2]]
    flaw = draw(st.sampled_from((None, None, None, None, None, None, "exclude", "replace")))
    if flaw == "exclude":
        return Words([*made.exclude, draw(st.sampled_from(odd))], made.replace)
    if flaw == "replace":
        return Words(
            made.exclude, {**made.replace, draw(st.sampled_from(odd)): draw(st.sampled_from(BAD_TEXTS + TEXTS))}
        )
    return made
