"""The command line of one person in tests: each call a process of its own, against a live API."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from uuid import uuid4

from tests import live


@dataclass(frozen=True)
class Hango:
    """The command line of the holder of a key."""

    url: str
    key: str
    home: Path

    def __call__(
        self, *words: str, given: bytes = b"", columns: int | None = None, env: Mapping[str, str] | None = None
    ) -> tuple[int, str, str]:
        """Exit code, stdout and stderr; into pipes."""
        own = {"HANGO_API_URL": self.url, "HANGO_API_KEY": self.key, "HANGO_HOME": str(self.home)}
        width = {} if columns is None else {"COLUMNS": str(columns)}
        done = subprocess.run(
            [sys.executable, "-m", "hango", *words],
            input=given,
            env={**own, **width, **(env or {}), "PATH": "/usr/bin:/bin", "PYTHONWARNINGS": "error"},
            capture_output=True,
            check=False,
            timeout=60,
        )
        return done.returncode, done.stdout.decode(), done.stderr.decode()

    def get(self, path: str) -> bytes:
        with live.client(self.url, self.key) as client:
            return client.get(path).raise_for_status().content

    def make(self, path: str, **body: Any) -> str:
        """POST what must be created; its id."""
        with live.client(self.url, self.key) as client:
            return str(client.post(path, json=body).raise_for_status().json()["id"])

    def session(self, *texts: str, **agent: Any) -> str:
        """A session whose messages, the user's first, are these."""
        made = self.make("/v1/agents", **{"name": "desk", "model": "offline/extract", "builtin": [], **agent})
        messages = [{"role": ("user", "assistant")[i % 2], "content": text} for i, text in enumerate(texts)]
        return self.make("/v1/sessions", agent_id=made, title="Bolts", messages=messages)

    def member(self) -> Hango:
        """Another person of the tenant; only an admin can."""
        with live.client(self.url, self.key) as client:
            user = client.post("/v1/users", json={"name": f"user {uuid4().hex[:8]}", "role": "member"}).json()
            made = client.post("/v1/api-keys", json={"name": "key", "user_id": user["id"]}).raise_for_status()
        return replace(self, key=made.json()["key"])
