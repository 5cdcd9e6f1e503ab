"""Tries over a made population of agents, histories and changes, on both wires, through the API and a real worker."""

from __future__ import annotations

import asyncio
import json
import re
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import event, given, settings

from tests.cases import population
from tests.cases.making import Made
from tests.cases.try_outcome import TryOutcome
from tests.cases.try_population import Answered, Tried, tried
from tests.cases.try_world import TryWorld
from tests.cases.world import Person, two_tenants
from tests.histories import build
from tests.providers_server import Seen

EXAMPLES = 40  # each is some thirty requests, and a model call
BATCHES = 12
# With these a preview says what is wrong, and a try is refused.
UNSENDABLE = {
    "no_user_message",
    "starts_with_assistant",
    "ends_with_assistant",
    "bad_tool_schema",
    "too_many_tools",
}
SPOKEN = re.compile(r"(?:Words|Result|Line|Echo|Thought|Guess) \d+[.,]")
WORDS = re.compile(r"Words \d+, spoken\.")


@pytest.fixture(scope="module")
def place(world_of_tries: TryWorld) -> TryWorld:
    world_of_tries.ready()
    return world_of_tries


@pytest.fixture(scope="module")
def owner(place: TryWorld) -> Person:
    """The admin of a tenant that nobody else works in."""
    admin, _ = asyncio.run(two_tenants(place.database))
    return admin


@given(made=tried())
@settings(max_examples=EXAMPLES)
def test_a_try(made: Tried, place: TryWorld, owner: Person) -> None:
    """What the worker sends equals the preview of the same body, byte for byte, and `sent` is what the body holds; the
    answer, its stop reason and its usage come back as the model gave them; usage, quota and audit add up; the session
    is as it was. What cannot be sent is refused with the preview's reason, and nobody is called."""
    session = create(made, place, owner)
    place.answers(made.answered.on_its_wire())
    asked, before = len(place.calls()), money(place, owner)
    (body,) = made.bodies
    untouched = TryOutcome(place.server, owner, made=session)
    as_it_was = (untouched.session, untouched.stored)

    # Before the try: what is billed is a lesson for estimates, and tokens come out differently afterwards.
    preview = look(made, place, owner, session, body)
    reply = owner.send(place.server, "POST", f"/v1/sessions/{session.session_id}/context/try", body)
    if reply.status_code == 422:
        event("refused")
        assert reply.json()["errors"][0]["reason"] in preview.reasons
        assert (place.calls()[asked:], money(place, owner)) == ([], before)
        return
    assert reply.status_code == 202, reply.text
    event("accepted")
    ended = place.until(owner, reply.json()["id"])

    (call,) = place.calls()[asked:]
    assert call.body == preview.body
    _is_as_previewed(ended, preview)
    _body_holds_what_was_sent(ended, made, call)
    _answer_came_back(ended, made.answered)
    _is_accounted_for(ended, body, place, owner, before)
    untouched = TryOutcome(place.server, owner, made=session)
    assert (untouched.session, untouched.stored) == as_it_was


@given(made=tried(most=3))
@settings(max_examples=BATCHES)
def test_a_batch(made: Tried, place: TryWorld, owner: Person) -> None:
    """The variants of a batch are sent as if each were tried by itself, and the batch adds up; it is refused whole with
    the reason of the variant that could not be sent."""
    session = create(made, place, owner)
    place.answers(made.answered.on_its_wire())
    asked = len(place.calls())
    previews = [look(made, place, owner, session, body) for body in made.bodies]

    body = {"variants": made.bodies, "repeats": 2}
    reply = owner.send(place.server, "POST", f"/v1/sessions/{session.session_id}/context/try-batches", body)
    if reply.status_code == 422:
        event("refused")
        fault = reply.json()["errors"][0]
        at = int(re.findall(r"^/variants/(\d+)", fault["pointer"])[0])
        assert fault["reason"] in previews[at].reasons
        assert [preview.reasons for preview in previews[:at]] == [[]] * at
        assert place.calls()[asked:] == []
        return
    assert reply.status_code == 202, reply.text
    event("accepted")
    ids = [id for variant in reply.json()["variants"] for id in variant["tries"]]
    ended = [place.until(owner, id) for id in ids]

    assert sorted(call.body for call in place.calls()[asked:]) == sorted([preview.body for preview in previews] * 2)
    assert [one["variant"] for one in ended] == [n for n in range(len(made.bodies)) for _ in range(2)]
    for one in ended:
        _is_as_previewed(one, previews[one["variant"]])
        _answer_came_back(one, made.answered)
    batch = owner.send(place.server, "GET", f"/v1/try-batches/{reply.json()['id']}").raise_for_status().json()
    assert (batch["tries"], batch["done"], batch["counts"]) == (len(ids), len(ids), {"succeeded": len(ids)})
    for variant, bills in zip(batch["variants"], zip(ended[::2], ended[1::2], strict=True), strict=True):
        for figure in ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens"):
            assert variant["usage"][figure] == sum(one["usage"][figure] for one in bills)


def create(made: Tried, place: TryWorld, owner: Person) -> Made:
    """A set that may not be saved is not there."""
    session = population.create(made.given, place.server, owner)
    for target, overrides in made.saved.items():
        reply = owner.send(place.server, "PUT", session.overrides(target), {"overrides": overrides})
        assert reply.status_code in (200, 422), reply.text
    return session


@dataclass(frozen=True, slots=True)
class Preview:
    """What a preview says of a body; `reasons` why it could not be sent, if so."""

    reasons: list[str]
    snapshot: dict[str, Any] = field(default_factory=dict)
    body: bytes = b""


def look(made: Tried, place: TryWorld, owner: Person, session: Made, body: dict[str, Any]) -> Preview:
    """Previews have no `model`: of another one it is that of a like session, whose agent has that model."""
    if "model" in body:
        session = create(made.with_model(body["model"]), place, owner)
        body = {key: value for key, value in body.items() if key != "model"}
    shown = owner.send(place.server, "POST", f"/v1/sessions/{session.session_id}/context/preview", body)
    if shown.status_code == 422:
        return Preview([error["reason"] for error in shown.json()["errors"]])
    snapshot = shown.raise_for_status().json()
    reasons = [one["reason"] for one in snapshot["problems"] if one["reason"] in UNSENDABLE]
    return Preview(reasons, snapshot, TryOutcome(place.server, owner, made=session, change=body).preview_body)


def money(place: TryWorld, owner: Person) -> tuple[int, int, int]:
    """Of the tenant: tokens used, tokens reserved, bills."""
    tenant = owner.send(place.server, "GET", "/v1/me").raise_for_status().json()["tenant"]
    sums = owner.send(place.server, "GET", "/v1/usage?group_by=purpose").raise_for_status().json()["data"]
    return tenant["quota_used"], tenant["quota_reserved"], sum(one["records"] for one in sums)


def _is_as_previewed(ended: dict[str, Any], preview: Preview) -> None:
    snapshot = preview.snapshot
    parts = [*snapshot["system"], *snapshot["tools"], *snapshot["messages"]]
    gone = [part["id"] for part in parts if part["override"] == "exclude" or part["paired"]]
    assert {
        "sent": ended["sent"],
        "excluded": sorted(ended["excluded"]),
        "before": ended["tokens_before"],
        "after": ended["tokens_after"],
        "attempts": ended["attempts"],
    } == {
        "sent": [part["id"] for part in parts if part["sent"]],
        "excluded": sorted(gone),
        "before": snapshot["estimate_before"],
        "after": snapshot["estimate_after"],
        "attempts": 1,
    }
    same = ended["session_id"] == snapshot["session_id"]
    assert not same or ended["request_sha256"] == snapshot["request_sha256"]


def _body_holds_what_was_sent(ended: dict[str, Any], made: Tried, call: Seen) -> None:
    """Read without hango: of a message that is sent its words, of one that is not no word at all, and the tools."""
    body, sent = call.body.decode(), set(ended["sent"])
    replaced = set(ended["request"]["replace"]) | {
        one["part"] for overrides in made.saved.values() for one in overrides if one["action"] == "replace"
    }
    assert call.json["model"] == ended["request"]["model"].partition("/")[2]
    for seq, said in enumerate(build(made.given.history), 1):
        part, text = f"message:{seq}", "".join(block.json for block in said.content)
        if part not in sent:
            assert [spoken for spoken in SPOKEN.findall(text) if spoken in body] == [], part
        elif part not in replaced:
            assert [spoken for spoken in WORDS.findall(text) if spoken not in body] == [], part
    tools = {(tool.get("function") or tool)["name"] for tool in call.json.get("tools", ())}
    assert tools == {part.partition(":")[2] for part in sent if part.startswith("tool:")}
    assert ("summary" in sent) is ("What was said before." in body or "summary" in replaced & sent)
    for part, text in ended["request"]["replace"].items():
        assert (
            part not in sent or json.dumps(text, ensure_ascii=False)[1:-1] in body or text.rstrip() in _texts(call.json)
        )
    assert ended["request"]["message"] is None or "extra" in sent


def _texts(value: Any) -> list[str]:
    """Every text in it, without the space at its end."""
    if isinstance(value, str):
        return [value.rstrip()]
    items = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [text for item in items for text in _texts(item)]


def _answer_came_back(ended: dict[str, Any], answered: Answered) -> None:
    usage = answered.usage
    assert (ended["status"], ended["error"], ended["stop_reason"], ended["answer"]) == (
        "succeeded",
        None,
        answered.stop[2],
        {"role": "assistant", "content": answered.content},
    )
    assert {key: value for key, value in ended["usage"].items() if key != "cost_usd"} == {
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "cache_read_tokens": usage.cache_read_tokens,
        "cache_write_tokens": usage.cache_write_tokens,
        "estimated": False,
    }


def _is_accounted_for(
    ended: dict[str, Any], body: dict[str, Any], place: TryWorld, owner: Person, before: tuple[int, int, int]
) -> None:
    """One bill, the quota by as much, two audit rows that name parts and no text."""
    records = owner.send(place.server, "GET", f"/v1/usage/records?session_id={ended['session_id']}").json()["data"]
    (bill,) = records
    usage = ended["usage"]
    tokens = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens")
    assert {key: bill[key] for key in ("purpose", "run_id", "try_id", *tokens, "cost_usd", "estimated")} == {
        "purpose": "context_try",
        "run_id": None,
        "try_id": ended["id"],
        **{key: usage[key] for key in (*tokens, "cost_usd", "estimated")},
    }
    used, reserved, bills = before
    assert money(place, owner) == (used + sum(usage[key] for key in tokens), reserved, bills + 1)
    rows = place.rows(
        "select action, detail from audit_events where target_id = %s and target_kind = 'try' order by id", ended["id"]
    )
    assert [row["action"] for row in rows] == ["context.try", "context.try_finished"]
    detail = rows[0]["detail"]
    assert (sorted(detail["excluded"]), sorted(detail["replaced"])) == (
        sorted(body["exclude"]),
        sorted(body["replace"]),
    )
    told = json.dumps([row["detail"] for row in rows], ensure_ascii=False)
    assert [text for text in body["replace"].values() if len(text) > 8 and text in told] == []
