"""A small real model behind an HTTP server that speaks OpenAI's protocol: the process of `hango up --demo-model`.

    python -m hango.cli.model_server WEIGHTS PORT

It listens on this machine alone, and ends by a signal. What it is asked stands in no log.
"""

from __future__ import annotations

import os
import signal
import sys

WINDOW = 4096  # tokens of a call; stands in the table of models too
AT_ONCE = 2
WARNINGS = 2  # the level of its log
MOST_CACHE_MIB = 64  # of prompts that were read; gigabytes by default


def main(weights: str, port: str) -> None:
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = weights
    params.verbosity = WARNINGS
    params.cache_ram_mib = MOST_CACHE_MIB
    params.n_ctx = WINDOW * AT_ONCE
    params.n_parallel = AT_ONCE
    params.warmup = False
    # Half of the processors, and asleep while they wait: the API and the worker need some too.
    for cpu in (params.cpuparams, params.cpuparams_batch):
        cpu.n_threads = max(1, (os.cpu_count() or 2) // 2)
        cpu.poll = 0
    params.hostnames = ["127.0.0.1"]
    params.port = int(port)
    params.ui = False
    params.endpoint_slots = False  # it shows what others ask
    params.cors_origins = "http://127.0.0.1"  # no page of somebody else's
    server = xllamacpp.Server(params)  # ends when nobody holds it
    print("listening at", server.listening_address, flush=True)  # noqa: T201  its log
    signal.pause()


if __name__ == "__main__":
    main(*sys.argv[1:])
