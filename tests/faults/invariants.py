"""What must hold of tries whatever happened to the processes around them: the rules I1 to I8 of docs/faults.md.

Some are statements that find the rows which break them (invariants.sql), the others are comparisons of the rows with
what the provider and the clients saw. To be asked when nothing is under way any more.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import psycopg

from tests.faults import canaries
from tests.faults.callers import Accepted
from tests.faults.canaries import Search
from tests.faults.provider import marks_of
from tests.faults.report import Figure, none_of
from tests.faults.stage import Stage

RULE: Final = re.compile(r"^-- rule: (.+)\n((?:(?!--).*\n)+)", re.MULTILINE)
STORED: Final = """
select
  t.id, t.status, t.called_at is not null, t.attempt, t.rescues, t.deferrals, r.texts,
  extract(epoch from t.finished_at - t.created_at)::float8,
  exists (select from usage_records u where u.tenant_id = t.tenant_id and u.try_id = t.id)
from tries t
join try_requests r on r.tenant_id = t.tenant_id and r.id = t.request_id
"""


@dataclass(frozen=True, slots=True)
class Stored:
    """A try as it stands in the database, with the mark that its provider saw."""

    id: str
    mark: str
    status: str
    called: bool
    attempt: int
    rescues: int
    deferrals: int
    seconds: float | None  # from its POST to its end
    billed: bool


def read_tries(stage: Stage) -> list[Stored]:
    return [
        Stored(str(id), _mark(texts), status, called, attempt, rescues, deferrals, seconds, billed)
        for id, status, called, attempt, rescues, deferrals, texts, seconds, billed in rows(stage, STORED)
    ]


def rows(stage: Stage, statement: str, *given: object) -> list[tuple[Any, ...]]:
    """As superuser, past every proxy."""
    with psycopg.connect(stage.database_url) as connection:
        return connection.execute(statement.encode(), given).fetchall()


async def until_over(stage: Stage, seconds: float) -> float:
    """Wait until no try is under way; how long that took. It gives up after `seconds`: rule I2 tells then."""
    return await until(stage, "select from tries where finished_at is null", seconds)


async def until(stage: Stage, left: str, seconds: float) -> float:
    """Wait until nothing is left of what the statement finds, for at most `seconds`; how long that took."""
    began = time.monotonic()
    while time.monotonic() - began < seconds:
        with suppress(psycopg.OperationalError):
            if not await asyncio.to_thread(rows, stage, f"{left} limit 1"):
                break
        await asyncio.sleep(0.1)
    return time.monotonic() - began


def check(stage: Stage, accepted: Iterable[Accepted]) -> list[Figure]:
    """Every rule, on the whole database."""
    stored = read_tries(stage)
    ids, billed = {one.id for one in stored}, {one.mark for one in stored if one.billed}
    calls = stage.provider.calls
    taken_twice = [mark for mark, seen in calls.items() if seen.taken > 1]
    unbilled = [mark for mark, seen in calls.items() if seen.taken and mark not in billed]
    found = [
        none_of("I1 accepted tries that are not there", [one.id for one in accepted if str(one.id) not in ids]),
        none_of("I1 repeated POSTs that made another try", [mark for one in stage.callers for mark in one.doubled]),
        none_of("I3 tries whose call was taken more than once", taken_twice),
        none_of("I4 tries whose call was taken and not billed", unbilled),
        none_of("I8 places with content or keys", leaks(stage)),
        *(none_of(name, [row[0] for row in rows(stage, statement)]) for name, statement in _rules()),
    ]
    return sorted(found, key=lambda figure: figure.what[:2])


def leaks(stage: Stage) -> list[str]:
    """Content and secrets in Valkey, and in the logs of every process."""
    words = {
        "a message": canaries.MESSAGE,
        "an override": canaries.OVERRIDE,
        "the provider's key": canaries.PROVIDER_KEY,
    }
    keys = {f"the key of tenant {number}": one.key for number, one in enumerate(stage.callers)}
    search = Search({**words, **keys})
    logs = [one.log_file for one in stage.programs.values()] + [stage.postgres.log_file, stage.valkey.log_file]
    return search.in_files(logs) + [f"{name} in Valkey" for name in search.found(canaries.dump(stage.redis()))]


def _rules() -> Iterator[tuple[str, str]]:
    text = Path(__file__).with_suffix(".sql").read_text()
    yield from ((found[1], found[2]) for found in RULE.finditer(text))


def _mark(texts: str | None) -> str:
    found = marks_of(texts or "")
    return found[-1] if found else ""
