"""A worker's inside: claims, one call each, ends and bills, on a real database and through the real adapters."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from hango.config import Settings
from hango.messages import StopReason, Usage
from hango.store.try_claims import reservation
from hango.store.usage import total
from hango.tries import Changes, Texts, Try, TryError, TryStatus, TryUsage
from tests.conftest import Database
from tests.picking import MODEL, MOST_TOKENS, PLAIN, Asker, Work, held_back, in_turn, make_asker, open_deps, picking
from tests.providers_server import (
    Answer,
    FakeProvider,
    chat,
    crawls,
    drips,
    floods,
    hangs_up,
    never,
    packed,
    says,
    writes,
)
from tests.rows import make_tenant
from tests.tries import Ledger, alter, ledger, rows_of
from tests.working import eventually

ACTUAL = TryUsage(Usage(12, 3), None, estimated=False)
NOTHING = TryUsage(Usage(), 0.0, estimated=False)


async def test_a_try_returns_the_models_answer(work: Work, asker: Asker, fake: FakeProvider) -> None:
    """The worker sends the context that was accepted, once, and records answer, stop reason and usage."""
    before = await asker.turns()
    (try_id,) = await asker.ask(replace(PLAIN, changes=Changes(exclude=("message:2",)), texts=Texts(message="Short.")))

    await work.picker.ring()
    (ended,) = await asker.until([try_id])

    assert (ended.status, ended.answer, ended.stop_reason, ended.usage, ended.error, ended.attempts) == (
        TryStatus.SUCCEEDED,
        '[{"type":"text","text":"In drawer 4."}]',
        StopReason.END_TURN,
        ACTUAL,
        None,
        1,
    )
    (sent,) = fake.seen
    assert [one["content"] for one in sent.json["messages"]] == ["Where are the bolts?", "And the nuts?", "Short."]
    assert sent.json["max_tokens"] == MOST_TOKENS
    assert await asker.turns() == before


async def test_a_try_leaves_one_bill_and_its_two_audit_rows(work: Work, asker: Asker, fresh_database: Database) -> None:
    """Exactly one usage_records row with purpose context_try and no run; audit ids and outcome, without text."""
    (try_id,) = await asker.ask(replace(PLAIN, texts=Texts(message="canary-4714")))

    await work.picker.ring()
    await asker.until([try_id])

    assert rows_of(
        fresh_database.superuser_dsn,
        "select purpose, run_id, try_id, session_id, user_id, model, input_tokens, output_tokens, estimated"
        " from usage_records",
    ) == [
        {
            "purpose": "context_try",
            "run_id": None,
            "try_id": try_id,
            "session_id": asker.session_id,
            "user_id": asker.principal.user_id,
            "model": MODEL,
            "input_tokens": 12,
            "output_tokens": 3,
            "estimated": False,
        }
    ]
    assert await ledger(work.store, asker.principal) == Ledger(used=15, reserved=0)
    audits = rows_of(
        fresh_database.superuser_dsn,
        "select action, target_id, detail::text from audit_events where target_kind = 'try' order by id",
    )
    assert [(row["action"], row["target_id"]) for row in audits] == [
        ("context.try", try_id),
        ("context.try_finished", try_id),
    ]
    assert '"outcome": "succeeded"' in audits[1]["detail"]
    assert not any("canary-4714" in row["detail"] for row in audits)


ESTIMATED = "the reservation"
NOT_JSON = says(b"{")
MANY_TOKENS = chat("Yes.", usage={"prompt_tokens": 10, "completion_tokens": 999_999, "total_tokens": 1_000_009})
END_CASES: dict[str, tuple[Any, TryStatus, TryError | None, str | TryUsage, int | None]] = {
    "hangs": (never, TryStatus.TIMED_OUT, TryError.TIMEOUT, ESTIMATED, None),
    "drips": (drips, TryStatus.TIMED_OUT, TryError.TIMEOUT, ESTIMATED, None),
    "slow header": (crawls, TryStatus.TIMED_OUT, TryError.TIMEOUT, ESTIMATED, None),
    "floods": (floods, TryStatus.FAILED, TryError.RESPONSE_TOO_LARGE, ESTIMATED, 200),
    "gzip": (packed(chat("x")), TryStatus.FAILED, TryError.PROVIDER_PROTOCOL, ESTIMATED, 200),
    "cut": (hangs_up, TryStatus.FAILED, TryError.PROVIDER_PROTOCOL, ESTIMATED, 200),
    "cut before the answer": (writes(), TryStatus.FAILED, TryError.PROVIDER_PROTOCOL, ESTIMATED, None),
    "bad JSON": (NOT_JSON, TryStatus.FAILED, TryError.PROVIDER_PROTOCOL, ESTIMATED, 200),
    "400": (says({"error": {"message": "no"}}, status=400), TryStatus.FAILED, TryError.PROVIDER_REFUSED, NOTHING, 400),
    "401": (says({}, status=401), TryStatus.FAILED, TryError.PROVIDER_REFUSED, NOTHING, 401),
    "500": (says({}, status=500), TryStatus.FAILED, TryError.PROVIDER_ERROR, NOTHING, 500),
    "redirect": (
        says({}, status=307, headers={"location": "http://127.0.0.1:1/"}),
        TryStatus.FAILED,
        TryError.PROVIDER_ERROR,
        NOTHING,
        307,
    ),
    "no usage told": (says(chat("Yes.", usage={})), TryStatus.SUCCEEDED, None, ESTIMATED, None),
    "negative usage": (
        says(chat("Yes.", usage={"prompt_tokens": -5, "completion_tokens": 3})),
        TryStatus.SUCCEEDED,
        None,
        ESTIMATED,
        None,
    ),
}


@pytest.mark.parametrize("case", END_CASES)
async def test_whatever_a_provider_does_the_try_ends(case: str, work: Work, asker: Asker, fake: FakeProvider) -> None:
    """Hang, drip, flood, gzip, 4xx, 5xx, cut, bad JSON, redirect: the right end and bill, one call, in time."""
    answer, status, error, billed, http_status = END_CASES[case]
    fake.answer = answer
    loop = asyncio.get_running_loop()
    began = loop.time()
    (try_id,) = await asker.ask(seconds=0.5)

    await work.picker.ring()
    (ended,) = await asker.until([try_id])

    assert loop.time() - began < 0.5 + 2.0  # the machine is shared by others
    assert (ended.status, ended.error, ended.provider_status, len(fake.seen)) == (status, error, http_status, 1)
    assert ended.usage == (await estimate(asker, ended) if billed == ESTIMATED else billed)
    assert (await ledger(work.store, asker.principal)).reserved == 0


async def estimate(asker: Asker, ended: Try) -> TryUsage:
    """The bill of what may have been charged: the reservation, flagged."""
    async with asker.deps.store.read(asker.principal) as scope:
        cursor = await scope.conn.execute("select reserved from tries where id = %s", (ended.id,))
        ((reserved,),) = await cursor.fetchall()
    return TryUsage(reservation(reserved, MOST_TOKENS), None, estimated=True)


async def test_figures_that_cannot_be_are_cut(work: Work, asker: Asker, fake: FakeProvider) -> None:
    """Usage is clamped to four times the reservation, and flagged."""
    fake.answer = says(MANY_TOKENS)
    (try_id,) = await asker.ask()

    await work.picker.ring()
    (ended,) = await asker.until([try_id])

    reserved = total((await estimate(asker, ended)).tokens)
    assert ended.usage == TryUsage(Usage(10, 4 * reserved - 10), None, estimated=True)
    assert await ledger(work.store, asker.principal) == Ledger(used=4 * reserved, reserved=0)


async def test_a_refusal_keeps_the_providers_words(work: Work, asker: Asker, fake: FakeProvider) -> None:
    """A 4xx ends the try with what the provider said, its status and its name for the call."""
    fake.answer = says({"error": {"message": "no such model"}}, status=404, headers={"x-request-id": "req_9"})
    (try_id,) = await asker.ask()

    await work.picker.ring()
    (ended,) = await asker.until([try_id])

    assert (ended.said, ended.provider_status, ended.usage) == ("no such model", 404, NOTHING)


NOT_TAKEN = [
    (says({}, status=429, headers={"retry-after": "7"}), 7),
    (says({}, status=429, headers={"retry-after": "-1"}), 1),
    (says({}, status=429, headers={"retry-after": "1000000000"}), 60),
    (says({}, status=429, headers={"retry-after": "soon"}), 1),
    (says({}, status=429), 1),
    (says({}, status=529), 1),
]


@pytest.mark.parametrize(("said", "seconds"), NOT_TAKEN)
async def test_a_call_that_was_not_taken_waits_as_long_as_the_provider_asks(
    said: Answer, seconds: int, work: Work, asker: Asker, fake: FakeProvider
) -> None:
    """429 and 529: back to the queue with not_before, 1 to 60 s, the mark cleared and nothing billed."""
    fake.answer = said
    (try_id,) = await asker.ask(ttl=120.0)

    await work.picker.ring()
    await eventually(lambda: len(fake.seen) == 1)
    (waiting,) = await asker.until([try_id], frozenset({TryStatus.QUEUED}))

    async with work.store.read(asker.principal) as scope:
        cursor = await scope.conn.execute(
            "select deferrals, called_at, extract(epoch from not_before - clock_timestamp())::float8 from tries"
        )
        ((deferrals, called_at, left),) = await cursor.fetchall()
    assert (waiting.usage, deferrals, called_at) == (None, 1, None)
    assert seconds - 1 < left <= seconds


async def test_a_call_that_was_not_taken_is_made_again(work: Work, asker: Asker, fake: FakeProvider) -> None:
    """After the wait the try is claimed once more, by this worker's own clock, and billed once."""
    fake.answer = in_turn(says({}, status=429), says({}, status=529, headers={"retry-after": "0"}), says(chat("Yes.")))
    (try_id,) = await asker.ask()

    await work.picker.ring()
    (ended,) = await asker.until([try_id])

    assert (ended.status, ended.attempts, ended.usage, len(fake.seen)) == (TryStatus.SUCCEEDED, 3, ACTUAL, 3)
    assert await ledger(work.store, asker.principal) == Ledger(used=15, reserved=0)


@pytest.mark.parametrize(
    ("change", "ttl"), [("deferrals = 5", 60.0), ("reserved = reserved", 0.9)], ids=["too often", "too late"]
)
async def test_a_call_that_may_not_wait_again_fails(
    change: str, ttl: float, work: Work, asker: Asker, fake: FakeProvider
) -> None:
    """At most five deferrals, and inside the time in the queue: then failed, with nothing billed."""
    fake.answer = says({}, status=429)
    (try_id,) = await asker.ask(ttl=ttl)
    await alter(work.store, asker.principal, change, try_id)

    await work.picker.ring()
    (ended,) = await asker.until([try_id])

    assert (ended.status, ended.error, ended.usage, len(fake.seen)) == (
        TryStatus.FAILED,
        TryError.PROVIDER_RATE_LIMITED,
        NOTHING,
        1,
    )


async def test_a_provider_that_is_not_there_costs_nothing(work_settings: Settings, work: Work) -> None:
    """Connection refused: `provider_unreachable`, nothing was taken, nothing is billed."""
    nowhere = replace(work_settings, openai_base_url="http://127.0.0.1:9/v1")
    await work.picker.stop()
    async with open_deps(nowhere) as deps, picking(deps) as other:
        asker = await make_asker(deps, await make_tenant(deps.store))
        (try_id,) = await asker.ask()
        await other.picker.ring()
        (ended,) = await asker.until([try_id])

    assert (ended.status, ended.error, ended.usage) == (TryStatus.FAILED, TryError.PROVIDER_UNREACHABLE, NOTHING)


async def test_many_tries_are_called_once_each(work: Work, asker: Asker, fake: FakeProvider) -> None:
    """100 tries, 10 rings each, some of them at once: 100 calls, 100 bills."""
    held = held_back()
    held.free.set()
    fake.answer = held
    tries = await asker.ask_batch([PLAIN], repeats=60) + await asker.ask(times=40)

    await asyncio.gather(*[work.picker.ring() for _ in range(1000)])
    ended = await asker.until(tries)

    assert {one.status for one in ended} == {TryStatus.SUCCEEDED}
    assert held.came == 100
    assert await ledger(work.store, asker.principal) == Ledger(used=1500, reserved=0)


async def test_a_tenant_has_no_more_running_than_its_cap(work_settings: Settings, fake: FakeProvider) -> None:
    """A process claims what it has room for, a tenant gets at most its cap, and the next tenant gets the rest."""
    held = held_back()
    fake.answer = held
    async with open_deps(replace(work_settings, context_try_tenant_running=3, worker_threads=5)) as deps:
        first, second = [await make_asker(deps, await make_tenant(deps.store)) for _ in range(2)]
        tries = await first.ask(times=6)
        others = await second.ask(times=6)
        async with picking(deps) as work:
            await work.picker.ring()
            assert await eventually(lambda: held.under_way == 5)
            running = [[(await one.look(id)).status for id in ids].count(TryStatus.RUNNING)
                       for one, ids in ((first, tries), (second, others))]  # fmt: skip
            held.free.set()
            await first.until(tries)
            await second.until(others)

    assert sorted(running) == [2, 3]
    assert (held.came, held.most) == (12, 5)


async def test_an_end_makes_room_without_a_ring(work_settings: Settings, fake: FakeProvider) -> None:
    """Every try that ends asks for another pick: nobody has to ring for each."""
    async with open_deps(replace(work_settings, worker_threads=1)) as deps, picking(deps) as work:
        asker = await make_asker(deps, await make_tenant(deps.store))
        tries = await asker.ask(times=5)
        await work.picker.ring()
        ended = await asker.until(tries)

    assert ([one.status for one in ended], len(fake.seen)) == ([TryStatus.SUCCEEDED] * 5, 5)


async def test_a_worker_begins_with_a_look(work_settings: Settings, fake: FakeProvider) -> None:
    """What waits when a worker starts is claimed without a ring."""
    async with open_deps(work_settings) as deps:
        asker = await make_asker(deps, await make_tenant(deps.store))
        tries = await asker.ask(times=2)
        async with picking(deps):
            ended = await asker.until(tries)

    assert [one.status for one in ended] == [TryStatus.SUCCEEDED] * 2


async def test_what_was_billed_is_a_lesson(work: Work, fake: FakeProvider, fresh_database: Database) -> None:
    """The per-model estimator factor is learnt from billed usage, a bill a lesson; an estimate is none."""
    long = ["nuts and bolts " * 200]
    asker = await make_asker(work.deps, await make_tenant(work.store), texts=long)
    fake.answer = in_turn(
        says(chat("Yes.", usage={"prompt_tokens": 1000, "completion_tokens": 1, "total_tokens": 1001})),
        says(chat("Yes.", usage={})),
    )
    for _ in range(2):
        tries = await asker.ask()
        await work.picker.ring()
        await asker.until(tries)

    (learnt,) = rows_of(fresh_database.superuser_dsn, "select model, calls, factor from token_factors")
    assert (learnt["model"], learnt["calls"]) == (MODEL, 1)
    assert learnt["factor"] > 1
