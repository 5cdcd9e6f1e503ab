"""Who may: each access says how to load its target and who may have it. No target or no right: the same 404."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar
from uuid import UUID

from hango.api.fields import parse_id
from hango.domain import Agent, ApiKey, Principal, Role, Session, User
from hango.errors import NotFound
from hango.runs import Run
from hango.store import agents, api_keys, runs, sessions, tries, try_batches, users
from hango.store.connection import Scope, Store
from hango.tries import Try, TryBatch

Target = TypeVar("Target")


@dataclass(frozen=True, slots=True)
class Access(Generic[Target]):
    """`load` fetches by the id in the path parameter `param`; None means that the route has no target."""

    name: str
    who: str  # for docs/authz.md
    allows: Callable[[Principal, Any], bool]
    param: str = ""
    load: Callable[[Scope, Any], Awaitable[Target | None]] | None = None


async def admit(access: Access[Any], store: Store, principal: Principal, path_params: Mapping[str, str]) -> Any:
    """The target, when the principal may have it. Raises NotFound, always the same one."""
    target: Any = None
    if access.load is not None:
        wanted: UUID = parse_id(path_params[access.param])
        async with store.read(principal) as scope:
            target = await access.load(scope, wanted)
        if target is None:
            raise NotFound
    if not access.allows(principal, target):
        raise NotFound
    return target


def is_admin(principal: Principal) -> bool:
    return principal.role is Role.ADMIN


def may_read_agent(principal: Principal, agent: Agent) -> bool:
    return agent.shared or may_write_agent(principal, agent)


def may_write_agent(principal: Principal, agent: Agent) -> bool:
    return is_admin(principal) or agent.created_by == principal.user_id


def _owns_session(principal: Principal, session: Session) -> bool:
    return is_admin(principal) or session.created_by == principal.user_id


def _owns_its_session(principal: Principal, target: Run | Try | TryBatch) -> bool:
    return is_admin(principal) or target.session_owner == principal.user_id


def _owns_key(principal: Principal, key: ApiKey) -> bool:
    return is_admin(principal) or key.user_id == principal.user_id


def _anyone(principal: Principal, target: None) -> bool:
    return True


def _admins(principal: Principal, target: object) -> bool:
    return is_admin(principal)


PUBLIC: Access[None] = Access("PUBLIC", "anyone, without a key", _anyone)
MEMBER: Access[None] = Access("MEMBER", "every user of the tenant", _anyone)
ADMIN: Access[None] = Access("ADMIN", "admins of the tenant", _admins)
READ_AGENT: Access[Agent] = Access(
    "READ_AGENT", "the agent's creator, admins, and everyone of the tenant when it is shared",
    may_read_agent, "agent_id", agents.get,
)  # fmt: skip
WRITE_AGENT: Access[Agent] = Access(
    "WRITE_AGENT", "the agent's creator and admins", may_write_agent, "agent_id", agents.get
)
READ_SESSION: Access[Session] = Access(
    "READ_SESSION", "the session's creator and admins", _owns_session, "session_id", sessions.get
)
WRITE_SESSION: Access[Session] = Access(
    "WRITE_SESSION", "the session's creator and admins", _owns_session, "session_id", sessions.get
)
READ_TRY: Access[Try] = Access(
    "READ_TRY", "the creator of the try's session and admins", _owns_its_session, "try_id", tries.get
)
READ_PREVIEW: Access[Try] = Access(
    "READ_PREVIEW",
    "the creator of the preview's session and admins",
    _owns_its_session,
    "preview_id",
    tries.get_preview,
)
READ_RUN: Access[Run] = Access(
    "READ_RUN", "the creator of the run's session and admins", _owns_its_session, "run_id", runs.get
)
READ_BATCH: Access[TryBatch] = Access(
    "READ_BATCH", "the creator of the batch's session and admins", _owns_its_session, "batch_id", try_batches.get
)
OWN_KEY: Access[ApiKey] = Access("OWN_KEY", "the key's user and admins", _owns_key, "key_id", api_keys.get)
ADMIN_USER: Access[User] = Access("ADMIN_USER", "admins of the tenant", _admins, "user_id", users.get)
