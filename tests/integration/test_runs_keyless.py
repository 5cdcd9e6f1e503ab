"""A worker without a provider's key that the API has: it says so, calls nothing and bills nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from hango.agent_definition import Compaction
from hango.config import Settings
from hango.domain import RunStatus
from hango.runs import RunError
from tests.picking import open_deps, picking
from tests.providers_server import FakeProvider
from tests.rows import make_tenant
from tests.run_desk import make_run_desk
from tests.tries import Ledger, ledger
from tests.working import logged

LONG = [f"This is number {n}, and it says much about drawers. " * 20 for n in range(1, 11)]


@pytest.mark.parametrize("texts", [["Where are the bolts?", "In drawer 3."], LONG], ids=["a call", "a summary first"])
async def test_a_run_that_this_worker_has_no_key_for(
    texts: Sequence[str], work_settings: Settings, fake: FakeProvider
) -> None:
    """It ends `internal`, with no call begun and nothing billed, and not as a context that would be refused; the log
    names the provider."""
    keyless = replace(work_settings, openai_base_url="https://api.openai.com/v1", openai_api_key=None)
    async with open_deps(work_settings) as deps:
        few = Compaction(trigger_tokens=300, keep_messages=3)
        desk = await make_run_desk(deps, await make_tenant(deps.store), texts, builtin=frozenset(), compaction=few)
        run_id = await desk.start()
        with logged() as lines:
            async with open_deps(keyless) as other, picking(other):
                run = await desk.until(run_id)
        left = await ledger(deps.store, desk.principal)

    assert (run.status, run.error, run.usage, fake.seen) == (RunStatus.FAILED, RunError.INTERNAL, None, [])
    assert left == Ledger(used=0, reserved=0)
    named = [(line["provider"], line["run_id"]) for line in lines() if line["event"] == "no_provider_key"]
    assert set(named) == {("openai", str(run_id))}
