"""Runs in a worker: calls and tools in turn until the model stops, each written down before the next begins."""

from __future__ import annotations

import json
from dataclasses import replace
from hashlib import sha256
from typing import Any

import pytest

from hango.domain import Purpose, RunStatus
from hango.messages import MessageRole, StopReason, ToolSpec, Usage, text_block, tool_result
from hango.runs import Run, RunError
from hango.tries import TryUsage
from tests.conftest import Database
from tests.picking import MODEL, Work, in_turn
from tests.providers_server import FakeProvider, chat, says
from tests.rows import make_tenant
from tests.run_desk import RunDesk, make_run_desk
from tests.tries import Ledger, ledger, rows_of

ORDER = ToolSpec("order_parts", "Orders parts.")
DONE = says(chat("In drawer 4."))


@pytest.fixture
async def desk(work: Work) -> RunDesk:
    return await make_run_desk(work.deps, await make_tenant(work.store))


def calls(*tools: tuple[str, str, dict[str, Any]], text: str | None = None) -> Any:
    """An answer that calls tools: id, name and arguments of each."""
    made = [
        {"id": id, "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
        for id, name, arguments in tools
    ]
    return says(chat(text, finish_reason="tool_calls", tool_calls=made))


async def ended(work: Work, desk: RunDesk, text: str | None = "And the nuts?", **limits: float) -> Run:
    run_id = await desk.start(text, **limits)
    await work.picker.ring()
    return await desk.until(run_id)


def results(history: list[tuple[str, str]]) -> list[tuple[str, str, bool]]:
    """Call, text and whether it is an error of every result, in order."""
    blocks = [block for role, content in history if role == "user" for block in json.loads(content)]
    return [
        (one["tool_use_id"], text_of(one["content"]), one.get("is_error", False))
        for one in blocks
        if one["type"] == "tool_result"
    ]


def text_of(content: Any) -> str:
    return content if isinstance(content, str) else "".join(one["text"] for one in content)


async def test_a_run_appends_the_models_answer(work: Work, desk: RunDesk, fake: FakeProvider) -> None:
    """One call, its answer at the end of the session, and the run as its owner sees it."""
    run = await ended(work, desk)

    assert run == replace(
        run,
        session_id=desk.session_id,
        session_owner=desk.principal.user_id,
        status=RunStatus.SUCCEEDED,
        turns=1,
        model=MODEL,
        overrides=0,
        stop_reason=StopReason.END_TURN,
        usage=TryUsage(Usage(12, 3), None, estimated=False),
        error=None,
        attempts=1,
    )
    assert (await desk.history())[-2:] == [
        ("user", '[{"type":"text","text":"And the nuts?"}]'),
        ("assistant", '[{"type":"text","text":"In drawer 4."}]'),
    ]
    assert len(fake.seen) == 1
    assert await ledger(work.store, desk.principal) == Ledger(used=15, reserved=0)


async def test_tools_are_carried_out_between_calls(work: Work, desk: RunDesk, fake: FakeProvider) -> None:
    """The agent's files are read and written, and the results stand in the request of the next call."""
    fake.answer = in_turn(
        calls(("a", "read_file", {"path": "/notes.md"}), ("b", "write_file", {"path": "/new.md", "content": "Nuts."})),
        DONE,
    )

    run = await ended(work, desk)
    found = results(await desk.history())

    assert (run.status, run.turns) == (RunStatus.SUCCEEDED, 2)
    assert [(id, is_error) for id, _, is_error in found] == [("a", False), ("b", False)]
    assert "Forty bolts." in found[0][1]
    assert await desk.read("/new.md") == "Nuts."
    assert [one["tool_call_id"] for one in fake.seen[1].json["messages"] if one["role"] == "tool"] == ["a", "b"]


@pytest.mark.parametrize(
    ("name", "arguments"), [("read_file", {"path": 7}), ("no_such_tool", {}), ("write_file", {"path": "/x.md"})]
)
async def test_a_bad_call_gets_an_error_result(
    name: str, arguments: dict[str, Any], work: Work, desk: RunDesk, fake: FakeProvider
) -> None:
    """Arguments that the schema refuses and tools that are not there: a result that says so, and the run goes on."""
    fake.answer = in_turn(calls(("a", name, arguments)), DONE)

    run = await ended(work, desk)
    ((id, text, is_error),) = results(await desk.history())

    assert (run.status, run.error, run.turns) == (RunStatus.SUCCEEDED, None, 2)
    assert (id, bool(text), is_error) == ("a", True, True)


async def test_the_clients_tools_stop_the_run(work: Work, fake: FakeProvider) -> None:
    """`requires_action` with the built-in results already there; the client's results come, and a new run goes on."""
    desk = await with_client_tools(work)
    fake.answer = in_turn(calls(("a", "order_parts", {}), ("b", "read_file", {"path": "/notes.md"})), DONE)

    first = await ended(work, desk)
    after_first = await desk.history()
    await desk.append([tool_result("a", "Ordered.")])
    second = await ended(work, desk, None)

    assert (first.status, first.stop_reason, first.error) == (RunStatus.REQUIRES_ACTION, StopReason.TOOL_USE, None)
    assert [id for id, _, _ in results(after_first)] == ["b"]
    assert (second.status, second.turns) == (RunStatus.SUCCEEDED, 1)
    sent = [one["tool_call_id"] for one in fake.seen[1].json["messages"] if one["role"] == "tool"]
    assert sorted(sent) == ["a", "b"]


async def test_a_client_tool_alone_writes_no_results(work: Work, fake: FakeProvider) -> None:
    """The run ends with the call as the last message."""
    desk = await with_client_tools(work)
    fake.answer = calls(("a", "order_parts", {}))

    run = await ended(work, desk)

    assert run.status is RunStatus.REQUIRES_ACTION
    assert (await desk.history())[-1][0] == MessageRole.ASSISTANT
    assert await ledger(work.store, desk.principal) == Ledger(used=15, reserved=0)


async def with_client_tools(work: Work) -> RunDesk:
    return await make_run_desk(work.deps, await make_tenant(work.store), tools=(ORDER,))


async def test_a_subagent_answers_in_a_context_of_its_own(
    work: Work, desk: RunDesk, fake: FakeProvider, fresh_database: Database
) -> None:
    """It sees its task alone, without the tool that starts another; only its answer comes back; billed as subagent."""
    fake.answer = in_turn(
        calls(("a", "task", {"description": "Count the nuts."})),
        calls(("c", "read_file", {"path": "/notes.md"})),
        says(chat("Forty nuts.")),
        DONE,
    )

    run = await ended(work, desk)
    made = await desk.calls(run.id)

    assert (run.status, run.turns) == (RunStatus.SUCCEEDED, 2)
    assert [one.purpose for one in made] == [Purpose.RUN, Purpose.SUBAGENT, Purpose.SUBAGENT, Purpose.RUN]
    assert results(await desk.history()) == [("a", "Forty nuts.", False)]
    child = fake.seen[1].json
    assert [one["content"] for one in child["messages"] if one["role"] == "user"] == ["Count the nuts."]
    assert "task" not in [one["function"]["name"] for one in child["tools"]]
    assert rows_of(
        fresh_database.superuser_dsn,
        "select purpose, count(*), sum(input_tokens + output_tokens) as tokens from usage_records group by 1"
        " order by 1",
    ) == [
        {"purpose": "run", "count": 2, "tokens": 30},
        {"purpose": "subagent", "count": 2, "tokens": 30},
    ]


async def test_a_subagent_has_no_client_tools(work: Work, fake: FakeProvider) -> None:
    """It cannot ask the client: its call of such a tool gets an error result, and it goes on."""
    desk = await with_client_tools(work)
    fake.answer = in_turn(
        calls(("a", "task", {"description": "Order nuts."})),
        calls(("c", "order_parts", {})),
        says(chat("I could not.")),
        DONE,
    )

    run = await ended(work, desk)

    assert run.status is RunStatus.SUCCEEDED
    assert results(await desk.history()) == [("a", "I could not.", False)]


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (400, RunError.PROVIDER_REFUSED),
        (500, RunError.PROVIDER_ERROR),
    ],
)
async def test_a_providers_fault_ends_the_run(
    status: int, error: RunError, work: Work, desk: RunDesk, fake: FakeProvider
) -> None:
    """Failed with the closed code, called once, nothing appended, nothing billed."""
    fake.answer = says({}, status=status)
    before = len(await desk.history())

    run = await ended(work, desk)
    (call,) = await desk.calls(run.id)

    assert (run.status, run.error, run.turns) == (RunStatus.FAILED, error, 0)
    assert (call.error, call.usage) == (error, TryUsage(Usage(), 0.0, estimated=False))
    assert (len(await desk.history()), len(fake.seen)) == (before + 1, 1)
    assert await ledger(work.store, desk.principal) == Ledger(used=0, reserved=0)


async def test_a_call_that_was_not_taken_is_made_again(work: Work, desk: RunDesk, fake: FakeProvider) -> None:
    """429 waits inside the run; every attempt is a call of its own, the first ones unbilled."""
    busy = says({}, status=429, headers={"retry-after": "0"})
    fake.answer = in_turn(busy, DONE)

    run = await ended(work, desk)

    assert (run.status, run.turns, run.attempts) == (RunStatus.SUCCEEDED, 1, 1)
    assert [one.error for one in await desk.calls(run.id)] == [RunError.PROVIDER_RATE_LIMITED, None]
    assert await ledger(work.store, desk.principal) == Ledger(used=15, reserved=0)


async def test_a_later_run_sends_what_was_appended_meanwhile(work: Work, desk: RunDesk, fake: FakeProvider) -> None:
    """A worker that has read the session before reads what is new in it, and sends what it knows as it was."""
    await ended(work, desk)
    await desk.append([text_block("In which drawer?")], role=MessageRole.USER)
    await ended(work, desk, None)

    first, second = ([one for one in seen.json["messages"] if one["role"] != "system"] for seen in fake.seen)
    assert second == [
        *first,
        {"role": "assistant", "content": "In drawer 4."},
        {"role": "user", "content": "In which drawer?"},
    ]


async def test_subagents_whose_calls_have_one_id(work: Work, desk: RunDesk, fake: FakeProvider) -> None:
    """Each call gets its own subagent and its answer, whatever ids a provider gives: one twice, one of any length, or
    one that comes back for another tool inside a subagent."""
    long = "".join(sha256(bytes([n])).hexdigest() for n in range(150))
    fake.answer = in_turn(
        calls(
            ("a", "task", {"description": "Count the nuts."}),
            ("a", "task", {"description": "Count the bolts."}),
            (long, "task", {"description": "Count the nails."}),
        ),
        says(chat("Twelve nuts.")),
        calls(("b", "ls", {"path": "/"})),
        calls(("a", "read_file", {"path": "/notes.md"})),
        says(chat("Forty bolts, say the notes.")),
        says(chat("No nails.")),
        DONE,
    )

    run = await ended(work, desk)

    assert (run.status, run.error, run.turns) == (RunStatus.SUCCEEDED, None, 2)
    assert results(await desk.history()) == [
        ("a", "Twelve nuts.", False),
        ("a", "Forty bolts, say the notes.", False),
        (long, "No nails.", False),
    ]
    _, read = [one for one in fake.seen[4].json["messages"] if one["role"] == "tool"]
    assert text_of(read["content"]) == "Forty bolts."
