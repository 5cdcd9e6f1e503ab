"""One worker process: doorbells come in on a few threads, the calls run on one loop, and the end is orderly."""

from __future__ import annotations

import asyncio
import gc
import signal
from typing import Final

import dramatiq
import uvloop
from dramatiq.asyncio import EventLoopThread, set_event_loop_thread
from dramatiq.broker import Broker
from dramatiq.middleware import AsyncIO

from hango import __version__, logs, telemetry
from hango.config import Settings
from hango.errors import Unavailable
from hango.logs import Log
from hango.telemetry import Metric
from hango.workers.broker import BlockingRedisBroker, make_broker
from hango.workers.encoder import DOORBELL, POISON, QUEUE
from hango.workers.resources import MakePicker, Picker, open_resources

PROCESS: Final = "worker"
# A doorbell takes as long as one look into PostgreSQL. The calls themselves need no thread.
DOORBELL_THREADS: Final = 4
# How long a thread may sleep before it notices that the process ends.
NOTICE_MS: Final = 250
END_OF_THREADS_MS: Final = 10_000
# After the last byte of a model: to write the answer down, through a short absence of PostgreSQL.
SETTLE_SECONDS: Final = 30.0


def run(settings: Settings, make_picker: MakePicker, *, settle_seconds: float = SETTLE_SECONDS) -> None:
    """Work until SIGTERM or SIGINT, then end the calls under way; a second signal ends the process at once.

    Raises HangoError where a service is not named or PostgreSQL cannot be reached. A Redis that is away is waited for.
    """
    logs.setup(settings)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(work(settings, make_picker, settle_seconds))


async def work(settings: Settings, make_picker: MakePicker, settle_seconds: float) -> None:
    told = end_once()
    async with open_resources(settings) as resources:
        assert settings.redis_url is not None, "resources are open"
        picker = make_picker(resources)
        broker = make_broker(settings.redis_url.reveal(), [LoopOfProcess(asyncio.get_running_loop())])
        add_jobs(broker, picker)
        worker = dramatiq.Worker(broker, worker_threads=DOORBELL_THREADS, worker_timeout=NOTICE_MS)
        worker.start()
        gc.freeze()
        logs.info(Log.STARTED, process=PROCESS, version=__version__)
        await told.wait()
        await asyncio.to_thread(worker.stop, END_OF_THREADS_MS)
        broker.client.close()
        # What rang here in the last moment may have found nobody: another worker is to look.
        await resources.doorbell.ring()
        try:
            async with asyncio.timeout(settings.context_try_timeout + settle_seconds):
                await picker.stop()
        except TimeoutError as error:
            logs.error(Log.UNEXPECTED, error, process=PROCESS)
    logs.info(Log.STOPPED, process=PROCESS)


def end_once() -> asyncio.Event:
    """Set at the first SIGTERM or SIGINT; from then on these signals have their usual effect."""
    told = asyncio.Event()
    loop = asyncio.get_running_loop()
    signs = (signal.SIGTERM, signal.SIGINT)

    def end() -> None:
        for sign in signs:
            loop.remove_signal_handler(sign)
            signal.signal(sign, signal.SIG_DFL)
        told.set()

    for sign in signs:
        loop.add_signal_handler(sign, end)
    return told


def add_jobs(broker: BlockingRedisBroker, picker: Picker) -> None:
    """Every job that a message may name. They end well whatever happens: nobody would repeat one."""

    @dramatiq.actor(broker=broker, queue_name=QUEUE, actor_name=DOORBELL)
    async def doorbell() -> None:
        try:
            await picker.ring()
        except Unavailable as error:
            logs.warning(Log.UNAVAILABLE, error, process=PROCESS)
        except Exception as error:
            logs.error(Log.UNEXPECTED, error, process=PROCESS)

    @dramatiq.actor(broker=broker, queue_name=QUEUE, actor_name=POISON)
    def poison(fingerprint: str, size: int) -> None:
        telemetry.count(Metric.POISON, {})
        logs.warning(Log.POISON, process=PROCESS, fingerprint=fingerprint, bytes=size)


class LoopOfProcess(AsyncIO):
    """Dramatiq's AsyncIO on the loop of the process: calls outlive the worker's threads, and end in order."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__()
        self._loop = loop

    def before_worker_boot(self, broker: Broker, worker: dramatiq.Worker) -> None:
        there = EventLoopThread(self.logger)
        there.loop.close()
        there.loop = self._loop
        set_event_loop_thread(there)

    def after_worker_shutdown(self, broker: Broker, worker: dramatiq.Worker) -> None:
        set_event_loop_thread(None)
