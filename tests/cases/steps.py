"""The steps of a case: what its `when` says, done through the API or the command line."""

from __future__ import annotations

import json
import re
import time
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import httpx2

from tests.cases.making import Made, import_given, make
from tests.cases.outcome import Outcome
from tests.cases.reading import Case
from tests.cases.world import Person, Server, World, hango

FORMATS = {"anthropic-messages": "anthropic", "openai-chat": "openai_chat", "openai-responses": "openai_responses"}
NO_SUCH_SESSION = "01890000-0000-7000-8000-000000000000"


@dataclass(frozen=True, slots=True)
class Asker:
    """Who asks, and with which query in the address."""

    person: Person
    query: str = ""


def run(case: Case, model: str, world: World) -> list[list[Outcome]]:
    """The outcomes of each step: several where a step can be done in more than one way."""
    server = world.counting if "count_endpoint" in case.given.get("settings", {}) else world.server
    steps = case.when.get("each", [case.when])
    if "import" in steps[0]:
        return [[_import(step["import"], wanted, world, server) for wanted in (None, model)] for step in steps]
    made = make(case, model, server, world.admin.member(server))
    if isinstance(made, httpx2.Response):
        refused = Outcome(server, world.admin, reply=made)
        imported = import_given(case, model, server, world.admin.member(server))
        assert isinstance(imported, Made), imported.text
        return [[refused, *_step(step, imported, world, server, watch=False)] for step in steps]
    return [_seen(_step(step, made, world, server, watch=case.asks_for("rows_written"))) for step in steps]


def _seen(outcomes: list[Outcome]) -> list[Outcome]:
    """The outcomes with what can be seen now, before a next step changes it."""
    for outcome in outcomes:
        if outcome.accepted and outcome.exit_code is None:
            outcome.see()
    return outcomes


def _step(step: dict[str, Any], made: Made, world: World, server: Server, *, watch: bool) -> list[Outcome]:
    """One step on what is given; `watch` looks whether a row changed."""
    if tool := step.get("inspect", {}).get("after_adding_tool"):
        _add_tool(tool, made, server)
    asker = _who(step.get("inspect", step), made, world, server)
    before = world.rows() if watch else {}
    asked, start = len(world.answers_asked()), time.monotonic()
    if "overrides" in step:
        outcomes = _seen([_preview(step["overrides"], made, world, server, asker)])
        outcomes.append(_put(step, made, world, server, asker))
    else:
        outcomes = _inspect(step["inspect"], made, world, server, asker)
    seconds = time.monotonic() - start
    after = world.rows() if watch else {}
    for outcome in outcomes:
        outcome.seconds = seconds
        outcome.answers_asked = len(world.answers_asked()) - asked
        outcome.rows_changed = [name for name in after if after[name] != before.get(name)]
    return outcomes


def _inspect(how: dict[str, Any], made: Made, world: World, server: Server, asker: Asker) -> list[Outcome]:
    if how.get("as_cli"):
        words, columns = ("context", "show", "--session", made.session_id), how.get("columns")
        code, out, _ = hango(server, made.owner, *words, columns=columns)
        return [Outcome(server, made.owner, made=made, exit_code=code, output=out, columns=how.get("columns", 80))]
    path = f"/v1/sessions/{{}}/context{asker.query}"
    outcomes = []
    for n in range(int(how.get("times", 1))):
        if n:
            _until_clock_shows(time.time() + how.get("pause_seconds", 0))
        here = world.second if n and how.get("second_in_a_new_process") else server
        reply = asker.person.send(here, "GET", path.format(made.session_id))
        outcomes.append(Outcome(here, asker.person, reply=reply, made=made))
    if "as" in how:
        outcomes[0].others = [asker.person.send(server, "GET", path.format(NO_SUCH_SESSION)).content]
    return outcomes


def _until_clock_shows(moment: float) -> None:
    while time.time() < moment:
        time.sleep(0.05)


def _who(how: dict[str, Any], made: Made, world: World, server: Server) -> Asker:
    """Who asks, and with which query, from the words of the input."""
    words = how.get("as", how.get("credentials", "the owner"))
    if "in the address" in words:
        return Asker(Person(None), "?" + re.findall(r"\?(\S+)", words)[0])
    if "never was" in words:
        return Asker(Person(f"hango_{'0' * 8}_{'A' * 43}"))
    if "wrong secret" in words:
        return Asker(Person(f"{(made.owner.key or '')[:14]}_{'A' * 43}"))
    if "revoked" in words:
        key = made.owner.make(server, "/v1/api-keys", {"name": f"key {uuid4().hex[:8]}"})
        made.owner.send(server, "DELETE", f"/v1/api-keys/{key['id']}").raise_for_status()
        return Asker(Person(key["key"]))
    if "no key" in words:
        return Asker(Person(None))
    if "other tenant" in words or "another tenant" in words:
        return Asker(world.other_admin)
    if "other member" in words or "another member" in words:
        return Asker(world.admin.member(server))
    assert words == "the owner", f"who is {words!r}?"
    return Asker(made.owner)


def _put(step: dict[str, Any], made: Made, world: World, server: Server, asker: Asker) -> Outcome:
    """The same set, saved."""
    body = {"overrides": step["overrides"]}
    reply = asker.person.send(server, "PUT", made.overrides(step["target"]), body)
    return Outcome(server, made.owner, reply=reply, made=made)


def _add_tool(name: str, made: Made, server: Server) -> None:
    """The agent gets one tool more, before the others."""
    path = f"/v1/agents/{made.agent_id}"
    tools = made.owner.send(server, "GET", path).raise_for_status().json()["tools"]
    added = {"name": name, "description": "Added later.", "input_schema": {"type": "object"}}
    made.owner.send(server, "PATCH", path, {"tools": [added, *tools]}).raise_for_status()


def _preview(overrides: list[dict[str, Any]], made: Made, world: World, server: Server, asker: Asker) -> Outcome:
    """A set of overrides, unsaved."""
    change = {
        "exclude": [one["part"] for one in overrides if one["action"] == "exclude"],
        "replace": {one["part"]: one["replacement"] for one in overrides if one["action"] == "replace"},
    }
    reply = asker.person.send(server, "POST", f"/v1/sessions/{made.session_id}/context/preview", change)
    return Outcome(server, made.owner, reply=reply, made=made, change=change)


def _import(what: dict[str, Any], model: str | None, world: World, server: Server) -> Outcome:
    """An import with the file's own model, or with another."""
    raw = what["raw"].encode() if "raw" in what else json.dumps(what["data"]).encode("ascii")
    format = FORMATS.get(what["format"], what["format"])
    person = world.admin.member(server)
    query = f"format={format}" + ("" if model is None else f"&model={model}")
    reply = person.send(server, "POST", f"/v1/imports?{query}", raw=raw)
    made = Made(reply.json()["agent_id"], reply.json()["session_id"], person) if reply.is_success else None
    return Outcome(server, person, reply=reply, made=made)
