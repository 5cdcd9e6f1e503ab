"""What is measured of runs: turns with a tool each on a model that answers at once, beside its bare calls."""

from __future__ import annotations

import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import datetime
from statistics import median
from typing import Any

import psycopg

from bench import conversation
from bench.goals import Key
from bench.place import Client, api_process, load, make_session
from bench.runs.goals import BARE, MESSAGES, OVERHEAD, TURN, TURNS
from bench.tries import model
from bench.tries.place import Services, serving

NAME = model.name(0, TURNS)
WAIT_SECONDS = 60
RUNS = 3  # of a round
ROWS = f'["openai/{model.PREFIX}"]\nwindow = 1_000_000\n'  # nothing is summarized

Values = defaultdict[Key, list[float]]


@dataclass(frozen=True, slots=True)
class Place:
    """`body` is a request of the run's size, for the bare calls."""

    services: Services
    client: Client
    agent_id: str
    model: Client
    body: dict[str, Any]

    def session(self) -> str:
        """A new one: a run makes its session longer."""
        return make_session(self.client, self.agent_id, MESSAGES)


class Measurement:
    """`runs`: milliseconds of each run; `rounds`: one value a round."""

    def __init__(self, rounds: int) -> None:
        self._rounds = rounds
        self.runs: Values = defaultdict(list)
        self.rounds: Values = defaultdict(list)

    def all(self) -> None:
        with opened() as place, place.services.worker():
            _run(place)
            for number in range(self._rounds):
                print(f"bench: round {number + 1} of {self._rounds} of runs", file=sys.stderr)
                turns, bare = [], []
                for _ in range(RUNS):
                    turns.append(_run(place))
                    bare.append(median(_bare(place) for _ in range(TURNS)))
                self._take(TURN, turns)
                self._take(BARE, bare)
                self.rounds[Key("product", OVERHEAD, MESSAGES)].append(median(turns) - median(bare))

    def _take(self, case: str, times: list[float]) -> None:
        key = Key("product" if case == TURN else "plain", case, MESSAGES)
        self.runs[key] += times
        self.rounds[key].append(median(times))


@contextmanager
def opened() -> Iterator[Place]:
    """Everything but the worker runs and is loaded at the start of the block; nothing of it is left after it."""
    with ExitStack() as ends:
        services = ends.enter_context(serving())
        rows = services.folder / "models.toml"
        rows.write_text(ROWS)
        services.settings["HANGO_MODELS"] = str(rows)
        url = ends.enter_context(api_process(services.settings, services.folder)).url
        made = load(url, services.settings, [MESSAGES], model=f"openai/{NAME}")
        client = Client(url, made["api_key"])
        with psycopg.connect(services.superuser_url, autocommit=True) as connection:
            connection.execute("vacuum analyze")
        path = f"/v1/sessions/{made['sessions'][str(MESSAGES)]}/context/preview?format=provider"
        body = client.ask_json("POST", path, {"message": conversation.LAST_WORDS})["request"]
        yield Place(services, client, made["agent_id"], Client(services.model_url), body)


def _run(place: Place) -> float:
    """Milliseconds of a turn, by the database's clock, from the claim of a run to its end."""
    session_id, calls = place.session(), _calls(place)
    asked = {"message": conversation.LAST_WORDS}
    found = place.client.ask_json("POST", f"/v1/sessions/{session_id}/runs", asked, wait=WAIT_SECONDS)
    assert (found["status"], found["turns"]) == ("succeeded", TURNS), found
    made = _calls(place) - calls
    assert made == TURNS, f"a run of {TURNS} turns made {made} calls"
    last = place.client.ask_json("GET", f"/v1/sessions/{session_id}/messages?after={MESSAGES}&limit=500")["data"]
    assert len(last) == 2 * TURNS, f"a run of {TURNS} turns left {len(last)} messages"
    lasted = datetime.fromisoformat(found["finished_at"]) - datetime.fromisoformat(found["started_at"])
    return lasted.total_seconds() * 1000 / TURNS


def _bare(place: Place) -> float:
    """Milliseconds of one call of the model with a request as long as the run's."""
    before = time.perf_counter()
    place.model.ask("POST", "/v1/chat/completions", place.body)
    return (time.perf_counter() - before) * 1000


def _calls(place: Place) -> int:
    return int(place.model.ask_json("GET", "/calls")["calls"])
