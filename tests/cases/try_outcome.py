"""What came of a try of a case: its answer, what the provider got, and what can be seen of it afterwards."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from tests.cases.outcome import Outcome
from tests.cases.try_world import TryWorld, in_its_words
from tests.providers_server import Seen


@dataclass
class TryOutcome(Outcome):
    """`reply` is the last answer about the try. `change` is its body, so that a look shows the same as a preview."""

    world: TryWorld | None = None
    ended: dict[str, Any] | None = None  # the try at its end; None: it was refused
    calls: list[Seen] = field(default_factory=list)
    try_ids: list[str] = field(default_factory=list)  # by what the POSTs answered
    before: dict[str, Any] = field(default_factory=dict)  # the session, before the try
    stored_before: list[dict[str, Any]] = field(default_factory=list)

    @property
    def at(self) -> TryWorld:
        assert self.world is not None
        return self.world

    @cached_property
    def wire(self) -> dict[str, Any]:
        """What the provider got; of a refused one, what it would have got."""
        return dict(self.calls[-1].json if self.calls else self.look("format=provider")["request"])

    @property
    def preview_body(self) -> bytes:
        """The provider's body, byte for byte, as a preview of the same changes shows it."""
        whole = self.look_raw("format=provider")
        provider = json.dumps(json.loads(whole)["provider"]).encode()
        start = b'{"provider":' + provider + b',"request":'
        assert whole.startswith(start), whole[:100]
        return whole[len(start) : -1]

    @property
    def session(self) -> dict[str, Any]:
        assert self.made is not None
        path = f"/v1/sessions/{self.made.session_id}"
        return dict(self.person.send(self.server, "GET", path).raise_for_status().json())

    @property
    def status(self) -> tuple[str, str | None]:
        """How the try ended: its status and the code of its error."""
        assert self.ended is not None
        return self.ended["status"], (self.ended["error"] or {}).get("code")

    @property
    def answer(self) -> str:
        assert self.ended is not None
        return json.dumps(self.ended["answer"])

    def usage_records(self) -> list[dict[str, Any]]:
        return self.at.rows(
            "select * from usage_records where session_id = %s order by id", self.made and self.made.session_id
        )

    def audit_rows(self) -> list[dict[str, Any]]:
        """Those of its session and of its tries, as the tenant's admin sees them too."""
        ids = [*self.try_ids, *([self.made.session_id, self.made.agent_id] if self.made else [])]
        return self.at.rows(
            "select action, target_id::text, detail from audit_events where target_id = any (%s::uuid[]) order by id",
            ids,
        )

    def worker_answers(self) -> bool:
        """Whether a worker answers another try of the session."""
        assert self.made is not None
        self.at.answers(in_its_words("Here."))
        path = f"/v1/sessions/{self.made.session_id}/context/try"
        reply = self.person.send(self.server, "POST", path, {"message": "Is anybody there?"}).raise_for_status()
        return bool(self.at.until(self.person, reply.json()["id"], self.server)["status"] == "succeeded")
