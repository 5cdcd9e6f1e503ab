"""The stock way to do it: Dramatiq as it comes, blocking actors on threads, a row a job.

python -m dramatiq bench.tries.stock_worker --processes 1 --threads 8
"""

from __future__ import annotations

import http.client
import json
import threading
from typing import Any

import dramatiq
from dramatiq.brokers.redis import RedisBroker
from psycopg_pool import ConnectionPool

from bench.contestant import place
from bench.tries import rows

_place = place()
broker = RedisBroker(url=_place["stock_redis_url"])  # type: ignore[no-untyped-call]  # Dramatiq's has no types
dramatiq.set_broker(broker)
_pool: ConnectionPool[Any] = ConnectionPool(
    _place["database_urls"]["stock"], min_size=1, max_size=rows.THREADS, open=False
)
_of_thread = threading.local()


@dramatiq.actor
def call(job_id: str) -> None:
    _pool.open()
    with _pool.connection() as connection:
        begun = connection.execute(rows.BEGIN_JOB, [job_id]).fetchone()
        request = connection.execute(rows.ONE_REQUEST).fetchone()
    if begun is None or request is None:
        return
    made = _ask(rows.named(request[0], begun[0]))
    usage = made["usage"]
    with _pool.connection() as connection:
        connection.execute(rows.END_JOB, [made["choices"][0]["message"]["content"], job_id])
        connection.execute(rows.ADD_USAGE, [job_id, usage["prompt_tokens"], usage["completion_tokens"]])
        connection.execute(rows.TELL, [job_id])


def _ask(body: bytes) -> dict[str, Any]:
    """On the connection of this thread."""
    if not hasattr(_of_thread, "connection"):
        _of_thread.connection = http.client.HTTPConnection(_place["model_url"].removeprefix("http://"))
    _of_thread.connection.request("POST", "/v1/chat/completions", body, {"Content-Type": "application/json"})
    made: dict[str, Any] = json.loads(_of_thread.connection.getresponse().read())
    return made
