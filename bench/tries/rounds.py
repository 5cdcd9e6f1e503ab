"""What is measured of tries: the product, the stock way and a plain script in turn, against one model server."""

from __future__ import annotations

import sys
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from statistics import median

from bench.goals import Key
from bench.place import Client
from bench.tries import goals, model
from bench.tries.place import INSTANT, Place, opened
from bench.tries.product import Product, most_mib

PAUSE_SECONDS = 1.0
IDLE_TRIES = 20  # of a round
SEQUENCE_TRIES = 50
BATCH, AT_ONCE = 1_000, 16
FLIGHT, FLIGHT_MS = 512, 2_000
QUEUED, QUEUED_MS, NEIGHBOUR_TRIES = 10_000, 200, 5
WARM = 30

Values = defaultdict[Key, list[float]]


class Measurement:
    """`runs`: milliseconds of each run; `rounds`: one value a round."""

    def __init__(self, rounds: int) -> None:
        self._rounds = rounds
        self.runs: Values = defaultdict(list)
        self.rounds: Values = defaultdict(list)

    def all(self) -> None:
        with opened() as place:
            product = Product(place)
            self._single(place, product)
            self._in_flight(place, product)
            self._neighbours(place, product)

    def _single(self, place: Place, product: Product) -> None:
        """One try at a time, and a batch, with the worker's own settings."""
        tenant = place.tenants[0]
        contestants: dict[str, Callable[[], object]] = {
            "plain": lambda: _call(place.plain),
            "product": lambda: product.one(tenant),
            "stock": lambda: _call(place.stock),
        }
        with place.worker() as worker:
            product.one(tenant)
            assert worker.pid is not None
            at_start = most_mib(worker.pid)
            for run in contestants.values():
                for _ in range(WARM):
                    run()
            calls = product.calls()["calls"]
            for _ in self._each_round("one at a time, and a batch"):
                self._after_a_pause(contestants)
                for name, run in contestants.items():
                    self._take(Key(name, goals.SEQUENCE), [_ms(run) for _ in range(SEQUENCE_TRIES)])
                for name, batch in {
                    "plain": lambda: _call(place.plain, BATCH),
                    "product": lambda: self._batch(product),
                    "stock": lambda: _call(place.stock, BATCH),
                }.items():
                    self.rounds[Key(name, goals.BATCH)].append(BATCH / (_ms(batch) / 1000))
                self.rounds[Key("product", goals.MEMORY_IDLE)].append(at_start)
            made = self._rounds * len(contestants) * (IDLE_TRIES + SEQUENCE_TRIES + BATCH)
            called = product.calls()["calls"] - calls
            assert called == made, f"{made} tries made {called} calls"

    def _after_a_pause(self, contestants: dict[str, Callable[[], object]]) -> None:
        """Each rests while the others take their turns."""
        times: Values = defaultdict(list)
        for _ in range(IDLE_TRIES):
            for name, run in contestants.items():
                time.sleep(PAUSE_SECONDS / len(contestants))
                times[Key(name, goals.IDLE)].append(_ms(run))
        for key, found in times.items():
            self._take(key, found)
            self.rounds[Key(key.contestant, goals.SLOWEST)].append(sorted(found)[(len(found) * 95 - 1) // 100])

    def _batch(self, product: Product) -> None:
        batch_id = product.batch(product.place.tenants[0], BATCH)
        writers = product.writers(batch_id)
        assert writers == 1, f"a batch was accepted in {writers} transactions"

    def _in_flight(self, place: Place, product: Product) -> None:
        tenant = place.tenants[0]
        with place.worker(worker_threads=FLIGHT, context_try_tenant_running=FLIGHT) as worker:
            product.one(tenant)
            assert worker.pid is not None
            for _ in self._each_round(f"{FLIGHT} calls in flight"):
                plain = _ms(lambda: _call(place.plain, FLIGHT, FLIGHT_MS, at_once=FLIGHT))
                self.rounds[Key("plain", goals.FLIGHT)].append(plain / FLIGHT_MS)
                batch_id = product.batch(tenant, FLIGHT, FLIGHT_MS)
                seconds = product.seconds_in_worker(batch_id)
                self.rounds[Key("product", goals.FLIGHT)].append(seconds * 1000 / FLIGHT_MS)
                self.rounds[Key("product", goals.MEMORY)].append(most_mib(worker.pid))

    def _neighbours(self, place: Place, product: Product) -> None:
        """One tenant fills every slot of the worker and queues thousands; the other one sends a try now and then."""
        busy, other = place.tenants
        with place.worker(worker_threads=AT_ONCE, context_try_tenant_running=AT_ONCE):
            product.one(other, QUEUED_MS)
            alone = median(_ms(lambda: product.one(other, QUEUED_MS)) for _ in range(NEIGHBOUR_TRIES))
            batches = [str(product.queue(busy, BATCH, QUEUED_MS)["id"]) for _ in range(QUEUED // BATCH)]
            for _ in self._each_round(f"beside {QUEUED:,} queued"):
                times = [_ms(lambda: product.one(other, QUEUED_MS)) for _ in range(NEIGHBOUR_TRIES)]
                self.rounds[Key("product", goals.NEIGHBOUR)].append((median(times) - alone) / QUEUED_MS)
            for batch_id in batches:
                product.cancel(busy, batch_id)

    def _each_round(self, what: str) -> Sequence[int]:
        print(f"bench: {self._rounds} rounds of tries, {what}", file=sys.stderr)
        return range(self._rounds)

    def _take(self, key: Key, times: Sequence[float]) -> None:
        self.runs[key] += times
        self.rounds[key].append(median(times))


def _call(client: Client, count: int = 1, milliseconds: int = 0, *, at_once: int = AT_ONCE) -> None:
    asked = {"model": model.name(milliseconds) if milliseconds else INSTANT}
    if count == 1:
        client.ask("POST", "/one", asked)
    else:
        client.ask("POST", "/many", asked | {"count": count, "at_once": at_once})


def _ms(run: Callable[[], object]) -> float:
    before = time.perf_counter()
    run()
    return (time.perf_counter() - before) * 1000
