"""`hango run`, `chat` and what the model saw then, from end to end: commands, an API and a worker, a scripted model."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

from hango.cli.own_command import line, own_command
from hango.cli.past_calls import INEXACT
from tests import cli_place, live
from tests.command_line import Hango
from tests.conftest import Database
from tests.providers_server import message
from tests.services import Services
from tests.unit.cli.api import Answer, Scripted, reply, serving

MODEL = "anthropic/claude-sonnet-4-5"
MODEL_CALL = "POST /v1/messages"
LIST = "drawer  item\n     3  forty bolts\n     4  nuts"
FORTY = "Forty bolts are in drawer 3."
ORDER_PARTS = {
    "name": "order_parts",
    "description": "Order parts.",
    "input_schema": {"type": "object", "properties": {"count": {"type": "integer"}}},
}


@pytest.fixture(scope="module")
def model() -> Iterator[Scripted]:
    """A provider; a test says what it answers."""
    with serving({}) as made:
        yield made


@pytest.fixture(scope="module")
def place(
    services: Services, redis_url: str, tmp_path_factory: pytest.TempPathFactory, model: Scripted
) -> Iterator[dict[str, str]]:
    keys = {"HANGO_ANTHROPIC_API_KEY": "a key", "HANGO_ANTHROPIC_BASE_URL": model.url}
    with cli_place.own_place(services, redis_url, tmp_path_factory.mktemp("home"), **keys) as made:
        yield made


@pytest.fixture(scope="module")
def hango(place: dict[str, str]) -> Iterator[Hango]:
    with cli_place.command_line(place) as made:
        yield made


@pytest.fixture(scope="module")
def worker(place: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with cli_place.working(place, tmp_path_factory.mktemp("worker") / "log"):
        yield


@dataclass(frozen=True)
class Shop:
    """A session of an agent with files and a tool of the client, and the commands on it."""

    hango: Hango
    agent_id: str
    session_id: str
    model: Scripted

    def __call__(self, *words: str, given: bytes = b"") -> tuple[int, list[str], list[str]]:
        """Exit code, lines of stdout, lines of stderr."""
        code, out, err = self.hango(*words, given=given, columns=80)
        return code, out.splitlines(), err.splitlines()

    def run(self, *words: str) -> tuple[int, list[str], list[str]]:
        return self("run", "--session", self.session_id, *words)

    def answers(self, *answers: dict[str, Any] | Answer) -> None:
        """What the model says from now on, one call after the other."""
        assert isinstance(self.model.answers, dict)
        self.model.answers[MODEL_CALL] = [one if isinstance(one, Answer) else reply(one) for one in answers]

    def get(self, path: str) -> dict[str, Any]:
        return dict(json.loads(self.hango.get(path)))

    def last_run(self) -> dict[str, Any]:
        return dict(self.get(f"/v1/sessions/{self.session_id}/runs")["data"][0])


@pytest.fixture
def shop(hango: Hango, model: Scripted) -> Shop:
    agent = hango.make(
        "/v1/agents", name="stock", model=MODEL, builtin=["filesystem"], tools=[ORDER_PARTS], max_output_tokens=1000
    )
    with live.client(hango.url, hango.key) as client:
        client.put(f"/v1/agents/{agent}/files/stock/list.txt", json={"content": LIST}).raise_for_status()
    return Shop(hango, agent, hango.make("/v1/sessions", agent_id=agent, title="Bolts"), model)


def use(id_: str, name: str, **given: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": id_, "name": name, "input": given}


def reads(*more: dict[str, Any]) -> dict[str, Any]:
    """The model reads the list."""
    return message("I look.", use("toolu_1", "read_file", path="/stock/list.txt"), *more, stop_reason="tool_use")


@pytest.mark.usefixtures("worker")
def test_a_run_with_tools(shop: Shop) -> None:
    """run prints the run's messages and what it took, --show the same with the question, runs lists it, --json is the
    API's reply."""
    shop.answers(reads(), message(FORTY))
    code, out, err = shop.run("How many bolts?")
    ran = shop.last_run()
    shown = shop("run", "--show", ran["id"])
    listed = shop("runs", "--session", shop.session_id)
    json_ = shop("run", "--show", ran["id"], "--json")

    said = ["I look.", "", '→ read_file({"path":"/stock/list.txt"})', *marked(LIST), "", FORTY, ""]
    assert (code, err) == (0, [])
    assert out[:-2] == said
    assert out[-2].startswith("succeeded · end_turn · 2 turns · ")
    assert " · 24 in, 6 out" in out[-2]
    assert shown == (0, ["> How many bolts?", "", *out], [])
    assert listed[1][1].split()[0] == ran["id"]
    assert listed[1][1].split()[-2:] == ["2", "24"]
    assert json.loads(json_[1][0]) == ran
    assert [one["role"] for one in shop.get(f"/v1/sessions/{shop.session_id}/messages")["data"]] == [
        "user",
        "assistant",
        "user",
        "assistant",
    ]


def marked(text: str) -> list[str]:
    first, *rest = text.split("\n")
    return [f"← {first}", *(f"  {line}" for line in rest)]


@pytest.mark.usefixtures("worker")
def test_the_clients_tools_are_answered(shop: Shop) -> None:
    """A run stops for the client's tools and names the command that answers them; that one goes on to the end."""
    shop.answers(reads(use("toolu_2", "order_parts", count=50)), message("Ordered."))
    code, out, err = shop.run("Order 50")
    stopped = shop.last_run()
    answered = shop.run("--result", "toolu_2=Order 7781")

    assert (code, stopped["status"]) == (0, "requires_action")
    assert "  yours to run and to answer: toolu_2" in out
    answer = line("run", "--session", shop.session_id, "--result", "toolu_2=TEXT")
    assert err == ["the run waits for a tool of yours. Run it, then answer:", answer]
    assert (answered[0], answered[1][0]) == (0, "Ordered.")
    sent = json.loads(shop.model.asked[-1].body)["messages"][-1]["content"]
    assert [(one["tool_use_id"], "7781" in json.dumps(one)) for one in sent] == [("toolu_1", False), ("toolu_2", True)]
    assert shop("run", "--show", stopped["id"])[2] == []


@pytest.mark.usefixtures("worker")
def test_what_the_model_saw_then(shop: Shop) -> None:
    """calls lists a run's calls; show says that one is as it was sent, though the agent has changed since; diff shows
    what the next call sent more, and a broken cache against another run's call."""
    shop.answers(reads(), message(FORTY), message("None."))
    shop.run("How many bolts?")
    first = shop.last_run()["id"]
    with live.client(shop.hango.url, shop.hango.key) as client:
        client.patch(f"/v1/agents/{shop.agent_id}", json={"system_prompt": "Be short."}).raise_for_status()
    shop.run("And nuts?")
    second = shop.last_run()["id"]

    calls = shop("context", "calls", "--run", first)
    shown = shop("context", "show", "--run", first, "--call", "2")
    next_ = shop("context", "diff", "--run", first, "--call", "1")
    other = shop("context", "diff", "--run", first, "--call", "2", "--against", f"{second}:1")
    last = shop("context", "diff", "--run", first, "--call", "2")

    assert [row.split()[:3] for row in calls[1][1:]] == [["1", "run", "12"], ["2", "run", "12"]]
    assert (calls[0], calls[2], shown[0], shown[2]) == (0, [], 0, [])
    assert shown[1][0] == f"call 2 of run {first}: the request as it was sent"
    parts = {row.split()[1] for row in shown[1] if row.startswith(" [x] ")}
    assert {"message:1", "message:3", "tool:order_parts"} <= parts
    assert "message:4" not in parts
    assert "system:agent" not in parts
    assert [row.split()[:2] for row in next_[1][2:4]] == [["+", "message:2"], ["+", "message:3"]]
    assert next_[1][-1].startswith("cached prefix: holds;")
    assert "cached prefix: broken at system:agent: it was not there before" in other[1]
    assert (last[0], last[1]) == (1, [])
    with live.client(shop.hango.url, shop.hango.key) as client:
        found = client.get(f"/v1/runs/{first}/calls/1/context", params={"against": "next"}).content
    assert shop("context", "diff", "--run", first, "--call", "1", "--json")[1] == [found.decode()]


@pytest.mark.usefixtures("worker")
def test_a_call_of_another_release(shop: Shop, services: Services, place: dict[str, str]) -> None:
    """A call whose request another release made in another way is listed so; one sentence says it where it is shown."""
    shop.answers(message(FORTY))
    shop.run("How many bolts?")
    run_id = shop.last_run()["id"]
    database = Database.of(services, str(conninfo_to_dict(place["HANGO_DATABASE_URL"])["dbname"]))
    with psycopg.connect(database.superuser_dsn) as conn:
        conn.execute("update run_calls set version = '0.0.1', request_sha256 = 'x' where run_id = %s", (run_id,))
    listed = shop("context", "calls", "--run", run_id)
    shown = shop("context", "show", "--run", run_id, "--call", "1")

    assert listed[2] == ["call 1 was made by another release of hango: `show` says whether it is rebuilt exactly."]
    head = shown[1][: next(at for at, row in enumerate(shown[1]) if row.startswith("stock"))]
    assert (shown[0], " ".join(head)) == (0, f"call 1 of run {run_id} {INEXACT}")


@pytest.mark.usefixtures("worker")
def test_older_messages_are_summed_up(shop: Shop) -> None:
    """compact --preview saves nothing and says what is missing, --apply --show saves that one, --undo takes it back."""
    messages = [{"role": ("user", "assistant")[n % 2], "content": f"word {n + 1000}"} for n in range(30)]
    session = shop.hango.make("/v1/sessions", agent_id=shop.agent_id, messages=messages)
    compact = ("context", "compact", "--session", session)
    shop.answers(message("It began with 1000."))
    code, out, err = shop(*compact, "--preview")
    before = shop.get(f"/v1/sessions/{session}")["summary"]
    preview = err[-1].rsplit(" ", 1)[1]
    saved = shop(*compact, "--apply", "--show", preview, "--yes")
    after = shop.get(f"/v1/sessions/{session}")["summary"]
    undone = shop(*compact, "--undo")

    assert (code, before, out[2]) == (0, None, "It began with 1000.")
    assert out[0] == f"summary of message:1 to message:{after['through_seq']}"
    assert "1001" in out[5]
    assert "1000" not in out[5]
    assert (saved[0], saved[1]) == (0, out)
    assert after["text"] == "It began with 1000."
    assert (undone[0], undone[2][1], shop.get(f"/v1/sessions/{session}")["summary"]) == (
        0,
        "its messages are sent again.",
        None,
    )
    assert [one.line for one in shop.model.asked].count(MODEL_CALL) >= 1
    purposes = {row["purpose"] for row in shop.get(f"/v1/usage/records?session_id={session}")["data"]}
    assert purposes == {"summary"}


@pytest.mark.usefixtures("worker")
def test_a_chat_from_a_pipe(shop: Shop) -> None:
    """Each line is answered; a run that fails ends the chat with its sentence."""
    shop.answers(message("One."), message("Two."), Answer(b"{}", 400))
    code, out, err = shop("chat", "--session", shop.session_id, given=b"a\nb\nc\nd\n")

    assert code == 1
    assert [words for words in out if words in {"One.", "Two."}] == ["One.", "Two."]
    assert len(err) == 1
    assert err[0].startswith("hango: the run failed: ")
    assert len(shop.get(f"/v1/sessions/{shop.session_id}/runs")["data"]) == 3


@pytest.mark.usefixtures("worker")
def test_a_run_that_takes_long(hango: Hango, shop: Shop) -> None:
    """A wait that runs out names the run; a second one is refused while it is there; --cancel ends it."""
    shop.answers(Answer(b"", seconds=20))
    code, out, err = shop.run("One", "--timeout", "1")
    run_id = err[1].rsplit(" ", 1)[1]
    again = shop.run("Two")
    cancelled = shop("run", "--cancel", run_id)
    shown = shop("run", "--show", run_id)

    assert (code, out, err[0]) == (3, [], "hango: the run did not end in time and goes on.")
    assert (again[0], again[1], len(again[2])) == (1, [], 1)
    assert cancelled[0] == 0
    assert (shown[0], shown[2]) == (1, ["hango: The run was cancelled. (cancelled)"])
    assert hango.member()("run", "--show", run_id)[2] == (
        f"hango: no run {run_id} that you may read. `{own_command()} runs --session ID` lists them.\n"
    )
