"""Tests that run longer or with more chances than in the suite, as processes of their own."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Sequence

from tests.faults.programs import ROOT
from tests.faults.report import Figure, exactly, told
from tests.faults.run import Run, Show


def tests_of(*words: str) -> Show:
    """A fault that is shown by pytest with these words."""

    async def show(run: Run) -> Sequence[Figure]:
        began = time.monotonic()
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *words),
            cwd=ROOT,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        said, _ = await process.communicate()
        (run.folder / "pytest.log").write_bytes(said)
        lines = said.decode(errors="replace").strip().splitlines() or ["nothing"]
        return [
            told("pytest said", lines[-1].strip("= ")),
            told("it took", f"{time.monotonic() - began:.0f} s"),
            exactly("exit code", process.returncode, 0),
        ]

    return show
