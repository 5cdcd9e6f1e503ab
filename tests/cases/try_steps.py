"""The steps of a case with a try: sent through the API, worked on by a real worker, with what happens meanwhile."""

from __future__ import annotations

import asyncio
import json
import socket
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, LiteralString
from urllib.parse import urlsplit
from uuid import uuid4

import httpx2

from hango.store import system
from hango.store.connection import Store
from hango.workers.encoder import QUEUE, doorbell
from tests.cases.making import Made, import_given, make
from tests.cases.reading import Case
from tests.cases.try_outcome import TryOutcome
from tests.cases.try_world import TryWorld, echoing_the_request, in_its_words
from tests.cases.world import Person, Server, a_server
from tests.picking import in_turn
from tests.providers_server import Answer, Seen, drips, never, says

NO_SUCH_TRY = "01890000-0000-7000-8000-000000000000"
# What the provider does, by the words of the events; else it answers.
PROVIDER_DOES: Mapping[str, Answer] = {
    "provider call accepted": never,
    "provider sends one byte a second without end": drips,
    "provider answers 529": says(
        {"type": "error", "error": {"type": "overloaded_error", "message": "Busy."}}, status=529
    ),
    "provider answers 200": in_its_words("In drawer 4."),
}
# With these nobody works before the case says so.
STARTS_LATER = frozenset({"another call uses the rest of the quota", "enqueue under the old actor name"})
QUOTA = 60_000
LEASE_OVER: LiteralString = "update tries set lease_until = clock_timestamp() - interval '1 s' where id = %s"
QUARTER_LATER: LiteralString = """
update tries
set
  created_at = created_at - interval '15 minutes',
  started_at = started_at - interval '15 minutes',
  called_at = called_at - interval '15 minutes',
  finished_at = finished_at - interval '15 minutes',
  queue_expires_at = queue_expires_at - interval '15 minutes'
where id = %s
"""
OTHER_CALL = "Use the rest of the quota."


def run(case: Case, model: str, world: TryWorld) -> list[TryOutcome]:
    """The outcome of each step."""
    settings = case.given.get("settings", {})
    if "try_timeout_seconds" not in settings:
        return [_step(step, case, model, world, world.server) for step in case.when.get("each", [case.when])]
    seconds = {"HANGO_CONTEXT_TRY_TIMEOUT": f"{settings['try_timeout_seconds']}s"}
    with a_server(world.settings, world.environment | seconds, world.folder / uuid4().hex) as server:
        outcome = _step(case.when, case, model, world, server)
    outcome.server = world.server  # it goes on
    return [outcome]


def _step(step: dict[str, Any], case: Case, model: str, world: TryWorld, server: Server) -> TryOutcome:
    owner = world.admin.member(server)
    if "tenant B" in step.get("as", ""):
        owner = world.other_admin.member(server)
    if "another call uses the rest of the quota" in step.get("events", ()):
        owner = asyncio.run(_with_quota(world))
    made = make(case, model, server, owner)
    if isinstance(made, httpx2.Response):
        made = import_given(case, model, server, owner)
    assert isinstance(made, Made), made.text
    if "overrides" in step:
        body = {"overrides": step["overrides"]}
        owner.send(server, "PUT", made.overrides(step["target"]), body).raise_for_status()
        return _tried(step["then"], case, made, world, server)
    return _tried(step, case, made, world, server)


def _tried(step: dict[str, Any], case: Case, made: Made, world: TryWorld, server: Server) -> TryOutcome:
    settings = case.given.get("settings", {})
    play = Play(world, server, made, dict(step["try"]), step.get("key") or settings.get("idempotency_key"))
    before = TryOutcome(server, made.owner, made=made)
    session, messages = before.session, before.stored
    events = step.get("events", ["enqueue", "start", "done"])
    play.follow(events, settings)
    seconds = time.monotonic() - play.began
    outcome = TryOutcome(
        server,
        made.owner,
        reply=play.reply,
        made=made,
        change={key: value for key, value in play.body.items() if value is not None},
        seconds=seconds,
        world=world,
        ended=play.ended,
        try_ids=play.try_ids,
        before=session,
        stored_before=messages,
    )
    outcome.calls, outcome.answers_asked = play.calls, len(play.calls)
    if "read_job" in step.get("then", {}):
        other = world.admin.member(server)
        outcome.reply = other.send(server, "GET", f"/v1/tries/{play.try_ids[0]}")
        outcome.others = [other.send(server, "GET", f"/v1/tries/{NO_SUCH_TRY}").content]
    return outcome


@dataclass
class Play:
    """One try and what happens around it, event by event."""

    world: TryWorld
    server: Server
    made: Made
    body: dict[str, Any]
    key: str | None
    reply: httpx2.Response | None = None
    ended: dict[str, Any] | None = None
    try_ids: list[str] = field(default_factory=list)
    began: float = 0.0
    calls_before: int = 0
    calls: list[Seen] = field(default_factory=list)

    def follow(self, events: Sequence[str], settings: Mapping[str, Any]) -> None:
        """Afterwards the try has ended, or was refused."""
        script = [PROVIDER_DOES[event] for event in events if event in PROVIDER_DOES]
        if "provider_error" in settings:
            script = [echoing_the_request(400)]
        self.world.answers(in_turn(*script) if script else in_its_words(f"In drawer {uuid4().hex}."))
        if STARTS_LATER & set(events):
            self.world.worker.stop()
        self.calls_before = len(self.world.calls())
        self.began = time.monotonic()
        for event in events:
            EVENTS[event](self)
        if self.try_ids and self.ended is None:
            self.look()
        self.calls = [call for call in self.world.calls()[self.calls_before :] if OTHER_CALL.encode() not in call.body]

    def enqueue(self) -> None:
        self.reply = self.post()
        if self.reply.is_success:
            self.try_ids.append(self.reply.json()["id"])

    def post(self) -> httpx2.Response:
        more = {"Idempotency-Key": self.key} if self.key else None
        return self.made.owner.send(self.server, "POST", self.path, self.body, more=more)

    @property
    def path(self) -> str:
        return f"/v1/sessions/{self.made.session_id}/context/try"

    def look(self) -> None:
        """Wait for the end, then ask once more."""
        self.ended = self.world.until(self.made.owner, self.try_ids[0], self.server)
        self.ask()

    def ask(self) -> None:
        self.reply = self.made.owner.send(self.server, "GET", f"/v1/tries/{self.try_ids[0]}")

    def wait_for_call(self) -> None:
        self.world.until_called(self.calls_before + 1)

    def kill(self) -> None:
        """The worker dies; its lease is over, and another worker is there."""
        self.world.worker.kill()
        self.world.change(LEASE_OVER, self.try_ids[0])
        self.world.worker.start()

    def deliver_again(self) -> None:
        """The same doorbell, many times."""
        for number in range(5):
            put_message(self.world, doorbell().encode(), f"again {number}")

    def lose_the_answer(self) -> None:
        """The same POST over a connection that is closed before its answer is read."""
        place = urlsplit(self.server.url)
        content = json.dumps(self.body).encode()
        head = (
            f"POST {self.path} HTTP/1.1\r\nHost: {place.netloc}\r\nAuthorization: Bearer {self.made.owner.key}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(content)}\r\nIdempotency-Key: {self.key}\r\n\r\n"
        )
        with socket.create_connection((place.hostname or "", place.port or 0)) as connection:
            connection.sendall(head.encode() + content)
            query = "select id::text from tries where session_id = %s"
            rows = self.world.until_rows(query, self.made.session_id)
        self.try_ids.append(rows[0]["id"])

    def use_the_quota(self) -> None:
        """Other tries of the tenant, until it has no more."""
        while (reply := self.made.owner.send(self.server, "POST", self.path, {"message": OTHER_CALL})).is_success:
            assert reply.json()["id"] not in self.try_ids
        assert reply.status_code == 402, reply.text

    def enqueue_as_of_old(self) -> None:
        """The doorbell of the try has the name of another version's job, which nobody here knows."""
        self.enqueue()
        self.world.redis.delete(f"hango:{QUEUE}", f"hango:{QUEUE}.msgs")
        put_message(self.world, doorbell().copy(actor_name="run_context_try").encode(), "old")

    def wait_a_quarter(self) -> None:
        self.world.change(QUARTER_LATER, self.try_ids[0])

    def start_worker(self) -> None:
        if not self.world.worker.alive():
            self.world.worker.start()


EVENTS: Mapping[str, Callable[[Play], None]] = {
    "enqueue": Play.enqueue,
    "start": Play.start_worker,
    "done": lambda play: play.look() if play.try_ids else None,
    "provider call accepted": Play.wait_for_call,
    "provider sends one byte a second without end": Play.wait_for_call,
    "provider answers 529": Play.wait_for_call,
    "provider answers 200": Play.look,
    "SIGKILL worker": Play.kill,
    "broker delivers again": Play.deliver_again,
    "wait 15 minutes": Play.wait_a_quarter,
    "client asks": Play.ask,
    "post with key K": lambda play: None,
    "answer lost": Play.lose_the_answer,
    "post with key K again": Play.enqueue,
    "another call uses the rest of the quota": Play.use_the_quota,
    "enqueue under the old actor name": Play.enqueue_as_of_old,
    "worker of the new version starts": Play.start_worker,
}


def put_message(world: TryWorld, body: bytes, name: str) -> None:
    """As anybody who can write to Redis may leave one."""
    world.redis.hset(f"hango:{QUEUE}.msgs", name, body)
    world.redis.rpush(f"hango:{QUEUE}", name)


async def _with_quota(world: TryWorld) -> Person:
    """The admin of a tenant whose quota holds a few tries."""
    store = await Store.open(world.database.app_dsn, max_size=1)
    async with store.system() as scope:
        made = await system.create_tenant(scope, f"tenant {uuid4().hex[:8]}", quota_tokens=QUOTA)
    await store.close()
    return Person(made.api_key)
