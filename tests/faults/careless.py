"""The control of the runs: a worker that writes a call down when it has its answer, as one writes it at first.

Killed during a call it leaves no trace of it: whoever takes the run over makes the call again, and pays for it in
silence. Whatever checks the product must find that out. All else is the product's own worker.
"""

from __future__ import annotations

import sys
from typing import Any

from hango.cli.main import main
from hango.store import run_calls


class _Undone(Exception):
    pass


def forget_calls_under_way() -> None:
    """Calls of this process are written down with their end."""
    begin, settle = run_calls.begin, run_calls.settle
    begun: dict[Any, tuple[Any, ...]] = {}

    async def begin_in_memory(scope: Any, *given: Any) -> Any:
        made: Any = None
        try:
            async with scope.attempt():
                made = await begin(scope, *given)
                raise _Undone
        except _Undone:
            begun[_id(made)] = given
        return made

    async def settle_at_once(scope: Any, call_id: Any, *ended: Any) -> Any:
        made = await begin(scope, *begun[call_id])
        return await settle(scope, _id(made), *ended)

    vars(run_calls).update(begin=begin_in_memory, settle=settle_at_once)


def _id(made: Any) -> Any:
    return getattr(made, "id", made)


if __name__ == "__main__":
    forget_calls_under_way()
    sys.argv = ["hango", "worker"]
    main()
