"""Claude Code session files: the last branch, side chains apart, one answer one message."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from hango.chain.formats.transcript import Format, ImportedAgent, ImportedSummary
from hango.errors import Invalid, Malformed, Reason
from tests.unit.chain.formats.imported import lines, read

TIME = "2026-11-30T09:00:00.500Z"


def user(uuid: str, parent: str | None, content: Any, **more: Any) -> dict[str, Any]:
    return {
        "type": "user", "uuid": uuid, "parentUuid": parent, "sessionId": "s", "timestamp": TIME,
        "message": {"role": "user", "content": content}, **more,
    }  # fmt: skip


def answer(
    uuid: str, parent: str | None, id: str, *blocks: Any, model: str = "claude-x", **more: Any
) -> dict[str, Any]:
    return {
        "type": "assistant", "uuid": uuid, "parentUuid": parent, "sessionId": "s",
        "message": {"id": id, "role": "assistant", "model": model, "content": list(blocks)}, **more,
    }  # fmt: skip


def text(said: str) -> dict[str, Any]:
    return {"type": "text", "text": said}


def use(id: str) -> dict[str, Any]:
    return {"type": "tool_use", "id": id, "name": "Read", "input": {"path": id}}


def result(id: str, content: Any = "ok") -> list[dict[str, Any]]:
    return [{"type": "tool_result", "tool_use_id": id, "content": content}]


def test_the_last_branch_is_the_session() -> None:
    """The tree of uuid and parentUuid: the branch of the last message counts, what was rewound is left out."""
    file = read(
        lines(
            user("u1", None, "Question"),
            answer("a1", "u1", "m1", text("First answer")),
            user("u2", "a1", "Dead end"),
            answer("a2", "u2", "m2", text("Dead answer")),
            user("u3", "a1", "Other way"),
            answer("a3", "u3", "m3", text("Last answer")),
        )
    )

    assert (file.format, file.agent) == (Format.CLAUDE_CODE, ImportedAgent(model="anthropic/claude-x"))
    assert file.only.texts == ["Question", "First answer", "Other way", "Last answer"]
    assert file.only.flags == []
    assert [message.model for message in file.only.messages] == [None, "anthropic/claude-x"] * 2
    assert file.only.messages[0].created_at == datetime(2026, 11, 30, 9, 0, 0, 500_000, tzinfo=UTC)


def test_lines_of_one_answer_are_one_message() -> None:
    """Streamed lines that share message.id are one message, also around results; a repeated block is there once."""
    file = read(
        lines(
            user("u1", None, "Read both."),
            answer("a1", "u1", "m1", {"type": "thinking", "thinking": "Hm.", "signature": "sig"}),
            answer("a2", "a1", "m1", text("Both.")),
            answer("a3", "a2", "m1", text("Both."), use("t1")),
            user("r1", "a3", result("t1")),
            answer("a4", "r1", "m1", use("t2")),
            user("r2", "a4", result("t2")),
            answer("a5", "r2", "m2", text("Done.")),
        )
    )

    assert file.only.texts == ["Read both.", "thinking|Both.|tool_use|tool_use", "tool_result", "tool_result", "Done."]
    assert file.only.flags == []


def test_parallel_calls_that_fork_the_tree_stay_whole() -> None:
    """Parallel calls hang their results beside the branch: calls and results of one answer all belong to it."""
    file = read(
        lines(
            user("u1", None, "Read both."),
            answer("a1", "u1", "m1", use("t1")),
            answer("a2", "a1", "m1", use("t2")),
            user("r1", "a1", result("t1", "one")),
            user("r2", "a2", result("t2", "two")),
            answer("a3", "r1", "m2", text("Done.")),
        )
    )

    contents = [(m.content[0].view.tool_use_id, len(m.content)) for m in file.only.messages]
    assert contents == [(None, 1), (None, 2), ("t1", 1), ("t2", 1), (None, 1)]
    assert file.only.flags == []


def test_side_chains_are_sessions_of_their_own() -> None:
    """Side chains come apart, named so and flagged; the main branch does not hold them."""
    file = read(
        lines(
            {"type": "summary", "summary": "Fix the stock list", "leafUuid": "a2"},
            user("u1", None, "Go."),
            answer("a1", "u1", "m1", use("task")),
            user("s1", None, "Sub task", isSidechain=True),
            answer("s2", "s1", "n1", text("Sub answer"), isSidechain=True, model="claude-y"),
            user("s3", None, "Other sub task", isSidechain=True, agentId="b7"),
            user("r1", "a1", result("task")),
            answer("a2", "r1", "m2", text("Done.")),
        )
    )

    assert file.agent.model == "anthropic/claude-x"
    assert [(session.title, session.texts, session.flags) for session in file.sessions] == [
        ("Fix the stock list", ["Go.", "tool_use", "tool_result", "Done."], []),
        ("Fix the stock list (side chain 1)", ["Sub task", "Sub answer"], [("message:1", "side_chain")]),
        ("Fix the stock list (side chain 2)", ["Other sub task"], [("message:1", "side_chain")]),
    ]


def test_a_file_of_a_side_chain_alone_is_imported() -> None:
    """The file of a subagent holds one side chain and nothing else."""
    file = read(lines(user("s1", None, "Sub", isSidechain=True), answer("s2", "s1", "n", text("A"), isSidechain=True)))

    assert (file.only.title, file.only.texts) == ("Side chain 1", ["Sub", "A"])
    assert file.agent.model == "anthropic/claude-x"


def test_bookkeeping_is_left_out_and_does_not_cut_the_branch() -> None:
    """Meta, system, progress and snapshot lines are no messages, and messages hang below them all the same."""
    file = read(
        lines(
            {"type": "file-history-snapshot", "messageId": "x", "snapshot": {"a": 1}},
            user("m0", None, "Caveat", isMeta=True),
            user("u1", "m0", "Question"),
            {"type": "system", "subtype": "local", "uuid": "y1", "parentUuid": "u1", "content": "x", "sessionId": "s"},
            {"type": "progress", "uuid": "p1", "parentUuid": "y1", "sessionId": "s", "data": {"message": "odd"}},
            {"type": "attachment", "uuid": "t1", "parentUuid": "p1", "sessionId": "s", "message": "not an object"},
            answer("a0", "p1", "e", text("API Error"), model="<synthetic>", isApiErrorMessage=True),
            answer("a1", "a0", "m1", text("Answer")),
            {"type": "queue-operation", "operation": "enqueue", "sessionId": "s", "content": "later"},
            {"type": "custom-title", "customTitle": "Named by hand", "sessionId": "s"},
        )
    )

    assert (file.only.title, file.only.texts) == ("Named by hand", ["Question", "Answer"])


@pytest.mark.parametrize("logical", ["a1", None, "gone"])
def test_a_compaction_is_the_summary_of_what_came_before(logical: str | None) -> None:
    """The boundary joins the messages before it; the compact summary becomes the session's summary."""
    file = read(
        lines(
            user("u1", None, "Before"),
            answer("a1", "u1", "m1", text("Old answer")),
            {
                "type": "system", "subtype": "compact_boundary", "uuid": "b1", "parentUuid": None,
                "logicalParentUuid": logical, "sessionId": "s", "content": "Conversation compacted",
            },
            user("c1", "b1", "What was said so far.", isCompactSummary=True),
            user("u2", "c1", "After"),
            answer("a2", "u2", "m2", text("New answer")),
        )
    )  # fmt: skip

    assert file.only.texts == ["Before", "Old answer", "After", "New answer"]
    assert file.only.summary == ImportedSummary("What was said so far.", through_seq=2)


def test_a_compact_summary_with_nothing_before_it_stays_a_message() -> None:
    """A file that begins with a compact summary keeps it as its first message."""
    file = read(lines(user("c1", None, "So far.", isCompactSummary=True), user("u1", "c1", "Go on.")))

    assert (file.only.texts, file.only.summary) == (["So far.", "Go on."], None)


def test_pictures_in_results_and_unknown_blocks_stay_as_they_came() -> None:
    """Tool results with images, digits of inputs and unknown blocks survive byte for byte."""
    picture = '[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"iVBO"}}]'
    call = '{"type":"tool_use","id":"t1","name":"Read","input":{"n":1.10}}'
    found = f'{{"type":"tool_result","tool_use_id":"t1","content":{picture}}}'
    file = read(
        json.dumps(user("u1", None, "Go.")) + "\n"
        f'{{"type":"assistant","uuid":"a1","parentUuid":"u1","sessionId":"s",'
        f'"message":{{"id":"m","role":"assistant","content":[{call},{{"type":"odd","data":[1.0]}}]}}}}\n'
        f'{{"type":"user","uuid":"r1","parentUuid":"a1","sessionId":"s","toolUseResult":"\\u0000",'
        f'"message":{{"role":"user","content":[{found}]}}}}\n'
    )

    assert [content for _, content in file.only.said[1:]] == [f'[{call},{{"type":"odd","data":[1.0]}}]', f"[{found}]"]


def test_lines_without_uuids_are_one_line_of_talk() -> None:
    """The stream of a session without a terminal names no parents: its lines follow each other."""
    file = read(
        lines(
            {"type": "system", "subtype": "init", "session_id": "s", "model": "claude-x"},
            {"type": "user", "session_id": "s", "message": {"role": "user", "content": "Hi"}},
            {"type": "assistant", "session_id": "s", "message": {"id": "m", "content": [text("Hello")]}},
            {"type": "result", "session_id": "s", "result": "Hello"},
        )
    )

    assert (file.format, file.only.texts) == (Format.CLAUDE_CODE, ["Hi", "Hello"])


def test_lines_in_another_order_and_twice_make_the_same_branch() -> None:
    """A parent may come after its child; a line that was written twice counts once."""
    first, second, third = user("u1", None, "1"), answer("a1", "u1", "m", text("2")), user("u2", "a1", "3")

    assert read(lines(second, first, second, third, first)).only.texts == ["1", "2", "3"]


def test_a_circle_of_parents_ends() -> None:
    """Lines that are each other's parents are read once."""
    assert read(lines(user("u1", "u2", "1"), user("u2", "u1", "2"))).only.texts == ["1", "2"]


@pytest.mark.parametrize(
    ("bad", "refusal", "reason"),
    [
        ('{"type":"user","uuid":', Malformed, Reason.BAD_LINE),
        ('{"type":"user","type":"user"}', Malformed, Reason.BAD_LINE),
        ("[1]", Invalid, Reason.BAD_LINE),
        ('{"type":"user","uuid":7,"sessionId":"s"}', Invalid, Reason.BAD_FIELD),
        ('{"type":"user","uuid":"u9","sessionId":"s","message":{"content":[{"type":1}]}}', Invalid, Reason.BAD_FIELD),
        ('{"type":"user","uuid":"u9","sessionId":"s","message":{"content":{"a":1}}}', Invalid, Reason.BAD_FIELD),
    ],
)
def test_a_line_that_cannot_be_read_is_named(bad: str, refusal: type[Exception], reason: Reason) -> None:
    """What cannot be is refused with the number of its line; blank lines count."""
    with pytest.raises(refusal) as raised:
        read(lines(user("u1", None, "1")) + "\n" + bad + "\n", Format.CLAUDE_CODE)

    assert "Line 3: " in str(raised.value)
    assert isinstance(raised.value, Malformed | Invalid)
    assert [each.reason for each in raised.value.errors] == [reason]


def test_bad_text_names_the_message() -> None:
    """NUL or half of a surrogate pair is refused with the part; in what is left out it does not matter."""
    good = lines({"type": "progress", "sessionId": "s", "uuid": "p", "data": "\ud800"}, user("u1", None, "1"))

    with pytest.raises(Invalid) as raised:
        read(good + lines(user("u2", "u1", "a\ud800")))

    assert read(good).only.texts == ["1"]
    assert [(each.reason, each.part) for each in raised.value.errors] == [(Reason.INVALID_TEXT, "message:2")]
