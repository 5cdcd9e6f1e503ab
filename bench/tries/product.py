"""The product as a client sees it: a try, a batch, and what its rows say of them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg

from bench import conversation
from bench.tries import model
from bench.tries.place import Place, Tenant

WAIT_SECONDS = 60
KIB_A_MIB = 1024

# Who wrote the rows of a batch that nothing changes afterwards: one transaction, or several.
_WRITERS = """
select count(distinct w.xmin::text)
from (
  select r.xmin from try_requests r where r.batch_id = %(batch_id)s
  union all
  select a.xmin
  from audit_events a
  join tries t on t.tenant_id = a.tenant_id and t.id = a.target_id
  where t.batch_id = %(batch_id)s and a.action = 'context.try'
) w
"""


@dataclass(frozen=True, slots=True)
class Product:
    place: Place

    def one(self, tenant: Tenant, milliseconds: int = 0) -> None:
        """A try from the POST to its answer."""
        asked = {"message": conversation.LAST_WORDS, "model": _model(milliseconds)}
        path = f"/v1/sessions/{tenant.session_id}/context/try"
        made = tenant.client.ask_json("POST", path, asked, wait=WAIT_SECONDS)
        assert made["status"] == "succeeded", made["status"]
        assert made["answer"]["content"] == [{"type": "text", "text": model.ANSWER}], made["answer"]

    def batch(self, tenant: Tenant, tries: int, milliseconds: int = 0) -> str:
        """A batch of variants, no two of which are equal, from the POST to the end of its last try; its id."""
        made = self.queue(tenant, tries, milliseconds, wait=WAIT_SECONDS)
        assert made["counts"] == {"succeeded": tries}, made["counts"]
        return str(made["id"])

    def queue(self, tenant: Tenant, tries: int, milliseconds: int, *, wait: int | None = None) -> dict[str, Any]:
        name = _model(milliseconds)
        variants = [
            {"label": f"{at}", "message": f"{at}. {conversation.LAST_WORDS}", "model": name} for at in range(tries)
        ]
        path = f"/v1/sessions/{tenant.session_id}/context/try-batches"
        return tenant.client.ask_json("POST", path, {"variants": variants}, wait=wait)

    def cancel(self, tenant: Tenant, batch_id: str) -> None:
        tenant.client.ask("POST", f"/v1/try-batches/{batch_id}/cancel")

    def writers(self, batch_id: str) -> int:
        """In how many transactions a batch was accepted."""
        with psycopg.connect(self.place.superuser_url) as connection:
            row = connection.execute(_WRITERS, {"batch_id": batch_id}).fetchone()
        assert row is not None
        return int(row[0])

    def seconds_in_worker(self, batch_id: str) -> float:
        """From the moment that a batch is there to the end of its last try, by the database's clock."""
        with psycopg.connect(self.place.superuser_url) as connection:
            row = connection.execute(
                "select extract(epoch from max(finished_at) - min(started_at)) from tries where batch_id = %s",
                [batch_id],
            ).fetchone()
        assert row is not None
        return float(row[0])

    def calls(self) -> dict[str, int]:
        """What the model has counted."""
        made: dict[str, int] = json.loads(self.place.model.ask("GET", "/calls"))
        return made


def most_mib(pid: int) -> float:
    """What a process has taken at most."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("VmHWM:")).split()[1]) / KIB_A_MIB


def _model(milliseconds: int) -> str:
    return f"openai/{model.name(milliseconds)}"
