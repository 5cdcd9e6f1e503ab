"""Runs as they stand in the database when all is over, held against what the provider saw of them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Final

import psycopg

from tests.faults import run_script
from tests.faults.callers import Accepted
from tests.faults.invariants import broken_rules, leaks, rows
from tests.faults.provider import CountingProvider, turn_of
from tests.faults.report import Figure, none_of
from tests.faults.stage import Stage

RUNS: Final = """
select
  r.id, r.status, r.error_code, r.turns, r.attempt, extract(epoch from r.finished_at - r.created_at)::float8,
  (select count(*) from run_calls c where c.tenant_id = r.tenant_id and c.run_id = r.id),
  (select count(*) from run_calls c where c.tenant_id = r.tenant_id and c.run_id = r.id and c.stop_reason is not null)
from runs r
order by r.id
"""
SAID: Final = """
select m.run_id, m.role, b.content
from messages m
join message_bodies b on b.tenant_id = m.tenant_id and b.session_id = m.session_id and b.seq = m.seq
where m.run_id is not null
order by m.tenant_id, m.session_id, m.seq
"""
FILES: Final = "select path, version from files"


@dataclass(slots=True)
class StoredRun:
    """`said` is what it appended, with the user's words that started it."""

    id: str
    status: str
    error: str | None
    turns: int
    attempts: int
    seconds: float | None  # from its POST to its end
    calls: int
    answered: int
    said: list[tuple[str, list[dict[str, Any]]]] = field(default_factory=list)

    @property
    def asked(self) -> tuple[str, int]:
        """Its mark and the number of tools that it wanted."""
        found = run_script.MARK.search(self.said[0][1][0]["text"])
        assert found is not None
        return found[1], int(found[4])


def read_runs(stage: Stage) -> list[StoredRun]:
    found = {str(id): StoredRun(str(id), *more) for id, *more in rows(stage, RUNS)}
    for run_id, role, content in rows(stage, SAID):
        found[str(run_id)].said.append((role, json.loads(content)))
    return [*found.values()]


def taken(provider: CountingProvider, run: StoredRun) -> int:
    """How many of its calls the provider took."""
    mark, tools = run.asked
    names = [turn_of(mark, turn) for turn in range(tools + 1)] + [run_script.mark_of_task(mark)]
    return sum(provider.calls[name].taken for name in names if name in provider.calls)


def check_runs(stage: Stage, accepted: Iterable[Accepted]) -> list[Figure]:
    """Every rule, on the whole database."""
    runs, calls = read_runs(stage), stage.provider.calls
    ids, saw = {run.id for run in runs}, {run.id: taken(stage.provider, run) for run in runs}
    versions: dict[str, int] = dict(rows(stage, FILES))
    succeeded = [run for run in runs if run.status == "succeeded"]
    with psycopg.connect(stage.database_url) as connection:
        broken = broken_rules(connection)
    found = [
        none_of("I1 accepted runs that are not there", [one.id for one in accepted if str(one.id) not in ids]),
        none_of("I1 repeated POSTs that made another run", [mark for one in stage.callers for mark in one.doubled]),
        none_of("I3 calls that were taken more than once", [name for name, seen in calls.items() if seen.taken > 1]),
        none_of("I4 runs of which more calls were taken than billed", [r.id for r in runs if saw[r.id] > r.calls]),
        none_of("I4 runs with an answer of no call", [run.id for run in runs if run.answered > saw[run.id]]),
        none_of("I8 places with content or keys", leaks(stage)),
        none_of("I9 files that were written twice", [path for path, version in versions.items() if version > 1]),
        none_of("I9 runs that succeeded and left something out", [r.id for r in succeeded if not _whole(r, versions)]),
        none_of("I9 histories with a result too many or too few", _unpaired(runs)),
        *(none_of(name, breaking) for name, breaking in broken.items()),
    ]
    return sorted(found, key=lambda figure: figure.what[:2])


def _whole(run: StoredRun, versions: dict[str, int]) -> bool:
    mark, tools = run.asked
    return run.turns == tools + 1 and all(path in versions for path in run_script.files_of(mark, tools))


def _unpaired(runs: list[StoredRun]) -> list[str]:
    """Runs in which a call of a tool has not one result, right after it; at the very end of one that failed it may
    have none, and no result is of no call."""
    wrong = []
    for run in runs:
        ends_well = run.status == "succeeded"
        for at, (_, blocks) in enumerate(run.said):
            asked = sorted(one["id"] for one in blocks if one["type"] == "tool_use")
            after = run.said[at + 1][1] if at + 1 < len(run.said) else []
            answered = sorted(one["tool_use_id"] for one in after if one["type"] == "tool_result")
            is_cut = not after and not ends_well
            if asked != answered and not is_cut:
                wrong.append(run.id)
    return wrong


def ends(runs: Iterable[StoredRun]) -> Counter[str]:
    return Counter(run.status if run.error is None else f"{run.status}: {run.error}" for run in runs)
