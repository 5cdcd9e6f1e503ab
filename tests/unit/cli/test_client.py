"""What the command line says when the API refuses, is away, or is something else."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from hango.cli.access import Access, find_access
from hango.cli.exits import ExitCode
from hango.cli.own_command import own_command
from hango.config import Settings
from tests.unit.cli.api import KEY, Answer, problem, reply, serving
from tests.unit.cli.conftest import Ended, Run

EMPTY: dict[str, object] = {"data": [], "next_cursor": None}


@pytest.fixture
def closed_port() -> Iterator[int]:
    """A port that is taken and answers nobody."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield taken.getsockname()[1]


def settings(home: Path, **env: str) -> Settings:
    return Settings.from_env({"HANGO_HOME": str(home), **env})


def test_the_key_of_up_json_goes_to_its_address_only(tmp_path: Path) -> None:
    """HANGO_API_URL and HANGO_API_KEY, else up.json; its key is never sent to another address."""
    up = tmp_path / "up.json"
    up.write_text(json.dumps({"url": "http://127.0.0.1:8788", "api_key": "k", "pids": [1]}), encoding="utf-8")

    assert find_access(settings(tmp_path)) == Access("http://127.0.0.1:8788", "k", str(up))
    assert find_access(settings(tmp_path, HANGO_API_KEY="mine")) == Access(
        "http://127.0.0.1:8788", "mine", "HANGO_API_KEY"
    )
    assert find_access(settings(tmp_path, HANGO_API_URL="https://other.example")) == Access(
        "https://other.example", None, "HANGO_API_KEY"
    )
    assert find_access(settings(tmp_path / "empty")) == Access("http://127.0.0.1:8787", None, "HANGO_API_KEY")


def test_a_broken_up_json_counts_as_none(tmp_path: Path) -> None:
    """A half written file is no reason to fail."""
    (tmp_path / "up.json").write_text('["', encoding="utf-8")

    assert find_access(settings(tmp_path, HANGO_PORT="9001")).url == "http://127.0.0.1:9001"


def test_no_api(run: Run, closed_port: int) -> None:
    """No API: exit 4, and what to do."""
    url = f"http://127.0.0.1:{closed_port}"

    assert run("sessions", HANGO_API_URL=url, HANGO_API_KEY=KEY) == Ended(
        ExitCode.NO_API, "", f"hango: no API at {url}. Start one with `{own_command()} up`, or set HANGO_API_URL.\n"
    )


def test_no_key(run: Run) -> None:
    """Without a key the sentence says where one goes; a refused key is named by its place, not shown."""
    with serving({"GET": problem(401, "unauthenticated", "The API key is missing.")}) as api:
        without = run("sessions", HANGO_API_URL=api.url)
        refused = run("sessions", HANGO_API_URL=api.url, HANGO_API_KEY=KEY)

    assert without == Ended(1, "", f"hango: the API at {api.url} wants a key. Set HANGO_API_KEY.\n")
    assert refused == Ended(
        1,
        "",
        f"hango: the API at {api.url} refuses the key from HANGO_API_KEY. Set HANGO_API_KEY to a valid one.\n",
    )
    assert [one.key for one in api.asked] == [None, f"Bearer {KEY}"]


def test_a_key_that_no_header_can_carry(run: Run, closed_port: int) -> None:
    """A key with letters that are none of a key's is named by its place before anything is sent."""
    ended = run("sessions", HANGO_API_URL=f"http://127.0.0.1:{closed_port}", HANGO_API_KEY="hango_\u00e9")

    sentence = "hango: the key from HANGO_API_KEY is none of hango's. Set HANGO_API_KEY to a valid one.\n"
    assert ended == Ended(1, "", sentence)


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (problem(503, "unavailable", "PostgreSQL is away."), "hango: PostgreSQL is away.\n"),
        (
            Answer(
                problem(429, "rate_limited", "Too many.").body, 429, "application/problem+json", {"Retry-After": "7"}
            ),
            "hango: Too many. Try again in 7 s.\n",
        ),
        (
            problem(
                422,
                "bad_field",
                "Two fields are wrong.",
                errors=[
                    {"reason": "bad_field", "message": "limit is no number.", "pointer": "/limit"},
                    {"reason": "bad_part_id", "message": "No such form.", "part": "tool:\u202e"},
                ],
            ),
            "hango: Two fields are wrong.\n  /limit: limit is no number.\n  tool:⟨U+202E⟩: No such form.\n",
        ),
        (problem(500, "internal", "one\x1b[2J\ntwo"), "hango: one⟨U+001B⟩[2J ⏎ two\n"),
        (problem(404, "not_found", "There is no such thing here."), "hango: There is no such thing here.\n"),
    ],
)
def test_a_refusal_is_its_sentence(answer: Answer, said: str, run: Run) -> None:
    """A problem becomes its sentence on stderr and exit 1, nothing on stdout; it cannot act on the terminal."""
    with serving({"GET": answer}) as api:
        assert run("sessions", HANGO_API_URL=api.url, HANGO_API_KEY=KEY) == Ended(1, "", said)


@pytest.mark.parametrize(
    "answer",
    [
        Answer(b"<html>hello</html>", 200, "text/html"),
        Answer(b"<html>hello</html>", 404, "text/html"),
        Answer(b"[]", 500, "application/problem+json"),
        Answer(b"", 302, "text/html", {"Location": "http://127.0.0.1:9/"}),
    ],
)
def test_another_server_is_told_from_an_api(answer: Answer, run: Run) -> None:
    """A server that is no hango API is named as such; its redirect is not followed."""
    with serving({"GET": answer}) as api:
        ended = run("sessions", HANGO_API_URL=api.url, HANGO_API_KEY=KEY)

    assert ended == Ended(
        1,
        "",
        f"hango: {api.url} answered {answer.status} and is no hango API of this version. "
        f"Start one with `{own_command()} up`, or set HANGO_API_URL.\n",
    )


def test_a_reply_of_another_version(run: Run) -> None:
    """A reply that the command does not know is said so, not shown as a traceback."""
    with serving({"GET": reply({"items": []})}) as api:
        ended = run("sessions", HANGO_API_URL=api.url, HANGO_API_KEY=KEY)

    assert ended == Ended(
        1, "", "hango: the API answered in a form that this version does not know. Use one version for both.\n"
    )


def test_no_proxy_gets_the_key(run: Run, closed_port: int) -> None:
    """A proxy of the environment is not used."""
    with serving({"GET": reply(EMPTY)}) as api:
        proxy = f"http://127.0.0.1:{closed_port}"
        ended = run("sessions", HANGO_API_URL=api.url, HANGO_API_KEY=KEY, HTTP_PROXY=proxy, http_proxy=proxy)

    assert ended == Ended(0, "", f"no sessions. `{own_command()} import FILE` makes one.\n")
