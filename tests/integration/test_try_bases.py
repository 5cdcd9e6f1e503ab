"""The base of a try is fixed when it is accepted: what changes later changes no request that waits."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest

from hango.chain.deps import Deps
from hango.chain.tries import ContextChanged, Variant, gather
from hango.config import Secret, Settings
from hango.domain import BaseID, SessionID
from hango.tries import Changes, Texts
from tests.asked import ask, prepared, previewed_wire, principal_of, wire_of
from tests.desks import HISTORY, MEMORY, Desk, as_json, exclude, make_desk, put, swap
from tests.people import Api, Person, a_batch, a_try, serve

Change = Callable[[Desk], Awaitable[Any]]


@pytest.fixture
async def desk(caller: Person) -> Desk:
    made = await make_desk(caller)
    as_json(await put(made, made.of_agent, exclude("tool:count")))
    as_json(await put(made, made.of_session, swap("message:4", "Forty.")))
    return made


CHANGES: dict[str, Change] = {
    "the session's overrides": lambda desk: put(desk, desk.of_session, exclude("message:2")),
    "the session's overrides cleared": lambda desk: put(desk, desk.of_session, []),
    "the agent's overrides": lambda desk: put(desk, desk.of_agent, swap("system:agent", "You count.")),
    "more messages": lambda desk: desk.append({"role": "assistant", "content": "Ten."}),
    "the agent's prompt": lambda desk: desk.change(system_prompt="You sort."),
    "the agent's model": lambda desk: desk.change(model="offline/other"),
    "the agent's tools": lambda desk: desk.change(tools=[], max_output_tokens=7),
    "memory": lambda desk: desk.write(MEMORY, "The owner is away on Fridays."),
    "a skill": lambda desk: desk.write("/skills/sort/SKILL.md", "---\nname: sort\ndescription: Sorts.\n---\nSort.\n"),
    "memory deleted": lambda desk: desk.owner.delete(f"/v1/agents/{desk.agent_id}/files{MEMORY}"),
    "the agent deleted": lambda desk: desk.owner.delete(f"/v1/agents/{desk.agent_id}"),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
async def test_what_changes_later_does_not_change_what_is_sent(change: Change, desk: Desk, api: Api) -> None:
    """Overrides, history end, agent version and files are those of the POST, to the byte, for a try and for a batch."""
    wanted = await previewed_wire(desk.owner, desk.session_id, message="Now?")
    single = await a_try(desk.owner, desk.session_id, message="Now?")
    batch = await a_batch(desk.owner, desk.session_id, variants=[{"message": "Now?"}])

    await change(desk)

    for id in (single["id"], batch["variants"][0]["tries"][0]):
        assert await wire_of(api, desk.owner, id) == wanted


async def test_a_worker_that_has_read_a_base_sends_the_same(desk: Desk, api: Api) -> None:
    """Tries of one base, read once or many times, with the changes of each."""
    bodies: list[dict[str, Any]] = [{}, {"exclude": ["message:2"]}, {"until": 3}, {"message": "x"}, {"include": ["*"]}]
    made = [(await a_try(desk.owner, desk.session_id, **body))["id"] for body in bodies]
    wanted = [await previewed_wire(desk.owner, desk.session_id, **body) for body in bodies]
    await desk.change(system_prompt="You sort.")

    kept = api.runtime.deps  # its store of bases is shared by the look-ups below
    found = [await wire_of(api, desk.owner, id, deps=kept) for id in (*made, *made)]

    assert found == wanted * 2


async def test_a_try_of_a_deleted_session_is_not_sent(desk: Desk, api: Api) -> None:
    """A worker that has just claimed a try of a deleted session calls nobody: `context_changed`."""
    made = await a_try(desk.owner, desk.session_id)
    await desk.owner.delete(f"/v1/sessions/{desk.session_id}")

    with pytest.raises(ContextChanged):
        await prepared(api, desk.owner, made["id"])


async def test_a_try_whose_texts_are_gone_is_not_sent(desk: Desk, api: Api) -> None:
    """Without its texts, or when its request comes out otherwise, a try is not sent as something else."""
    made = await a_try(desk.owner, desk.session_id, replace={"message:1": "Hm."}, message="And?")
    other = await a_try(desk.owner, desk.session_id)
    async with api.runtime.deps.store.begin(await principal_of(desk.owner)) as scope:
        await scope.conn.execute(
            "update try_requests set texts = null, purged_at = now() where tenant_id = %s", (scope.tenant_id,)
        )

    with pytest.raises(ContextChanged):
        await prepared(api, desk.owner, made["id"])
    assert (await prepared(api, desk.owner, other["id"])).request.messages


# Summaries: `until` and what it covers.


@pytest.fixture
async def summed(caller: Person) -> Desk:
    return await make_desk(caller, summary={"text": "Bolts were looked for.", "through_seq": 3})


@pytest.mark.parametrize(
    ("body", "sent"),
    [
        ({}, ["summary", "message:4", "message:5"]),
        ({"until": 5}, ["summary", "message:4", "message:5"]),
        ({"until": 4, "message": "And?"}, ["summary", "message:4", "extra"]),
        ({"until": 3}, ["message:1", "message:2", "message:3"]),
        ({"until": 1}, ["message:1"]),
        ({"exclude": ["summary", "message:4"]}, ["message:5"]),
        ({"replace": {"summary": "Nuts."}}, ["summary", "message:4", "message:5"]),
    ],
)
async def test_an_end_under_the_summary_sends_what_it_covers(
    body: dict[str, Any], sent: list[str], summed: Desk, api: Api
) -> None:
    """`until` at or under the summary's `through_seq` leaves the summary out and sends the covered messages."""
    made = await a_try(summed.owner, summed.session_id, **body)

    assert [part for part in made["sent"] if not part.startswith(("system", "tool"))] == sent
    assert await wire_of(api, summed.owner, made["id"]) == await previewed_wire(summed.owner, summed.session_id, **body)


# Another model.

SIGNED = [
    {"role": "user", "content": "Where are the bolts?"},
    {
        "role": "assistant",
        "content": [
            {"type": "thinking", "thinking": "Drawers.", "signature": "c2lnbmVk"},
            {"type": "text", "text": "In drawer 3."},
        ],
    },
    {"role": "user", "content": "And the nuts?"},
]


@pytest.fixture
async def keyed(settings: Settings) -> AsyncIterator[Api]:
    key = Secret("sk-test")
    async with serve(replace(settings, anthropic_api_key=key, openai_api_key=key)) as api:
        yield api


@pytest.mark.parametrize(
    ("model", "thinks", "most"),
    [
        (None, True, 64_000),
        ("anthropic/claude-sonnet-4", True, 64_000),
        ("anthropic/claude-opus-4", False, 32_000),
        ("openai/gpt-5", False, 64_000),
        ("offline/extract", False, 8_192),
    ],
)
async def test_another_model_is_called_as_it_takes_the_request(
    model: str | None, thinks: bool, most: int, keyed: Api
) -> None:
    """`model` is called in place of the agent's: without thinking that another signed, within its own output limit."""
    owner = await keyed.admin()
    agent = await owner.agent(model="anthropic/claude-sonnet-4", max_output_tokens=64_000)
    session = await owner.session(agent["id"], messages=SIGNED)

    made = await a_try(owner, session["id"], model=model)

    ready = await prepared(keyed, owner, made["id"])
    called = model or "anthropic/claude-sonnet-4"
    assert made["request"]["model"] == called
    assert (ready.model, ready.provider, ready.request.max_output_tokens) == (called, called.partition("/")[0], most)
    assert (b"c2lnbmVk" in await wire_of(keyed, owner, made["id"])) == thinks


async def test_the_agents_own_model_by_name_is_the_same_request(caller: Person) -> None:
    """Naming the model that the agent has changes nothing."""
    desk = await make_desk(caller, messages=HISTORY)

    plain, named = await a_try(caller, desk.session_id), await a_try(caller, desk.session_id, model="offline/extract")

    assert {**named, "id": plain["id"], "created_at": plain["created_at"]} == plain
    assert (await ask(caller, desk.session_id, model="offline/")).status_code == 422


async def test_variants_of_many_models_share_what_is_read(desk: Desk, api: Api) -> None:
    """A batch reads its base once, however many models it names: history and files are not kept once a model."""
    deps = api.runtime.deps
    models = [None, "offline/extract", "offline/a", "offline/b"]
    variants = [Variant(None, Changes(), Texts(), model) for model in models]

    async with deps.store.read(await principal_of(desk.owner)) as scope:
        gathered = await gather(scope, deps, SessionID(UUID(desk.session_id)), variants, is_batch=True)

    states = list(gathered.trunks.values())
    assert [state.agent.model for state in states] == ["offline/extract", "offline/extract", "offline/a", "offline/b"]
    assert len(states[0].messages) == len(HISTORY)
    assert all(state.messages is states[0].messages and state.files is states[0].files for state in states)


FIVE = [{"role": "user" if n % 2 else "assistant", "content": f"Message {n}."} for n in range(1, 6)]


@pytest.mark.parametrize(
    ("body", "read"),
    [
        ({}, [1, 2, 3, 4, 5]),
        ({"until": 1}, [1]),
        ({"exclude": ["message:1", "message:2", "message:4", "message:5"]}, [3]),
    ],
)
async def test_a_worker_reads_what_it_sends(body: dict[str, Any], read: list[int], caller: Person, api: Api) -> None:
    """The bodies of a long history are not read, nor kept, for a call that sends a few of its messages."""
    agent = await caller.agent()
    session = await caller.session(agent["id"], messages=FIVE)
    made = await a_try(caller, session["id"], **body)
    known, principal = api.runtime.deps, await principal_of(caller)
    deps = Deps(known.settings, known.store, known.providers, known.models)

    await prepared(api, caller, made["id"], deps)

    async with known.store.read(principal) as scope:
        cursor = await scope.conn.execute("select base_id from try_requests where session_id = %s", (session["id"],))
        ((base_id,),) = await cursor.fetchall()
    kept = deps.bases.get((principal.tenant_id, BaseID(base_id)))
    assert kept is not None
    assert sorted(kept.bodies) == read
