"""The worker as a child of `hango up`. Nobody waits until it is ready: tries do, in the queue."""

from __future__ import annotations

from hango.cli.child import Child


class WorkerProcess(Child):
    name = "the worker"
    word = "worker"
    module = ("hango", "worker")

    def arguments(self) -> list[str]:
        return ["--for-up"]
