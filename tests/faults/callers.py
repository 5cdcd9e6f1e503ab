"""Clients of the API as they should be: each POST has an Idempotency-Key and is sent again until it is answered."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID, uuid4

import aiohttp

from tests.faults.provider import Act

ANSWER_SECONDS: Final = 8.0
PAUSE_SECONDS: Final = 0.5
AWAY: Final = (aiohttp.ClientError, OSError, TimeoutError)
JSON = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Accepted:
    """A try that the API has taken on: a 202 was read."""

    id: UUID
    mark: str
    seconds: float  # of the POST that was answered
    tenant: int


class Caller:
    """The only user of one tenant. `accepted` by mark; `met` counts what came instead of an answer."""

    def __init__(self, urls: list[str], key: str, tenant_id: str) -> None:
        self.accepted: dict[str, Accepted] = {}
        self.doubled: list[str] = []  # marks whose repeated POST named another try
        self.met: Counter[str] = Counter()
        self.tenant_id, self.key = tenant_id, key
        self.session_id = ""
        self._urls = urls
        self._client = aiohttp.ClientSession(
            headers={"authorization": f"Bearer {key}"},
            timeout=aiohttp.ClientTimeout(total=ANSWER_SECONDS),
            connector=aiohttp.TCPConnector(limit=0),
        )

    async def close(self) -> None:
        await self._client.close()

    async def set_up(self, model: str) -> None:
        agent = await self.call("POST", "/v1/agents", {"name": "desk", "model": model, "builtin": []})
        past = [{"role": "user", "content": "Hello."}, {"role": "assistant", "content": "Hello to you."}]
        made = await self.call("POST", "/v1/sessions", {"agent_id": agent["id"], "messages": past})
        self.session_id = str(made["id"])

    async def call(self, method: str, path: str, body: JSON | None = None) -> JSON:
        """One request that must go well."""
        status, reply, _ = await self.ask(method, path, body)
        assert status < 300, f"{method} {path}: {status} {reply}"
        return reply

    async def ask(
        self, method: str, path: str, body: JSON | None = None, *, key: str | None = None, seconds: float | None = None
    ) -> tuple[int, JSON, float]:
        """One request, once: status, body, seconds. Raises what `AWAY` names where nobody answers."""
        url = self._urls[int(key or "0", 16) % len(self._urls)]
        headers = {"idempotency-key": key} if key else {}
        began = time.perf_counter()
        timeout = aiohttp.ClientTimeout(total=seconds or ANSWER_SECONDS)
        async with self._client.request(method, f"{url}{path}", json=body, headers=headers, timeout=timeout) as reply:
            said = await reply.json(content_type=None)
            if reply.status == 503 and "retry-after" not in reply.headers:
                self.met["503 without Retry-After"] += 1
            return reply.status, said, time.perf_counter() - began

    async def raw(self, method: str, path: str, body: bytes) -> tuple[int, bytes]:
        """A body as it is: status and answer."""
        headers = {"content-type": "application/json"}
        async with self._client.request(method, f"{self._urls[0]}{path}", data=body, headers=headers) as reply:
            return reply.status, await reply.read()

    async def post_try(self, act: Act, *, key: str, body: JSON | None = None) -> tuple[int, JSON, float]:
        wanted = {"message": act.text, **(body or {})}
        return await self.ask("POST", f"/v1/sessions/{self.session_id}/context/try", wanted, key=key)

    async def start(self, act: Act, *, patience: float = 60.0, tenant: int = 0) -> Accepted | None:
        """A try that is sent again with the same key until it is accepted; None when it never was."""
        key, end = uuid4().hex, time.monotonic() + patience
        while time.monotonic() < end:
            try:
                status, reply, seconds = await self.post_try(act, key=key)
            except AWAY as error:
                self.met[type(error).__name__] += 1
            else:
                if status in {200, 202}:
                    return self._note(Accepted(UUID(reply["id"]), act.mark, seconds, tenant))
                self.met[str(status)] += 1
            await asyncio.sleep(PAUSE_SECONDS)
        return None

    async def cancel(self, accepted: Accepted) -> bool:
        """Ask once; whether somebody answered."""
        try:
            status, _, _ = await self.ask("POST", f"/v1/tries/{accepted.id}/cancel")
        except AWAY as error:
            self.met[type(error).__name__] += 1
            return False
        return status in {200, 202}

    async def read(self, accepted: Accepted, *, wait: int = 0) -> JSON:
        """The try, or as it is when it ends."""
        status, reply, _ = await self.ask("GET", f"/v1/tries/{accepted.id}?wait={wait}", seconds=wait + ANSWER_SECONDS)
        assert status == 200, reply
        return reply

    def _note(self, accepted: Accepted) -> Accepted:
        known = self.accepted.setdefault(accepted.mark, accepted)
        if known.id != accepted.id:
            self.doubled.append(accepted.mark)
        return known
