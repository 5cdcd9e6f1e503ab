"""The saved sets of a session and of its agent: read, changed, and put back unless somebody else did meanwhile."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from urllib.parse import quote

from hango.cli import replies
from hango.cli.client import Changed, Client, Missing
from hango.cli.own_command import own_command
from hango.cli.replies import Overrides, SavedOverride, Snapshot

ATTEMPTS = 2  # at a set that somebody else changes at the same time


class Level(StrEnum):
    """Where a part's override is saved."""

    AGENT = "agent"
    SESSION = "session"


@dataclass(frozen=True, slots=True)
class Change:
    """What a person wants changed, part by part; `clear` names the sets that are emptied first."""

    exclude: tuple[str, ...] = ()
    replace: Mapping[str, str] = field(default_factory=dict)
    include: tuple[str, ...] = ()
    clear: tuple[Level, ...] = ()

    def of(self, saved: Sequence[SavedOverride], level: Level) -> list[SavedOverride]:
        """The set of a level with this change, in its order; new ones come last. Pure."""
        made = {} if level in self.clear else {one.part: one for one in saved}
        for part in self.include:
            made.pop(part, None)
        wanted = [SavedOverride(part, "exclude") for part in dict.fromkeys(self.exclude)]
        wanted += [SavedOverride(part, "replace", text) for part, text in self.replace.items()]
        made |= {one.part: one for one in wanted if level_of(one.part) is level}
        return list(made.values())

    @property
    def parts(self) -> tuple[str, ...]:
        return (*dict.fromkeys(self.exclude), *self.replace, *dict.fromkeys(self.include))

    @property
    def levels(self) -> list[Level]:
        named = {level_of(part) for part in self.parts}
        return [level for level in Level if level in named or level in self.clear]


@dataclass(frozen=True, slots=True)
class Place:
    """A session and its agent."""

    session_id: str
    agent_id: str

    def path(self, level: Level) -> str:
        if level is Level.AGENT:
            return f"/v1/agents/{quote(self.agent_id, safe='')}/context-overrides"
        return f"/v1/sessions/{quote(self.session_id, safe='')}/context-overrides"

    def missing(self, level: Level, change: Change) -> str:
        """The sentence for a set that is not there for the caller."""
        if level is Level.SESSION:
            return no_session(self.session_id)
        parts = [part for part in change.parts if level_of(part) is level]
        what = parts[0] if parts else "its set of overrides"
        return (
            f"{what} belongs to agent {self.agent_id}, which you may not change: only who made it and admins may."
            " Ask one of them."
        )


@dataclass(frozen=True, slots=True)
class Saved:
    """One set after a change: the API's reply, and the set before it."""

    level: Level
    body: bytes
    before: Overrides
    changed: bool

    @property
    def now(self) -> Overrides:
        return replies.read(self.body, Overrides)


def level_of(part: str) -> Level:
    """A malformed id goes to the session, whose answer says what is wrong with it."""
    return Level.AGENT if part.startswith(("system:", "tool:")) else Level.SESSION


def no_session(session_id: str) -> str:
    return f"no session {session_id} that you may read. `{own_command()} sessions` lists them."


def find(client: Client, session_id: str) -> Place:
    body = client.get(f"/v1/sessions/{quote(session_id, safe='')}", missing=no_session(session_id))
    return Place(session_id, replies.read(body, replies.Session).agent_id)


def look(client: Client, place: Place) -> Snapshot:
    """The context as it is, by estimates: numbers before and after a change are then of one kind."""
    path = f"/v1/sessions/{quote(place.session_id, safe='')}/context"
    body = client.get(path, {"count": "estimate"}, missing=no_session(place.session_id))
    return replies.read(body, Snapshot)


def preview(client: Client, place: Place, saved: Sequence[Saved], change: Change) -> Snapshot:
    """The context as the change would make it."""
    lifted = [one.part for at in saved if at.level in change.clear for one in at.before.overrides]
    wanted = {
        "exclude": list(dict.fromkeys(change.exclude)),
        "replace": dict(change.replace),
        "include": [*lifted, *dict.fromkeys(change.include)],
    }
    path = f"/v1/sessions/{quote(place.session_id, safe='')}/context/preview"
    return replies.read(client.post(path, wanted, missing=no_session(place.session_id)), Snapshot)


def save(client: Client, place: Place, change: Change, *, check: bool) -> list[Saved]:
    """The sets that the change is about, changed; `check` saves nothing. Raises Failure and then nothing was changed.

    Where both sets change, both are checked before one is saved.
    """
    if len(change.levels) > 1 and not check:
        for level in change.levels:
            _save(client, place, level, change, check=True)
    return [_save(client, place, level, change, check=check) for level in change.levels]


def read(client: Client, place: Place) -> Iterator[tuple[Level, bytes | None]]:
    """Both sets as the API shows them; None for the set of an agent that may not be read."""
    for level in Level:
        try:
            yield level, client.get(place.path(level), missing=place.missing(level, Change()))
        except Missing:
            if level is Level.SESSION:
                raise
            yield level, None


def _save(client: Client, place: Place, level: Level, change: Change, *, check: bool) -> Saved:
    path, missing = place.path(level), place.missing(level, change)
    for attempt in range(1, ATTEMPTS + 1):
        there = client.get_tagged(path, missing=missing)
        before = replies.read(there.body, Overrides)
        wanted = change.of(before.overrides, level)
        if wanted == list(before.overrides):
            return Saved(level, there.body, before, changed=False)
        body = {"overrides": [one.as_sent() for one in wanted]}
        query = {"check": "true"} if check else None
        try:
            reply = client.put(path, body, query, if_match=there.tag, missing=missing)
        except Changed:
            if attempt == ATTEMPTS:
                raise
        else:
            return Saved(level, reply, before, changed=True)
    raise AssertionError("the last attempt returns or raises")
