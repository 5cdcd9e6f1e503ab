"""Who calls the product in a bench: settings, principal and sessions as the runner wrote them down."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from uuid import UUID

from bench.contestant import place
from hango import logs
from hango.config import Settings
from hango.domain import KeyID, Principal, Role, SessionID, TenantID, UserID


@dataclass(frozen=True, slots=True)
class Caller:
    settings: Settings
    principal: Principal
    sessions: Mapping[int, SessionID]  # by the number of messages

    @classmethod
    def of_place(cls) -> Caller:
        found = place()
        settings = Settings.from_env(found["settings"])
        logs.setup(settings)
        ids = {name: UUID(text) for name, text in found["principal"].items()}
        principal = Principal(TenantID(ids["tenant_id"]), UserID(ids["user_id"]), KeyID(ids["key_id"]), Role.ADMIN)
        sessions = {int(size): SessionID(UUID(id)) for size, id in found["sessions"].items()}
        return cls(settings, principal, sessions)
