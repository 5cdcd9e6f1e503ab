"""The demo tenant: made once, then kept; its agents, files and sessions are written through the public API."""

from __future__ import annotations

import http.client
import json
import os
from dataclasses import asdict, dataclass, replace
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import UUID

from hango.config import Settings
from hango.errors import Unavailable

if TYPE_CHECKING:
    import httpx2

ANSWER_SECONDS = 30
NAME = "demo"
FILE = "demo.json"
CONTENT, CONTENT_FOR_MODEL = "demo.json", "demo_model.json"


@dataclass(frozen=True, slots=True)
class Demo:
    """What a home knows of its demo. The key stands in a file of this account alone; the database has its hash."""

    api_key: str
    session_id: str = ""  # empty until all of it is written
    model_session_id: str = ""  # the one of the small model; empty until that was asked for

    @classmethod
    def recall(cls, home: Path) -> Demo | None:
        try:
            return cls(**json.loads((home / FILE).read_text(encoding="utf-8")))
        except (OSError, ValueError, TypeError):
            return None

    def remember(self, home: Path) -> Demo:
        file = os.open(home / FILE, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(file, "w", encoding="utf-8") as stream:
            json.dump(asdict(self), stream)
        return self

    @staticmethod
    def forget(home: Path) -> None:
        (home / FILE).unlink(missing_ok=True)


def ensure_demo(settings: Settings, url: str, *, with_model: bool) -> Demo:
    """The home's demo tenant, made anew when this database does not know it. What was deleted stays deleted."""
    demo = Demo.recall(settings.home)
    if demo is None or not known(url, demo.api_key):
        from hango.cli.serve import make_tenant

        demo = Demo(make_tenant(settings, NAME).api_key).remember(settings.home)
    if not demo.session_id:
        demo = replace(demo, session_id=seed(url, demo.api_key)).remember(settings.home)
    if with_model and not demo.model_session_id:
        session_id = seed(url, demo.api_key, CONTENT_FOR_MODEL)
        demo = replace(demo, model_session_id=session_id).remember(settings.home)
    return demo


def known(url: str, api_key: str) -> bool:
    """Whether this database knows the key. Without httpx2, which takes long to load: a warm start asks only this."""
    connection = http.client.HTTPConnection(url.removeprefix("http://"), timeout=ANSWER_SECONDS)
    try:
        connection.request("GET", "/v1/me", headers={"Authorization": f"Bearer {api_key}"})
        status = connection.getresponse().status
    finally:
        connection.close()
    if status not in {http.HTTPStatus.OK, http.HTTPStatus.UNAUTHORIZED}:
        raise Unavailable(f"the demo tenant could not be looked up: GET /v1/me gave {status}.")
    return status == http.HTTPStatus.OK


def seed(url: str, api_key: str, file: str = CONTENT) -> str:
    """Write what is missing of the file's agent and session; returns the session's id. Repeating it changes nothing."""
    content = json.loads(resources.files("hango.cli").joinpath(file).read_text(encoding="utf-8"))
    with client(url, api_key) as api:
        agent = first(api, "/v1/agents", "name", content["agent"]["name"])
        agent = agent or send(api, "POST", "/v1/agents", content["agent"])
        for path, text in content["files"].items():
            send(api, "PUT", f"/v1/agents/{agent['id']}/files{path}", {"content": text})
        session = first(api, "/v1/sessions", "title", content["session"]["title"])
        session = session or send(api, "POST", "/v1/sessions", {"agent_id": agent["id"], **content["session"]})
    return str(UUID(session["id"]))


def client(url: str, api_key: str) -> httpx2.Client:
    import httpx2

    headers = {"Authorization": f"Bearer {api_key}"}
    # It speaks plain http to this machine: without `verify` no certificates are loaded.
    return httpx2.Client(base_url=url, headers=headers, timeout=ANSWER_SECONDS, trust_env=False, verify=False)


def first(api: httpx2.Client, path: str, field: str, value: str) -> dict[str, Any] | None:
    found = send(api, "GET", path, None)["data"]
    return next((one for one in found if one[field] == value), None)


def send(api: httpx2.Client, method: str, path: str, body: dict[str, Any] | None) -> dict[str, Any]:
    reply = api.request(method, path, json=body)
    if not reply.is_success:
        raise Unavailable(f"the demo could not be written: {method} {path} gave {reply.status_code}.")
    made: dict[str, Any] = reply.json()
    return made
