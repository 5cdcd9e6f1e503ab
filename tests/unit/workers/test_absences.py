"""Work goes on after an absence of PostgreSQL: until it is done, somebody wants it ended, or it has lasted too long."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from uuid import UUID, uuid4

import pytest

from hango.domain import KeyID, Principal, Role, TenantID, UserID
from hango.errors import Unavailable
from hango.workers.absences import again
from hango.workers.held import Held
from hango.workers.outcomes import Ending

SOON = 0.25
ANYBODY = Principal(TenantID(uuid4()), UserID(uuid4()), KeyID(uuid4()), Role.MEMBER)


@dataclass(frozen=True)
class Job:
    id: UUID = field(default_factory=uuid4)
    attempt: int = 1
    principal: Principal = ANYBODY


def away(times: int) -> tuple[Callable[[], Awaitable[str]], list[str]]:
    """Work that fails so often before it is done, and what was tried."""
    tried: list[str] = []

    async def act() -> str:
        tried.append("failed" if len(tried) < times else "done")
        if tried[-1] == "failed":
            raise Unavailable("The database is away.")
        return "done"

    return act, tried


async def test_it_goes_on_when_postgres_is_back() -> None:
    """Failures are tried again, and what is done is not."""
    act, tried = away(2)

    assert await again(Held(Job()), 10.0, act) == "done"
    assert tried == ["failed", "failed", "done"]


async def test_it_gives_up_in_the_end() -> None:
    """After so many seconds of nothing but failures the last one is raised."""
    act, tried = away(1000)
    began = asyncio.get_running_loop().time()

    with pytest.raises(Unavailable):
        await again(Held(Job()), SOON, act)

    assert asyncio.get_running_loop().time() - began > SOON
    assert 2 < len(tried) < 10


async def test_it_does_not_outlive_its_claim() -> None:
    """Once its job shall end, a failure is the last one."""
    act, tried = away(1000)
    held = Held(Job())
    held.end(Ending.GIVEN_UP)

    with pytest.raises(Unavailable):
        await again(held, 10.0, act)

    assert tried == ["failed"]


async def test_the_end_of_the_process_ends_a_pause() -> None:
    """It is tried again at once, so that the work can see that it shall be given back."""
    held = Held(Job())
    tried = 0

    async def act() -> None:
        nonlocal tried
        tried += 1
        if tried == 1:
            held.leave()
            raise Unavailable("The database is away.")

    await again(held, 10.0, act)

    assert tried == 2


async def test_other_failures_are_raised_at_once() -> None:
    """Only an absence passes."""
    tried = 0

    async def act() -> None:
        nonlocal tried
        tried += 1
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await again(Held(Job()), 10.0, act)

    assert tried == 1
