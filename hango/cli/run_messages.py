"""The messages that a run wrote: the session's, read from the end."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import quote

from hango.cli import replies
from hango.cli.client import Client
from hango.cli.override_sets import no_session
from hango.cli.run_replies import Message, MessagePage, Run, Session

PAGE = 100  # of messages; few runs write more


@dataclass(frozen=True, slots=True)
class Written:
    """What a run wrote, in order, the user's message that started it too. `end` is the last message of the session."""

    messages: tuple[Message, ...]
    end: int


def session(client: Client, id_: str) -> Session:
    return replies.read(client.get(_path(id_), missing=no_session(id_)), Session)


def of_run(client: Client, run: Run) -> Written:
    """The messages of a run stand together: nobody else writes while it goes on."""
    last = end = session(client, run.session_id).messages
    found: tuple[Message, ...] = ()
    while last > 0:
        after = max(0, last - PAGE)
        query = {"after": after, "limit": last - after}
        page = replies.read(client.get(f"{_path(run.session_id)}/messages", query), MessagePage).data
        found = (*(one for one in page if one.run_id == run.id), *found)
        if found and page and page[0].run_id != run.id:
            break
        last = after
    return Written(found, end)


def _path(session_id: str) -> str:
    return f"/v1/sessions/{quote(session_id, safe='')}"
