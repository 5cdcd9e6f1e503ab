"""Every fault that `./dev faults` can show, by name: one literal table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from tests.faults.bombs import bombs
from tests.faults.cancels import cancels
from tests.faults.clocks import clocks
from tests.faults.control import control
from tests.faults.fairness import fairness
from tests.faults.kill_loop import kill_loop
from tests.faults.leaks import leaks
from tests.faults.lost_replies import lost_replies
from tests.faults.mutants import mutants
from tests.faults.oracle import oracle
from tests.faults.overload import overload
from tests.faults.postgres_away import postgres_away
from tests.faults.redis_away import redis_away
from tests.faults.run import Show
from tests.faults.runs import control as runs_control
from tests.faults.runs import runs
from tests.faults.slow_clients import slow_clients
from tests.faults.soak import soak
from tests.faults.states import states
from tests.faults.stops import at_once, orderly
from tests.faults.suite import by_pytest
from tests.faults.waits import waits
from tests.faults.zombie import zombie


@dataclass(frozen=True, slots=True)
class Fault:
    """`row` is its place in docs/faults.md."""

    row: str
    title: str
    show: Show


POISON: Final = ("tests/integration/test_broker.py", "tests/integration/test_worker_process.py")
PROVIDERS: Final = (
    "tests/integration/test_workers.py",
    "tests/unit/chain/providers/test_complete_faults.py",
    "tests/unit/chain/providers/test_mutated_answers.py",
)
ZERO_INVALID: Final = ("tests/unit/chain/test_zero_invalid.py", "--hypothesis-profile", "deep", "-n", "2")

FAULTS: Final[Mapping[str, Fault]] = {
    "kill-loop": Fault("F1", "everything killed again and again under load", kill_loop),
    "control": Fault("F2", "the checks find out a naive worker", control),
    "states": Fault("F3", "every order of events in the life of a try", states),
    "mutants": Fault("F4", "each missing guard of a statement is found out", mutants),
    "lost-replies": Fault("F5", "replies of Valkey and PostgreSQL that never arrive", lost_replies),
    "redis-away": Fault("F6", "Valkey killed, wiped, silent, full, read-only, slow", redis_away),
    "postgres-away": Fault(
        "F7", "PostgreSQL crashed, restarted, silent, locked, full; sessions dropped", postgres_away
    ),
    "poison": Fault("F8", "messages that are none, before, between and after good ones", by_pytest(*POISON)),
    "providers": Fault("F9", "providers that hang, drip, flood, cut and lie", by_pytest(*PROVIDERS)),
    "orderly-stop": Fault("F10", "workers told to end while they work", orderly),
    "sudden-stop": Fault("F11", "workers told twice", at_once),
    "clocks": Fault("F12", "processes whose clocks are wrong", clocks),
    "zombie": Fault("F13", "a worker frozen for longer than its lease", zombie),
    "cancels": Fault("F14", "cancels at any moment, workers killed meanwhile", cancels),
    "waits": Fault("F15", "500 waiting requests, leaving, killed and cut off", waits),
    "runs": Fault("F16", "runs with tools while everything is killed again and again", runs),
    "runs-control": Fault("F17", "the checks of runs find out a careless worker", runs_control),
    "soak": Fault("L2", "a steady load; memory and files stay where they are", soak),
    "fairness": Fault("L4", "three tenants behind 10,000 waiting tries of another", fairness),
    "overload": Fault("L5", "more POSTs than can be taken on", overload),
    "oracle": Fault("S2", "the time of a 404 tells nothing", oracle),
    "slow-clients": Fault("S19", "clients that send a byte now and then", slow_clients),
    "bombs": Fault("S16", "bodies that are made to cost much", bombs),
    "leaks": Fault("K1", "content and keys are where they belong alone", leaks),
    "zero-invalid": Fault("Z0", "ten thousand made histories and sets, no invalid request", by_pytest(*ZERO_INVALID)),
}
