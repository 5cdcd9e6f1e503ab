"""`./dev faults`: breaks hango in every way we know and says what held. Exit 1 when something did not.

./dev faults                          all of them, one after the other
./dev faults kill-loop --minutes 10   some, for longer than they take by themselves
./dev faults --seed 7                 the same chances again
./dev faults --list                   their names
"""

from __future__ import annotations

import argparse
import asyncio
import random
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

from rich.console import Console

from tests.faults.catalogue import FAULTS
from tests.faults.machine import slowness
from tests.faults.report import show
from tests.faults.run import Run

WIDTH: Final = 120
SEEDS: Final = 1_000_000


def main(words: list[str]) -> int:
    asked = _read(words)
    console = Console(width=WIDTH, highlight=False)
    if asked.list:
        for name, fault in FAULTS.items():
            console.print(f"{name:20} {fault.row:4} {fault.title}", markup=False)
        return 0
    seed = asked.seed if asked.seed is not None else random.randrange(SEEDS)
    failed = [name for name in asked.names or FAULTS if not _run(name, seed, asked.minutes, console)]
    console.print(f"violated: {', '.join(failed)}" if failed else "all held", markup=False)
    return 1 if failed else 0


def _run(name: str, seed: int, minutes: float | None, console: Console) -> bool:
    """One fault in a folder of its own, which is kept when something did not hold."""
    fault = FAULTS[name]
    folder = Path(tempfile.mkdtemp(prefix=f"hango-faults-{name}-"))
    busy = slowness()
    began = time.monotonic()
    figures = asyncio.run(fault.show(Run(folder, seed, minutes, busy)))
    took = f"seed {seed}, {time.monotonic() - began:.0f} s, machine {busy:.1f} times slower than an idle one"
    show(f"{fault.row} {name}: {fault.title} ({took})", figures, console)
    holds = all(one.holds for one in figures)
    if holds:
        shutil.rmtree(folder, ignore_errors=True)
    else:
        console.print(f"its logs are in {folder}", markup=False)
    return holds


def _read(words: list[str]) -> argparse.Namespace:
    assert __doc__ is not None
    parser = argparse.ArgumentParser(prog="./dev faults", description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help="which to run; all without one")
    parser.add_argument("--minutes", type=float, help="how long each may go on, where that can be chosen")
    parser.add_argument("--seed", type=int, help="the chances of an earlier run")
    parser.add_argument("--list", action="store_true", help="print the names and what each shows")
    asked = parser.parse_args(words)
    if unknown := [name for name in asked.names if name not in FAULTS]:
        parser.error(f"there is no fault '{unknown[0]}'; --list prints their names.")
    return asked


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
