"""The control: a worker as one writes it at first, on Dramatiq as it comes. Whatever checks the product must fail this.

A message carries the id of a try. The actor sets the status, calls the provider, sets the status again and adds the
bill: three transactions, no claim, no lease, nobody who looks after what was left.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import urllib.request
from typing import Final
from uuid import UUID, uuid4

import dramatiq
import psycopg
from dramatiq import Actor
from dramatiq.brokers.redis import RedisBroker
from redis.exceptions import RedisError

NAMESPACE: Final = "naive"
THREADS: Final = 8
ANSWER_SECONDS: Final = 4.0
DATABASE, REDIS, PROVIDER = "NAIVE_DATABASE_URL", "NAIVE_REDIS_URL", "NAIVE_PROVIDER_URL"


BEGIN: Final = """
update tries
set
  status = 'running', attempt = attempt + 1, called_at = clock_timestamp(), lease_owner = id, lease_until = 'infinity'
where id = %s and finished_at is null
returning request_id
"""
END: Final = """
update tries
set
  status = %(status)s, error_code = %(error)s, stop_reason = %(stop)s, finished_at = clock_timestamp(),
  lease_owner = null, lease_until = null
where id = %(id)s
"""
BILL: Final = """
insert into usage_records (
  tenant_id, id, purpose, try_id, session_id, user_id, model, input_tokens, output_tokens, cache_read_tokens,
  cache_write_tokens
)
select tenant_id, %(new)s, 'context_try', id, session_id, user_id, 'openai/fault', 12, 3, 0, 0
from tries
where id = %(id)s
"""
PAY: Final = """
update quotas q set used = used + 15, reserved = q.reserved - t.reserved
from tries t
where t.id = %(id)s and q.tenant_id = t.tenant_id and q.period = t.quota_period
"""
TELL: Final = """
insert into audit_events (tenant_id, id, action, target_kind, target_id, user_id, detail)
select tenant_id, %(new)s, 'context.try_finished', 'try', id, user_id, '{}' from tries where id = %(id)s
"""


def make_broker(redis_url: str) -> tuple[RedisBroker, Actor[[str], None]]:
    broker = RedisBroker(url=redis_url, namespace=NAMESPACE)  # type: ignore[no-untyped-call]  # as dramatiq comes
    return broker, Actor(run_try, broker=broker, actor_name="run_try", queue_name="default", priority=0, options={})


def run_try(try_id: str) -> None:
    with psycopg.connect(os.environ[DATABASE], autocommit=True) as connection:
        found = connection.execute(BEGIN.encode(), [try_id]).fetchone()
        if found is None:
            return
        texts = connection.execute("select texts from try_requests where id = %s", [found[0]]).fetchone()
        assert texts is not None
        status, error, stop = ("succeeded", None, "end_turn") if _call(texts[0]) else ("failed", "provider_error", None)
        for statement in (END, BILL, PAY, TELL):
            wanted = {"id": try_id, "new": uuid4(), "status": status, "error": error, "stop": stop}
            connection.execute(statement.encode(), wanted)


def _call(texts: str) -> bool:
    body = json.dumps({"messages": [{"role": "user", "content": texts}]}).encode()
    asked = urllib.request.Request(f"{os.environ[PROVIDER]}/v1/chat/completions", data=body)  # noqa: S310  this machine
    try:
        with urllib.request.urlopen(asked, timeout=ANSWER_SECONDS) as answer:  # noqa: S310
            answer.read()
    except OSError:
        return False
    return True


class Sender:
    """What the API of such a design does after its commit: it sends, and if that fails nobody sends again."""

    def __init__(self, redis_url: str) -> None:
        self._broker, self._actor = make_broker(redis_url)

    def send(self, try_id: UUID) -> bool:
        try:
            self._actor.send(str(try_id))
        except (dramatiq.ConnectionError, RedisError):
            return False
        return True


def main() -> None:
    broker, _ = make_broker(os.environ[REDIS])
    worker = dramatiq.Worker(broker, worker_threads=THREADS)
    worker.start()
    told = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: told.set())
    sys.stderr.write('{"event": "started"}\n')
    told.wait()
    worker.stop()


if __name__ == "__main__":
    main()
