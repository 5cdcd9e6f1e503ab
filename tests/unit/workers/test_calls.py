"""One call under one limit: whatever came first is its end, and nothing of it is left afterwards."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from uuid import UUID

import pytest

from hango.chain.tries import Prepared
from hango.domain import KeyID, Principal, Role, SessionID, TenantID, TryID, UserID
from hango.errors import ProviderFailed, ProviderFault, ProviderTimeout
from hango.messages import Message, MessageRole, Request, Response, StopReason, Usage, text_block
from hango.tries import Claimed
from hango.workers.calls import Ready, call
from hango.workers.held import Held, HeldJobs
from hango.workers.outcomes import Ended, Ending, Terms

RESPONSE = Response((text_block("Yes."),), StopReason.END_TURN, Usage(1, 1))
REQUEST = Request("m", (), (), (Message(MessageRole.USER, (text_block("And?"),)),), max_output_tokens=9)
Answer = Callable[[], Awaitable[Response]]


class Scripted:
    """A provider that does what the test says, and keeps the limit it was given."""

    def __init__(self, answer: Answer) -> None:
        self.answer = answer
        self.limits: list[float] = []

    async def complete(self, request: Request, *, deadline: float) -> Response:
        self.limits.append(deadline)
        return await self.answer()


def claimed(*, seconds: float = 20.0, attempt: int = 1) -> Claimed:
    return Claimed(
        principal=Principal(TenantID(UUID(int=1)), UserID(UUID(int=2)), KeyID(UUID(int=3)), Role.MEMBER),
        id=TryID(UUID(int=4)),
        session_id=SessionID(UUID(int=5)),
        request_id=UUID(int=6),
        batch_id=None,
        attempt=attempt,
        timeout_seconds=seconds,
        reserved=100,
        traceparent=None,
        created_at=datetime(2026, 11, 30, tzinfo=UTC),
    )


def ready(answer: Answer) -> Ready:
    prepared = Prepared(REQUEST, "offline", "offline/m", raw_tokens=1, overrides=0, excluded_tokens=0)
    return Ready(prepared, Scripted(answer), Terms("offline/m", 100, 9))


async def answers() -> Response:
    return RESPONSE


async def hangs() -> Response:
    await asyncio.Event().wait()
    raise AssertionError("nobody sets the event")


async def answers_when_told_to_end() -> Response:
    try:
        return await hangs()
    except asyncio.CancelledError:
        return RESPONSE


async def does_not_end_when_told() -> Response:
    try:
        return await hangs()
    except asyncio.CancelledError:
        return await hangs()


async def fails() -> Response:
    raise ProviderFailed(fault=ProviderFault.REFUSED)


async def test_the_adapter_gets_the_same_limit() -> None:
    """One deadline, around the call itself."""
    made = ready(answers)

    assert await call(Held(claimed(seconds=7.5)), made) == RESPONSE
    assert isinstance(made.completer, Scripted)
    assert made.completer.limits == [7.5]


async def test_an_adapter_that_forgets_its_limit_is_ended() -> None:
    """The limit is true for any adapter."""
    with pytest.raises(ProviderTimeout):
        await call(Held(claimed(seconds=0.05)), ready(hangs))


async def test_what_the_adapter_raises_is_the_end() -> None:
    """A provider's fault is passed on as it is."""
    with pytest.raises(ProviderFailed) as raised:
        await call(Held(claimed()), ready(fails))

    assert raised.value.fault is ProviderFault.REFUSED


@pytest.mark.parametrize("why", Ending)
async def test_a_wish_ends_the_call(why: Ending) -> None:
    """The end says who wanted it; the first wish stands."""
    held = Held(claimed())
    asyncio.get_running_loop().call_soon(held.end, why)
    asyncio.get_running_loop().call_soon(held.end, Ending.GIVEN_UP)

    with pytest.raises(Ended) as raised:
        await call(held, ready(hangs))

    assert raised.value.why is why


async def test_an_answer_in_the_last_moment_counts() -> None:
    """What was paid for is kept, though somebody has just cancelled it."""
    held = Held(claimed())
    asyncio.get_running_loop().call_later(0.01, held.end, Ending.CANCELLED)

    assert await call(held, ready(answers_when_told_to_end)) == RESPONSE


async def test_a_call_that_does_not_end_is_left_to_itself() -> None:
    """Clean-up takes no longer than its bound: the try ends though its connection does not."""
    held = Held(claimed())
    asyncio.get_running_loop().call_later(0.01, held.end, Ending.CANCELLED)

    with pytest.raises(Ended):
        await call(held, ready(does_not_end_when_told))


async def test_a_dropped_task_ends_its_call() -> None:
    """A worker that is told to stop at once leaves no call behind."""
    ended = asyncio.Event()

    async def tells() -> Response:
        try:
            return await hangs()
        finally:
            ended.set()

    task = asyncio.create_task(call(Held(claimed()), ready(tells)))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.wait([task])

    assert (task.cancelled(), ended.is_set()) == (True, True)


async def test_a_newer_claim_takes_the_place_of_an_older_one() -> None:
    """A try that was given up and claimed again is held as its newer claim, whatever becomes of the older one."""
    held_jobs = HeldJobs()
    older = held_jobs.take(claimed(attempt=1))
    newer = held_jobs.take(claimed(attempt=2))
    held_jobs.let_go(older)
    held = (list(held_jobs), held_jobs.get(newer.claimed.id))
    held_jobs.let_go(newer)

    assert held == ([newer], newer)
    assert (list(held_jobs), held_jobs.get(newer.claimed.id)) == ([], None)
