"""People who talk with agents: in each session one run after the other, until they are told to stop."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable
from typing import Final
from uuid import UUID, uuid4

from tests.faults.callers import AWAY, PAUSE_SECONDS, Accepted, Caller
from tests.faults.provider import Act
from tests.faults.stage import MODELS, Stage

OPEN: Final = frozenset({"queued", "running"})
MOST_TOOLS: Final = 4
CANCELLED_SHARE: Final = 0.05
LIMITED_SHARE: Final = 0.1
WAIT_SECONDS: Final = 5
PATIENCE_SECONDS: Final = 120.0


def drawn(rng: random.Random) -> Act:
    """A run of some tools whose calls take a while."""
    do = "run_limited" if rng.random() < LIMITED_SHARE else "run"
    return Act(do, rng.choice([0.05, 0.3, 0.8]), rng.randint(0, MOST_TOOLS), _mark(rng))


async def sessions(stage: Stage, each: int) -> list[tuple[Caller, str]]:
    """So many sessions of each tenant, with an agent that has files and subagents."""
    made = []
    for number, caller in enumerate(stage.callers):
        fields = {"name": "clerk", "model": MODELS[number % len(MODELS)], "builtin": ["filesystem", "subagent"]}
        agent = await caller.call("POST", "/v1/agents", fields)
        for _ in range(each):
            session = await caller.call("POST", "/v1/sessions", {"agent_id": agent["id"]})
            made.append((caller, str(session["id"])))
    return made


async def talk(caller: Caller, session_id: str, rng: random.Random, is_over: Callable[[], bool]) -> list[Accepted]:
    """One run after the other; now and then one is cancelled."""
    done = []
    while not is_over():
        accepted = await start(caller, session_id, drawn(rng))
        if accepted is None:
            continue
        done.append(accepted)
        if rng.random() < CANCELLED_SHARE:
            await asyncio.sleep(rng.random())
            await _ask(caller, "POST", f"/v1/runs/{accepted.id}/cancel")
        await ended(caller, accepted)
    return done


async def start(caller: Caller, session_id: str, act: Act) -> Accepted | None:
    """A run that is sent again with the same key until it is accepted; None when another one is in its way."""
    key, end = uuid4().hex, time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < end:
        found = await _ask(caller, "POST", f"/v1/sessions/{session_id}/runs", {"message": act.text}, key=key)
        if found is not None and found[0] in {200, 202}:
            accepted = Accepted(UUID(str(found[1]["id"])), act.mark, 0.0, 0)
            known = caller.accepted.setdefault(act.mark, accepted)
            if known.id != accepted.id:
                caller.doubled.append(act.mark)
            return known
        await asyncio.sleep(PAUSE_SECONDS)
        if found is not None and found[0] == 409:
            return None
    return None


async def ended(caller: Caller, accepted: Accepted) -> str:
    """The status that it ended with; of one that did not, the last one that was seen."""
    end, status = time.monotonic() + PATIENCE_SECONDS, "never seen"
    while time.monotonic() < end:
        found = await _ask(caller, "GET", f"/v1/runs/{accepted.id}?wait={WAIT_SECONDS}")
        if found is None or found[0] != 200:
            await asyncio.sleep(PAUSE_SECONDS)
            continue
        if (status := str(found[1]["status"])) not in OPEN:
            break
    return status


async def _ask(
    caller: Caller, method: str, path: str, body: dict[str, str] | None = None, *, key: str | None = None
) -> tuple[int, dict[str, object]] | None:
    """Status and answer; None when nobody answered. What was no answer is counted."""
    try:
        status, reply, _ = await caller.ask(method, path, body, key=key)
    except AWAY as error:
        caller.met[type(error).__name__] += 1
        return None
    if status >= 400:
        caller.met[str(status)] += 1
    return status, reply


def _mark(rng: random.Random) -> str:
    return f"{rng.getrandbits(128):032x}"
