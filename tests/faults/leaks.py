"""K1: every route and every error that can be forced, with words of content and keys alone. Where else are they?

Searched are the logs of all processes at the level debug, what went to the collector, the tables that hold no content,
Valkey, answers of errors, and what the command line says. The same search finds the words where they belong.
"""

from __future__ import annotations

import asyncio
import json
import re
import signal
import sys
from collections.abc import Sequence
from typing import Final
from uuid import uuid4

import psycopg
from psycopg import sql

from hango.api.routes import ROUTES
from hango.config import Settings
from hango.store import api_keys
from tests.faults import canaries
from tests.faults.callers import ANSWER_SECONDS, AWAY, Caller
from tests.faults.canaries import Search, dump
from tests.faults.invariants import rows, until_over
from tests.faults.provider import Act
from tests.faults.report import Figure, exactly, none_of, told
from tests.faults.run import Run
from tests.faults.stage import Shape, Stage, staged
from tests.otlp import Receiver, receiving

# Where content belongs; no other table may hold any.
CONTENT: Final = {
    "agent_versions",
    "context_overrides",
    "file_versions",
    "message_bodies",
    "messages",  # previews and digests
    "override_sets",
    "summaries",
    "try_payloads",
    "try_requests",
}
BELONGS: Final = [
    "an override in context_overrides",
    "an override in override_sets",
    "a message in try_requests",
]
ACTS: Final = ("answer", "hang", "cut", "garbage", "fail", "refuse", "echo", "bomb", "flood")
DRAIN_SECONDS: Final = 60.0
BAD_BODIES: Final = (
    b'{"message": "%s"',
    b'{"message": "%s\\u0000"}',
    b'{"message": "%s", "message": "%s"}',
    b'{"exclude": ["%s"]}',
    b'{"exclude": "%s"}',
    b'{"%s": 1}',
    b'{"replace": {"message:1": "%s", "message:99999": "%s"}}',
    b'{"replace": {"tool:none": "%s"}}',
    b'"%s"',
    b"\xff%s",
)
# Faults of the database that quote the row in their text. Each is forced, met, and taken back.
DROP: Final = "alter table try_requests drop constraint forced"
FORCED: Final = (
    ("alter table try_requests add constraint forced check (label = 'never') not valid", DROP),
    ("alter table try_requests add constraint forced not null label not valid", DROP),
    ("create unique index forced on try_requests (texts) where label = 'forced'", "drop index forced"),
)


async def leaks(run: Run) -> Sequence[Figure]:
    with receiving() as receiver:
        settings = {
            "HANGO_LOG_LEVEL": "debug",
            "HANGO_OTLP_ENDPOINT": receiver.url,
            "HANGO_CONTEXT_TRY_TIMEOUT": "1s",
        }
        async with staged(Shape(tenants=1, settings=settings), run.folder) as stage:
            (caller,) = stage.callers
            errors: list[bytes] = []
            for drive in (_crash, _tries, _overrides, _bad_bodies, _forced, _routes, _poison):
                await drive(stage, caller, errors)
            await until_over(stage, DRAIN_SECONDS)
            said = await _command_line(stage, caller)
            for one in [*stage.apis, *stage.workers]:  # what it has to tell goes out at the end
                one.wanted = False
                one.send(signal.SIGTERM)
                await one.ended(DRAIN_SECONDS)
            return _found(stage, caller, receiver, errors, said)


def secret_of(key: str) -> str:
    parsed = api_keys.parse_key(key)
    assert parsed is not None
    return parsed.secret


def _found(stage: Stage, caller: Caller, receiver: Receiver, errors: list[bytes], said: bytes) -> list[Figure]:
    keys = {"the provider's key": canaries.PROVIDER_KEY, "the caller's key": secret_of(caller.key)}
    search = Search({"a message": canaries.MESSAGE, "an override": canaries.OVERRIDE, **keys})
    logs = [*(one.log_file for one in stage.programs.values()), stage.postgres.log_file, stage.valkey.log_file]
    places = {
        "in what went to the collector": b"\n".join(receiver.raw),
        "in Valkey": dump(stage.redis()),
        "in the words of the command line": said,
        "in the settings as a text": repr(Settings.from_env(stage.apis[0].environment)).encode(),
        **{f"in an error {body[:60]!r}": body for body in errors},
    }
    return [
        told("errors that were answered", len(errors)),
        told("lines in the logs", sum(one.read_bytes().count(b"\n") for one in logs if one.exists())),
        told("spans", len(receiver.spans)),
        exactly("control: what the same search finds where it belongs", _tables(stage, search, CONTENT), BELONGS),
        none_of("content or keys in logs", search.in_files(logs)),
        none_of("elsewhere", [f"{name} {place}" for place, text in places.items() for name in search.found(text)]),
        none_of("in tables that hold no content", _tables(stage, search, _all_tables(stage) - CONTENT)),
        none_of("keys where content belongs", _tables(stage, Search(keys), CONTENT)),
        exactly("answers with status 500 that say more than that", [one for one in errors if _tells(one)], []),
    ]


def _tells(body: bytes) -> bool:
    return b'"status":500' in body and b'"errors"' in body


def _all_tables(stage: Stage) -> set[str]:
    return {name for (name,) in rows(stage, "select tablename from pg_tables where schemaname = 'public'")}


def _tables(stage: Stage, search: Search, names: set[str]) -> list[str]:
    found = []
    with psycopg.connect(stage.database_url) as connection:
        for name in sorted(names):
            statement = sql.SQL("select string_agg(t::text, chr(10)) from {} t").format(sql.Identifier(name))
            (text,) = connection.execute(statement).fetchone() or ("",)
            found += [f"{word} in {name}" for word in search.found((text or "").encode())]
    return found


async def _tries(stage: Stage, caller: Caller, errors: list[bytes]) -> None:
    """One for each thing that a provider may do."""
    for do in ACTS:
        accepted = await caller.start(Act(do))
        assert accepted is not None
    await until_over(stage, DRAIN_SECONDS)
    errors += [json.dumps((await caller.read(one))["error"]).encode() for one in caller.accepted.values()]


async def _overrides(_: Stage, caller: Caller, errors: list[bytes]) -> None:
    place = f"/v1/sessions/{caller.session_id}/context-overrides"
    replaced = {"part": "message:1", "action": "replace", "replacement": canaries.OVERRIDE}
    await caller.call("PUT", place, {"overrides": [replaced]})
    for wrong in (
        [replaced, replaced],
        [{**replaced, "part": "message:999"}],
        [{**replaced, "part": canaries.OVERRIDE}],
    ):
        await _refused(caller, "PUT", place, json.dumps({"overrides": wrong}).encode(), errors)
    accepted = await caller.start(Act())
    assert accepted is not None


async def _bad_bodies(_: Stage, caller: Caller, errors: list[bytes]) -> None:
    for body in BAD_BODIES:
        filled = body.replace(b"%s", canaries.MESSAGE.encode())
        for path in ("context/try", "context/preview", "messages"):
            await _refused(caller, "POST", f"/v1/sessions/{caller.session_id}/{path}", filled, errors)
        await _refused(caller, "POST", "/v1/agents", filled, errors)
        await _refused(caller, "POST", "/v1/imports", filled, errors)


async def _forced(stage: Stage, caller: Caller, errors: list[bytes]) -> None:
    with psycopg.connect(stage.database_url, autocommit=True) as connection:
        for (force, undo), label in zip(FORCED, (None, None, "forced"), strict=True):
            body = json.dumps({"message": canaries.MESSAGE, "label": label}).encode()
            connection.execute(force.encode())
            for _ in range(2):
                await _refused(caller, "POST", f"/v1/sessions/{caller.session_id}/context/try", body, errors)
            connection.execute(undo.encode())


async def _routes(_: Stage, caller: Caller, errors: list[bytes]) -> None:
    """Every route, with the word where an id, a path, a query and a body may stand."""
    body = json.dumps({"name": canaries.MESSAGE, "message": canaries.MESSAGE}).encode()
    for row in ROUTES:
        theirs = [] if row.method == "DELETE" else [caller.session_id]
        for filling in (canaries.MESSAGE, str(uuid4()), *theirs):
            path = re.sub(r"\{[^}]+\}", filling, row.path)
            await _refused(
                caller, row.method, f"{path}?cursor={canaries.MESSAGE}&full={canaries.MESSAGE}", body, errors
            )


async def _poison(stage: Stage, _: Caller, __: list[bytes]) -> None:
    """Somebody else writes to the queue."""
    redis = stage.redis()
    for number, body in enumerate(
        (canaries.MESSAGE, json.dumps({"args": [canaries.MESSAGE]}), "\0" + canaries.MESSAGE)
    ):
        redis.hset("hango:tries.msgs", f"poison{number}", body)
        redis.rpush("hango:tries", f"poison{number}")


async def _crash(stage: Stage, caller: Caller, _: list[bytes]) -> None:
    """A worker ends in the middle of a call, and the API in the middle of a wait."""
    accepted = await caller.start(Act(seconds=5))
    assert accepted is not None
    waiting = asyncio.create_task(caller.read(accepted, wait=20))
    await asyncio.sleep(0.5)
    for one in [*stage.workers, *stage.apis]:
        one.kill()
        one.start()
    await asyncio.gather(waiting, return_exceptions=True)
    await stage.until_ready(stage.urls[0])


async def _refused(caller: Caller, method: str, path: str, body: bytes, errors: list[bytes]) -> None:
    """Keep what an error says; what is no error may hold content."""
    try:
        status, said = await caller.raw(method, path, body)
    except AWAY:
        return
    if status >= 400:
        errors.append(said)


async def _command_line(stage: Stage, caller: Caller) -> bytes:
    """What it says to people when it is asked for what is not there."""
    environment = {**stage.apis[0].environment, "HANGO_API_URL": stage.urls[0], "HANGO_API_KEY": caller.key}
    said = b""
    for words in (
        ("context", "try", "--session", str(uuid4()), "--message", canaries.MESSAGE),
        ("context", "show", "--session", caller.session_id, "--part", "message:99"),
        ("config",),
    ):
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-P", "-m", "hango", *words),
            env=environment,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        out, _ = await asyncio.wait_for(process.communicate(), 10 * ANSWER_SECONDS)
        said += out
    return said
