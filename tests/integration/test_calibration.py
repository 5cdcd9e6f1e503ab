"""Estimates learn from what calls were billed at: by tenant and model, slowly, and never far from the table."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from hango.chain import tries as rules
from hango.chain.tries import FACTOR_SPREAD, FACTOR_WEIGHT, LEAST_TOKENS
from hango.config import Secret, Settings
from hango.messages import Usage
from tests.asked import prepared, principal_of
from tests.desks import Desk, make_desk
from tests.people import Api, a_try, serve

MODEL = "openai/gpt-5"  # a token of it is a token of the counting encoding, by the table
LONG = [{"role": "user", "content": "How many bolts are in drawer three, and how many nuts? " * 160}]


@pytest.fixture
async def api(settings: Settings) -> AsyncIterator[Api]:
    key = Secret("sk-test")
    async with serve(replace(settings, openai_api_key=key, anthropic_api_key=key)) as running:
        yield running


@pytest.fixture
async def desk(api: Api) -> Desk:
    return await make_desk(await api.admin(), model=MODEL, messages=LONG)


async def learn(api: Api, desk: Desk, share: float, *, calls: int = 1, model: str = MODEL) -> int:
    """Calls that were billed at `share` of what the counting encoding says, which is returned."""
    made = await a_try(desk.owner, desk.session_id, model=model)
    ready = await prepared(api, desk.owner, made["id"])
    billed = round(ready.raw_tokens * share)
    usage = Usage(input_tokens=billed - 20, cache_read_tokens=15, cache_write_tokens=5, output_tokens=999)
    async with api.runtime.deps.store.begin(await principal_of(desk.owner)) as scope:
        for _ in range(calls):
            await rules.learn(scope, api.runtime.deps, [(ready, usage)])
    return ready.raw_tokens


async def shown(desk: Desk, query: str = "") -> tuple[int, int]:
    """From how many calls, and the total by estimate."""
    snapshot = await desk.context(query)
    return snapshot["calibrated_from"], snapshot["estimate_after"]


async def test_an_estimate_says_from_how_many_calls_it_was_learnt(desk: Desk, api: Api) -> None:
    """GET context says `calibrated_from: n`; each billed call moves the estimate a fifth of the way to its bill."""
    calls, before = await shown(desk)
    assert calls == 0

    raw = await learn(api, desk, 1.5)
    first = await shown(desk)
    await learn(api, desk, 1.5, calls=2)
    third = await shown(desk)

    factor = 1 + FACTOR_WEIGHT * 0.5
    assert first[0] == 1
    assert first[1] == pytest.approx(raw * factor, rel=0.02)
    factor += FACTOR_WEIGHT * (1.5 - factor)
    factor += FACTOR_WEIGHT * (1.5 - factor)
    assert third[0] == 3
    assert third[1] == pytest.approx(raw * factor, rel=0.02)
    assert before < first[1] < third[1] < raw * 1.5


async def test_previews_and_tries_are_estimated_by_what_was_learnt(desk: Desk, api: Api) -> None:
    """Inspect, preview and try of a model share one factor: their totals agree after a lesson as before."""
    raw = await learn(api, desk, 2.0, calls=20)

    looked, seen = await desk.context(), await desk.preview()
    made = await a_try(desk.owner, desk.session_id)

    assert looked["estimate_after"] == pytest.approx(raw * 2, rel=0.05)
    assert (looked["estimate_after"], looked["calibrated_from"]) == (seen["estimate_after"], seen["calibrated_from"])
    assert made["tokens_after"] == looked["estimate_after"]
    assert (
        sum(part["tokens"] for group in ("system", "tools", "messages") for part in looked[group])
        == (looked["estimate_after"])
    )


@pytest.mark.parametrize(("share", "bound"), [(50.0, FACTOR_SPREAD), (0.2, 1 / FACTOR_SPREAD)])
async def test_no_bill_moves_an_estimate_beyond_the_bound(share: float, bound: float, desk: Desk, api: Api) -> None:
    """The factor is clamped: never more than twice or less than half of the table's value."""
    raw = await learn(api, desk, share, calls=40)

    calls, estimate = await shown(desk)

    assert calls == 40
    assert estimate == pytest.approx(raw * bound, rel=0.02)


async def test_a_lesson_is_of_one_model_and_one_tenant(desk: Desk, api: Api) -> None:
    """What was billed for one model says nothing of another; what one tenant was billed, nothing to another."""
    stranger = await make_desk(await api.admin(), model=MODEL, messages=LONG)
    sibling = await make_desk(desk.owner, model="openai/gpt-5-mini", messages=LONG)
    others = [await shown(stranger), await shown(sibling)]

    await learn(api, desk, 1.8, calls=3)
    await learn(api, desk, 1.8, model="anthropic/claude-sonnet-5")

    assert [await shown(stranger), await shown(sibling)] == others
    assert (await shown(desk))[0] == 3


async def test_short_and_offline_calls_teach_nothing(api: Api) -> None:
    """In a short request weighs what a provider adds by itself; the offline answerer counts as hango does."""
    owner = await api.admin()
    agent = await owner.agent(model=MODEL, builtin=[])
    session = await owner.session(agent["id"], messages=[{"role": "user", "content": "Hello."}])
    short = Desk(owner, agent["id"], session["id"])
    offline = await make_desk(owner, messages=LONG)

    assert await learn(api, short, 1.5) < LEAST_TOKENS
    assert await learn(api, offline, 1.5, model="offline/extract") >= LEAST_TOKENS

    assert [(await shown(one))[0] for one in (short, offline)] == [0, 0]
