"""The inputs that a run follows: what it sends, and the summary that it leaves."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from typing import Any

import pytest

from hango.config import Secret, Settings
from tests.cases import reading
from tests.cases.making import agent_of, session_of
from tests.cases.reading import Case
from tests.desks import as_json
from tests.people import Api, serve
from tests.picking import in_turn
from tests.providers_server import Answer, FakeProvider, chat, fake_provider, message, says
from tests.runs import call_context, calls_of, run

CASES = [case for case in reading.read_all() if case.has_run]
RAISES = says({"error": {"type": "api_error", "message": "The summarizer broke."}}, status=500)
SUMMARY = "They counted the shelves."


@pytest.fixture
async def fake() -> AsyncIterator[FakeProvider]:
    async with fake_provider(RAISES) as running:
        yield running


@pytest.fixture
async def api(settings: Settings, fake: FakeProvider) -> AsyncIterator[Api]:
    """An API whose providers are the fake."""
    told = replace(
        settings,
        anthropic_base_url=fake.url,
        anthropic_api_key=Secret("a key"),
        openai_base_url=f"{fake.url}/v1",
        openai_api_key=Secret("a key"),
    )
    async with serve(told) as running:
        yield running


def script(case: Case, model: str, *, summarizes: bool) -> Answer:
    """The summarizer's answer first, if it is asked; then the model's."""
    said = (message if model.startswith("anthropic") else chat)("Done.")
    asked = (message if model.startswith("anthropic") else chat)(SUMMARY)
    if not summarizes:
        return says(said)
    return in_turn(RAISES if case.given["settings"].get("summarizer") == "raises" else says(asked), says(said))


@pytest.mark.parametrize(
    ("case", "model"), [pytest.param(case, model, id=f"{case.id}-{model}") for case in CASES for model in case.models]
)
async def test_run_case(case: Case, model: str, api: Api, fake: FakeProvider) -> None:
    """The input's `after_run` is true: the summary in force, and the messages that the run's call sent."""
    owner = await api.admin()
    session = await owner.session(**session_of(case.given, (await owner.agent(**agent_of(case.given, model)))["id"]))
    seen = as_json(await owner.get(f"/v1/sessions/{session['id']}/context?count=estimate"))
    keeps = case.given["settings"].get("keep_last_messages", 20)
    fake.answer = script(case, model, summarizes=seen["would_compact"] and len(case.given["messages"]) > keeps)

    ended = await run(api, owner, session["id"])

    assert ended["status"] == "succeeded"
    last = (await calls_of(owner, ended["id"]))[-1]
    context = await call_context(owner, ended["id"], last["n"])
    summary = as_json(await owner.get(f"/v1/sessions/{session['id']}"))["summary"]
    after: dict[str, Any] = {
        "summary": summary,
        "covers_up_to": summary and summary["through_seq"],
        "sent_messages": [part["seq"] for part in context["messages"] if part["sent"] and part.get("seq")],
    }
    wanted = dict(case.then["after_run"])
    forbidden = [text.split() for text in wanted.pop("never", ())]
    choices = wanted.pop("any_of", [{}])
    assert any(after == {**after, **wanted, **choice} for choice in choices)
    assert [name for name, value in forbidden if str(after[name]) == value] == []


CALL = {"type": "tool_use", "id": "toolu_1", "name": "order", "input": {}}
RESULT = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "Ordered."}
ASKED = {
    "tools": [{"name": "order", "description": "Orders.", "input_schema": {"type": "object"}}],
    "messages": [
        {"seq": 1, "role": "user", "content": "Order bolts."},
        {"seq": 2, "role": "assistant", "content": [CALL]},
    ],
}
TALKED = {
    "messages": [
        {"seq": 1, "role": "user", "content": "Where are the bolts?"},
        {"seq": 2, "role": "assistant", "content": "In drawer 3."},
    ],
}


@dataclass(frozen=True, slots=True)
class Later:
    """What is there, which messages are left out, what comes then, and which messages the run's call sends."""

    given: dict[str, Any]
    excluded: tuple[int, ...]
    appended: tuple[dict[str, Any], ...]
    sent: list[int]


LATER = {
    "a call takes the result that comes later": Later(ASKED, (2,), ({"role": "user", "content": [RESULT]},), [1, 4]),
    "what comes later is sent": Later(TALKED, (2,), ({"role": "user", "content": "And the nuts?"},), [1, 3, 4]),
    "nothing comes": Later(TALKED, (2,), (), [1, 3]),
}


@pytest.mark.parametrize("later", LATER.values(), ids=LATER)
@pytest.mark.parametrize("model", ["anthropic/claude-sonnet-4-5", "openai/gpt-4o"])
async def test_what_is_appended_after_a_put(later: Later, model: str, api: Api, fake: FakeProvider) -> None:
    """As an input's `then_append`: messages come after the overrides were saved, and a run follows."""
    owner = await api.admin()
    case = {"settings": {}, **later.given}
    session = await owner.session(**session_of(case, (await owner.agent(**agent_of(case, model)))["id"]))
    path = f"/v1/sessions/{session['id']}"
    overrides = [{"part": f"message:{seq}", "action": "exclude"} for seq in later.excluded]
    as_json(await owner.put(f"{path}/context-overrides", json={"overrides": overrides}))
    for one in later.appended:
        (await owner.post(f"{path}/messages", json={"messages": [one]})).raise_for_status()
    fake.answer = script(Case("", case, {}, {}), model, summarizes=False)

    ended = await run(api, owner, session["id"], message="And the screws?")
    context = await call_context(owner, ended["id"], 1)
    stored = as_json(await owner.get(f"{path}/messages"))["data"]

    assert ended["status"] == "succeeded"
    assert [part["seq"] for part in context["messages"] if part["sent"] and part.get("seq")] == later.sent
    assert len(stored) == len(later.given["messages"]) + len(later.appended) + 2
