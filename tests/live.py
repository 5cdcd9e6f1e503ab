"""A live API on a port of this machine, in a thread of the test's process."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import httpx2
import uvicorn

from hango.api.app import create_app
from hango.api.patience import Patient
from hango.cli.api_process import url_of
from hango.config import Settings


@contextmanager
def serving(settings: Settings) -> Iterator[str]:
    """Its address, for the time of the block."""
    started = threading.Event()

    class Server(uvicorn.Server):
        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets)
            started.set()

    config = uvicorn.Config(
        create_app(settings), http=Patient, log_config=None, access_log=False, server_header=False, proxy_headers=False
    )
    server = Server(config)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
        thread.start()
        try:
            while not started.wait(timeout=0.1):
                assert thread.is_alive(), "the API did not start; the cause is above"
            assert not server.should_exit, "the API did not start; the cause is above"
            yield url_of(listener)
        finally:
            server.should_exit = True
            thread.join()


def client(url: str, api_key: str) -> httpx2.Client:
    headers = {"Authorization": f"Bearer {api_key}"}
    return httpx2.Client(base_url=url, headers=headers, timeout=60, trust_env=False, verify=False)
