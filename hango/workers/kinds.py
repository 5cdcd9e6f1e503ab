"""The kinds of jobs that a worker does, as one table: how each is claimed, kept and seen to its end."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any
from uuid import UUID

from hango.chain.deps import Deps
from hango.store import claims, run_queue
from hango.store.connection import SystemScope
from hango.workers import runs, tries
from hango.workers.held import Held
from hango.workers.leases import Renew
from hango.workers.together import Together

# What was claimed, and whether there may be more.
Claim = Callable[..., Awaitable[tuple[Sequence[Any], bool]]]


@dataclass(frozen=True, slots=True)
class Kind:
    """`see_through` returns after how many seconds a job that was given back may be claimed again, None for others."""

    name: str
    claim: Claim
    renew: Renew
    see_through: Callable[[Held[Any]], Awaitable[float | None]]


def kinds(deps: Deps, together: Together) -> tuple[Kind, ...]:
    """Of one process. Runs go first: a person waits for each."""
    return (
        Kind("run", _runs, run_queue.renew, partial(runs.see_through, deps)),
        Kind("try", _tries, claims.renew, partial(tries.see_through, deps, together)),
    )


async def _runs(scope: SystemScope, owner: UUID, **limits: Any) -> tuple[Sequence[Any], bool]:
    found = await run_queue.claim(scope, owner, **limits)
    return found, bool(found)


async def _tries(scope: SystemScope, owner: UUID, **limits: Any) -> tuple[Sequence[Any], bool]:
    pick = await claims.claim(scope, owner, **limits)
    return pick.claimed, pick.more
