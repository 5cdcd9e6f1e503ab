"""The OpenAPI document: committed, whole, true. What a live API answers is what the document says."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import httpx2
import msgspec
import pytest
import schemathesis
from hypothesis import HealthCheck, given
from hypothesis import settings as runs
from schemathesis import APIOperation, GenerationMode
from schemathesis.checks import load_all_checks, not_a_server_error
from schemathesis.core.result import Ok
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from hango.api.openapi import document
from hango.api.routes import ROUTES
from hango.cli.serve import make_tenant
from hango.config import Settings
from hango.store.system import NewTenant
from tests.live import client, serving
from tests.people import Api

COMMITTED = Path(__file__).resolve().parents[2] / "docs" / "openapi.json"
DOCUMENT = document(ROUTES)
EXAMPLES = 10  # of each operation, beside those that schemathesis makes for coverage
CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]
load_all_checks()
OPERATIONS = [
    found.ok() for found in schemathesis.openapi.from_dict(DOCUMENT).get_all_operations() if isinstance(found, Ok)
]
# What takes nothing cannot be asked wrongly.
ASKED = [
    pytest.param(operation, mode, id=f"{operation.label} {mode.value}")
    for operation in OPERATIONS
    for mode in GenerationMode
    if mode is GenerationMode.POSITIVE or operation.query or operation.path_parameters or operation.body
]


def test_the_committed_document_is_the_one_of_the_code() -> None:
    """docs/openapi.json is made from the table of routes; when it differs, run tools/generate_docs."""
    assert msgspec.json.decode(COMMITTED.read_bytes()) == msgspec.json.decode(msgspec.json.encode(DOCUMENT))


def test_every_route_is_in_the_document_once() -> None:
    """The document has every row of the table, each with an id of its own."""
    operations = {
        f"{method.upper()} {path}": operation["operationId"]
        for path, methods in DOCUMENT["paths"].items()
        for method, operation in methods.items()
    }

    assert list(operations) == list(dict.fromkeys(operations))
    assert set(operations) == {f"{row.method} {row.path.replace(':path', '')}" for row in ROUTES}
    assert len(set(operations.values())) == len(ROUTES)


def test_every_reference_leads_to_a_schema_and_every_schema_is_used() -> None:
    """No schema is missing and none is left over."""
    text = msgspec.json.encode(DOCUMENT).decode()
    used = set(re.findall(r'"#/components/schemas/([^"]+)"', text))

    assert used == set(DOCUMENT["components"]["schemas"])


def test_the_headers_that_routes_take_and_give_are_named() -> None:
    """What starts work names Idempotency-Key and Prefer, what waits Prefer, override sets If-Match and ETag."""
    asked: dict[str, set[str]] = {}
    given: dict[str, set[str]] = {}
    for path, methods in DOCUMENT["paths"].items():
        for method, operation in methods.items():
            for parameter in operation["parameters"]:
                if parameter["in"] == "header":
                    asked.setdefault(parameter["name"], set()).add(f"{method.upper()} {path}")
            for status, answer in operation["responses"].items():
                for name in answer.get("headers", {}) if status < "300" else ():
                    given.setdefault(name, set()).add(f"{method.upper()} {path}")
    starts = {
        f"POST /v1/sessions/{{session_id}}/{path}"
        for path in ("context/try", "context/try-batches", "runs", "summary/preview")
    }
    waits = {
        "GET /v1/tries/{try_id}",
        "GET /v1/try-batches/{batch_id}",
        "GET /v1/runs/{run_id}",
        "GET /v1/summary-previews/{preview_id}",
    }
    sets = {"/v1/agents/{agent_id}/context-overrides", "/v1/sessions/{session_id}/context-overrides"}
    puts, gets = {f"PUT {path}" for path in sets}, {f"GET {path}" for path in sets}

    assert asked == {"Idempotency-Key": starts, "Prefer": starts | waits, "If-Match": puts}
    assert given.pop("Location") >= starts | {"POST /v1/agents"}
    assert given == {"ETag": puts | gets, "Preference-Applied": starts | waits, "Retry-After": starts | waits}


async def test_the_documents_are_served_without_a_key(api: Api) -> None:
    """/openapi.json and /docs are public; HEAD too."""
    served, page = await api.anyone.get("/openapi.json"), await api.anyone.get("/docs")

    assert (served.status_code, served.headers["content-type"]) == (200, "application/json")
    assert served.json() == msgspec.json.decode(COMMITTED.read_bytes())
    assert (page.status_code, page.headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert (await api.anyone.call("HEAD", "/docs")).status_code == 200


class Tags(HTMLParser):
    """The tags of a page, and every address in it."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.ids: list[str] = []
        self.addresses: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        for name, value in attrs:
            assert not name.startswith("on")
            if name == "id":
                self.ids.append(value or "")
            if name in ("href", "src", "action"):
                self.addresses.append(value or "")


async def test_the_page_for_people_runs_nothing_and_loads_nothing(api: Api) -> None:
    """The page is self-contained: no script, no other address; its links lead to places in it."""
    page = Tags()
    reply = await api.anyone.get("/docs")
    page.feed(reply.text)

    assert not page.tags & {"script", "link", "img", "iframe", "object", "form", "base"}
    assert len(set(page.ids)) == len(page.ids)
    assert {one for one in page.addresses if one != "/openapi.json"} <= {f"#{one}" for one in page.ids}
    policy = reply.headers["content-security-policy"]
    assert re.search(r"style-src 'sha256-[A-Za-z0-9+/=]+'", policy)
    assert "script-src" not in policy


@pytest.fixture(scope="module")
def url(settings: Settings) -> Iterator[str]:
    # Nobody works off what is started here: each wait that is asked for would last.
    with serving(replace(settings, long_wait_max=0.1)) as address:
        yield address


@pytest.fixture
def tenant(settings: Settings) -> NewTenant:
    return make_tenant(settings, "schemathesis")


# The server runs in a thread of this process, and its pool of connections draws from the same random numbers.
@pytest.mark.filterwarnings("ignore:Do not use the `random` module inside strategies")
@pytest.mark.parametrize(("operation", "mode"), ASKED)
def test_answers_are_what_the_document_says(
    operation: APIOperation[Any, Any, Any, Any], mode: GenerationMode, url: str, tenant: NewTenant
) -> None:
    """schemathesis from /openapi.json: no 5xx; statuses, headers and bodies match the document."""
    headers = {"Authorization": f"Bearer {tenant.api_key}"}

    @runs(max_examples=EXAMPLES, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(operation.as_strategy(generation_mode=mode))
    def ask(case: Any) -> None:
        case.call_and_validate(base_url=url, headers=headers, checks=CHECKS)
        if case.path_parameters:
            with client(url, tenant.api_key) as http:
                own = {"user_id": str(tenant.user_id), **make_things(http, case.path_parameters)}
            case.path_parameters = {name: own.get(name, value) for name, value in case.path_parameters.items()}
            case.call_and_validate(base_url=url, headers=headers, checks=CHECKS)

    ask()


def make_things(http: httpx2.Client, wanted: Iterable[str]) -> dict[str, str]:
    """An agent, a session, a try or a batch as the route wants them, so that it gets further than to its 404."""
    agent = http.post("/v1/agents", json={"name": "a", "model": "offline/extract"}).raise_for_status().json()
    messages = [{"role": "user", "content": "Hello."}]
    made = http.post("/v1/sessions", json={"agent_id": agent["id"], "messages": messages}).raise_for_status()
    things = {"agent_id": agent["id"], "session_id": made.json()["id"]}
    context = f"/v1/sessions/{things['session_id']}/context"
    if "try_id" in wanted:
        things["try_id"] = http.post(f"{context}/try", json={}).raise_for_status().json()["id"]
    if "batch_id" in wanted:
        batch = http.post(f"{context}/try-batches", json={"variants": [{}]})
        things["batch_id"] = batch.raise_for_status().json()["id"]
    return things
