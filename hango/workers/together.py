"""What tries do together in PostgreSQL, a group in one transaction: calls are made ready and marked, ends are written.

One by one, the ends of a tenant would wait for each other's commit: all write to its one quota.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from hango import logs
from hango.chain import summary_previews
from hango.chain import tries as rules
from hango.chain.deps import Deps
from hango.chain.tries import ContextChanged, Prepared
from hango.domain import SessionID, TenantID
from hango.errors import HangoError, Unavailable
from hango.logs import Log
from hango.messages import Usage
from hango.store import try_claims
from hango.store.connection import Scope
from hango.store.try_claims import Claim
from hango.tries import Claimed, ClaimedRequest, Settlement, TryStatus
from hango.workers.calls import Ready
from hango.workers.groups import Groups
from hango.workers.outcomes import Terms

# To make a request takes a millisecond or more: the first calls of many begin before the last one is made.
MOST_MADE_READY: Final = 16
MOST_SETTLED: Final = 64


@dataclass(frozen=True, slots=True)
class Outcome:
    """How the call of a claim ended."""

    claimed: Claimed
    ready: Ready
    settlement: Settlement

    @property
    def claim(self) -> Claim:
        return self.claimed.id, self.claimed.attempt

    @property
    def real(self) -> bool:
        """Whether its figures are the provider's."""
        return not self.settlement.usage.estimated


class NoProviderKey(HangoError):
    """This worker has no key for the provider of a try. Give all processes the same settings."""

    def __init__(self, provider: str) -> None:
        super().__init__()
        self.provider = provider


class Together:
    """Of one process, on its one event loop."""

    def __init__(self, deps: Deps) -> None:
        self._deps = deps
        self._readying: Groups[SessionID, Claimed, Ready | None] = Groups(self._make_ready, most=MOST_MADE_READY)
        self._settling: Groups[TenantID, Outcome, bool] = Groups(self._settle, most=MOST_SETTLED)

    async def close(self) -> None:
        """Break off what is under way."""
        await self._readying.close()
        await self._settling.close()

    async def ready(self, claimed: Claimed) -> Ready | None:
        """The request, with its call marked as begun. None: it may not be called.

        Raises ContextChanged, NoProviderKey, and Unavailable: then it may be marked or not.
        """
        return await self._readying.ask(claimed.session_id, claimed)

    async def settle(self, outcome: Outcome) -> bool:
        """Write an end down. False: the claim is no longer in force. May be done twice. Raises Unavailable."""
        return await self._settling.ask(outcome.claimed.principal.tenant_id, outcome)

    async def _make_ready(self, group: Sequence[Claimed]) -> Sequence[Ready | Exception | None]:
        async with self._deps.store.begin(group[0].principal) as scope:
            wanted = await try_claims.requests(scope, [claimed.request_id for claimed in group])
            made = [await self._ready(scope, claimed, wanted.get(claimed.request_id)) for claimed in group]
            sound = [
                (claimed.id, claimed.attempt)
                for claimed, one in zip(group, made, strict=True)
                if isinstance(one, Ready)
            ]
            marked = await try_claims.mark_all_called(scope, sound)
        return [
            one if (claimed.id, claimed.attempt) in marked or isinstance(one, Exception) else None
            for claimed, one in zip(group, made, strict=True)
        ]

    async def _ready(self, scope: Scope, claimed: Claimed, wanted: ClaimedRequest | None) -> Ready | HangoError:
        if wanted is None:
            return ContextChanged()
        try:
            prepare = rules.prepare if wanted.through_seq is None else summary_previews.prepare
            prepared = await prepare(scope, self._deps, claimed.session_id, wanted)
        except ContextChanged as error:
            return error
        completer = self._deps.providers.completer(prepared.provider)
        if completer is None:  # the API has its key, or it would not have accepted the try
            return NoProviderKey(prepared.provider)
        return Ready(prepared, completer, self._terms(claimed, wanted, prepared), wanted.purpose)

    def _terms(self, claimed: Claimed, wanted: ClaimedRequest, prepared: Prepared) -> Terms:
        return Terms(
            model=prepared.model,
            reserved=claimed.reserved,
            max_output_tokens=wanted.max_output_tokens,
            priced=self._deps.providers.is_priced(prepared.provider),
            cache_ttl=prepared.request.cache_ttl,
        )

    async def _settle(self, group: Sequence[Outcome]) -> Sequence[bool]:
        """Figures are lessons for the next estimates. Those of a try that was given up as lost take the place of its
        estimate.
        """
        made = {one.claim: one.settlement for one in group}
        async with self._deps.store.begin(group[0].claimed.principal) as scope:
            settled = await try_claims.settle_all(
                scope, made, retention_seconds=self._deps.settings.context_try_retention
            )
            done = [one.claim in settled for one in group]
            lessons = []
            for one, is_done in zip(group, done, strict=True):
                if is_done and one.real and one.settlement.status is TryStatus.SUCCEEDED:
                    lessons.append((one.ready.prepared, one.settlement.usage.tokens))
                elif not is_done and one.real:
                    await try_claims.correct_lost(scope, one.claimed.id, one.claimed.attempt, one.settlement.usage)
            await self._learn(scope, lessons)
        return done

    async def _learn(self, scope: Scope, lessons: Sequence[tuple[Prepared, Usage]]) -> None:
        """A fault of it is logged and undone alone: the ends and bills of the calls stand."""
        try:
            async with scope.attempt():
                await rules.learn(scope, self._deps, lessons)
        except Exception as error:
            write, event = (
                (logs.warning, Log.UNAVAILABLE) if isinstance(error, Unavailable) else (logs.error, Log.UNEXPECTED)
            )
            write(event, error, process="worker", tenant_id=scope.tenant_id)
