"""Saved overrides through HTTP: what is answered, what is kept, and what the next request then holds."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import psycopg
import pytest

from hango.config import SecretUrl, Settings
from tests.conftest import Database
from tests.desks import HISTORY, MEMORY, Desk, as_json, exclude, make_desk, named, put, swap, without_times
from tests.people import Api, Person, serve


@pytest.fixture
async def desk(caller: Person) -> Desk:
    return await make_desk(caller)


async def test_excluding_a_call_takes_its_result_and_says_so(desk: Desk) -> None:
    """Excluding the message with a tool_use also excludes its tool_result message, and the PUT response lists it."""
    made = as_json(await put(desk, desk.of_session, exclude("message:2")))

    row = {"part": "message:2", "action": "exclude", "replacement": None, "stale": False}
    row |= {"created_by": desk.owner.user_id, "created_at": made["overrides"][0]["created_at"]}
    whole = {"overrides": [row], "added": [{"part": "message:3", "because": "message:2"}], "stale": []}
    assert made == whole
    assert as_json(await desk.owner.get(desk.of_session)) == whole
    assert [id for id in await desk.sent() if id.startswith("message")] == ["message:1", "message:4", "message:5"]


async def test_the_excluded_message_is_still_in_the_history(desk: Desk) -> None:
    """With message:5 excluded, the next model call does not contain it, and the messages still return it."""
    before = await desk.stored()

    as_json(await put(desk, desk.of_session, exclude("message:5")))

    assert b"nuts" not in await desk.wire()
    assert await desk.stored() == before
    assert b"nuts" in before


async def test_a_later_result_leaves_too_without_a_new_put(desk: Desk) -> None:
    """Partners are worked out from the history at each use; only what a person named is stored."""
    call = {"type": "tool_use", "id": "call_1", "name": "look", "input": {}}
    await desk.append({"role": "assistant", "content": [call]})
    as_json(await put(desk, desk.of_session, exclude("message:6")))
    result = {"type": "tool_result", "tool_use_id": "call_1", "content": "Ten nuts."}
    await desk.append({"role": "user", "content": [result]})

    now = as_json(await desk.owner.get(desk.of_session))

    assert [one["part"] for one in now["overrides"]] == ["message:6"]
    assert now["added"] == [{"part": "message:7", "because": "message:6"}]


async def test_an_agents_set_holds_in_every_session(desk: Desk) -> None:
    """The agent's overrides for system and tool parts apply to every session of the agent."""
    other = await desk.owner.session(desk.agent_id, messages=HISTORY[:1])
    twin = replace(desk, session_id=other["id"])

    as_json(await put(desk, desk.of_agent, [*exclude("tool:look"), *swap("system:agent", "You count.")]))

    for one in (desk, twin):
        wire = await one.wire()
        assert b"Looks into a drawer" not in wire
        assert b"You keep the stock" not in wire
        assert b"You count." in wire
    assert as_json(await desk.owner.get(desk.of_session))["overrides"] == []


async def test_an_excluded_tool_stays_out_though_a_skill_names_it(desk: Desk) -> None:
    """An excluded tool is absent from the request's tool list even when a skill's allowed-tools names it."""
    skill = "---\nname: count\ndescription: Counts.\nallowed-tools: look count\n---\nCount.\n"
    await desk.write("/skills/count/SKILL.md", skill)

    as_json(await put(desk, desk.of_agent, exclude("tool:look")))

    assert [id for id in await desk.sent() if id.startswith("tool")] == ["tool:count", "tool:load_skill"]


async def test_a_clear_gives_the_first_bytes_back(desk: Desk) -> None:
    """An empty list clears: after any PUT the request is that of before, to the byte."""
    first = await desk.wire()
    sets = {
        desk.of_session: [exclude("message:2"), swap("message:4", "Forty."), exclude("message:1", "message:2")],
        desk.of_agent: [exclude("tool:look", "tool:count"), swap("system:agent", "You count.")],
    }
    for path, wanted in sets.items():
        for overrides in wanted:
            if (await put(desk, path, overrides)).is_success:
                assert await desk.wire() != first
            cleared = as_json(await put(desk, path, []))
            assert cleared == {"overrides": [], "added": [], "stale": []}
            assert await desk.wire() == first


async def test_what_is_saved_in_tokens_is_what_the_parts_cost(desk: Desk) -> None:
    """before - after is the sum of the excluded parts' tokens."""
    as_json(await put(desk, desk.of_session, exclude("message:2")))
    as_json(await put(desk, desk.of_agent, exclude("tool:count", f"system:memory:{MEMORY}")))

    shot = await desk.context()

    gone = [part for group in ("system", "tools", "messages") for part in shot[group] if not part["included"]]
    assert [part["id"] for part in gone] == [f"system:memory:{MEMORY}", "tool:count", "message:2", "message:3"]
    assert shot["total_before"] - shot["total_after"] == sum(part["tokens"] for part in gone) > 0


@pytest.mark.parametrize(
    ("target", "overrides", "reason", "part"),
    [
        ("session", exclude("message:1", "message:5"), "no_user_message", "message:5"),
        ("session", exclude("message:1", "message:2"), "starts_with_assistant", "message:1"),
        ("session", exclude("message:6"), "unknown_part", "message:6"),
        ("session", exclude("message:0"), "bad_part_id", "message:0"),
        ("session", exclude("message:+1"), "bad_part_id", "message:+1"),
        ("session", exclude("extra"), "bad_part_id", "extra"),
        ("session", exclude("message:2", "message:2"), "duplicate_part", "message:2"),
        ("session", [*exclude("message:4"), *swap("message:4", "x")], "duplicate_part", "message:4"),
        ("session", swap("message:4", " \n\u00a0"), "empty_replacement", "message:4"),
        ("session", exclude("tool:look"), "wrong_scope", "tool:look"),
        ("session", exclude("system:agent"), "wrong_scope", "system:agent"),
        ("agent", exclude("message:1"), "wrong_scope", "message:1"),
        ("agent", exclude("summary"), "wrong_scope", "summary"),
        ("agent", swap("tool:look", "{}"), "replace_tool", "tool:look"),
        ("agent", swap("system:agent", ""), "empty_replacement", "system:agent"),
        ("agent", exclude("tool:"), "bad_part_id", "tool:"),
    ],
)
async def test_a_set_that_cannot_be_is_refused_by_part(
    target: str, overrides: list[dict[str, str]], reason: str, part: str, desk: Desk
) -> None:
    """A broken rule is a 422 with one reason that names the part at fault; the set that was there stays."""
    path = desk.of_agent if target == "agent" else desk.of_session
    kept = as_json(await put(desk, path, exclude("tool:count" if target == "agent" else "message:2")))

    for query in ("", "?check=true"):
        assert named(await put(desk, path + query, overrides)) == (422, reason, [(reason, part)])

    assert as_json(await desk.owner.get(path)) == kept


async def test_a_message_with_two_results_cannot_be_replaced(desk: Desk) -> None:
    """Where a replacement would break a pair it is refused: with several results, and with thinking alone."""
    calls = [{"type": "tool_use", "id": f"call_{n}", "name": "look", "input": {}} for n in (1, 2)]
    results = [{"type": "tool_result", "tool_use_id": f"call_{n}", "content": "x"} for n in (1, 2)]
    await desk.append({"role": "assistant", "content": calls}, {"role": "user", "content": results})

    refused = await put(desk, desk.of_session, swap("message:7", "Both are empty."))

    assert named(refused) == (422, "replace_breaks_pair", [("replace_breaks_pair", "message:7")])


@pytest.mark.parametrize(
    ("override", "reason", "pointer"),
    [
        ({"part": "message:4", "action": "replace"}, "bad_field", "/overrides/0/replacement"),
        ({"part": "message:4", "action": "replace", "replacement": None}, "bad_field", "/overrides/0/replacement"),
        ({"part": "message:4", "action": "exclude", "replacement": "x"}, "bad_field", "/overrides/0/replacement"),
        ({"part": "message:4", "action": "drop"}, "bad_field", "/overrides/0/action"),
        ({"part": 4, "action": "exclude"}, "bad_field", "/overrides/0/part"),
        ({"action": "exclude"}, "missing_field", "/overrides/0/part"),
        ({"part": "message:4", "action": "exclude", "why": "x"}, "unknown_field", "/overrides/0/why"),
        (
            {"part": "message:4", "action": "replace", "replacement": "a\x00"},
            "invalid_text",
            "/overrides/0/replacement",
        ),
        ({"part": "message:4\x00", "action": "exclude"}, "invalid_text", "/overrides/0/part"),
    ],
)
async def test_a_body_that_does_not_fit_is_refused_by_place(
    override: dict[str, Any], reason: str, pointer: str, desk: Desk
) -> None:
    """A replacement goes with `replace` alone; what does not fit is named by a pointer."""
    reply = await desk.owner.put(desk.of_session, json={"overrides": [override]})

    errors = reply.json()["errors"]
    assert (reply.status_code, [(one["reason"], one["pointer"]) for one in errors]) == (422, [(reason, pointer)])


async def test_half_a_letter_is_refused(desk: Desk) -> None:
    """A lone surrogate in a replacement is 422 `invalid_text`, never a 500."""
    body = b'{"overrides": [{"part": "message:4", "action": "replace", "replacement": "Hello \\ud83d"}]}'

    reply = await desk.owner.put(desk.of_session, content=body, headers={"content-type": "application/json"})

    assert (reply.status_code, reply.json()["code"]) == (422, "invalid_text")


async def test_a_set_has_at_most_5000_parts(desk: Desk) -> None:
    """5,000 overrides are taken and 5,001 are not."""
    many = exclude(*[f"tool:t{n}" for n in range(5001)])

    assert (await put(desk, desk.of_agent, many)).status_code == 422
    taken = as_json(await put(desk, desk.of_agent, many[:5000]))
    assert (len(taken["overrides"]), len(taken["stale"])) == (5000, 5000)


async def test_the_tag_is_of_the_stored_set(desk: Desk) -> None:
    """GET and PUT replies carry a strong ETag over the stored set: equal sets, equal tags, in any order."""
    empty = (await desk.owner.get(desk.of_session)).headers["etag"]
    first = await put(desk, desk.of_session, exclude("message:2", "message:4"))
    turned = await put(desk, desk.of_session, exclude("message:4", "message:2"))
    read = await desk.owner.get(desk.of_session)
    other = await put(desk, desk.of_session, swap("message:4", "Forty."))
    another = await put(desk, desk.of_session, swap("message:4", "Fifty."))

    tags = [reply.headers["etag"] for reply in (first, turned, read, other, another)]
    assert tags[0] == tags[1] == tags[2]
    assert len({empty, *tags}) == 4
    assert all(tag[0] == tag[-1] == '"' for tag in tags)
    assert (await put(desk, desk.of_session, [])).headers["etag"] == empty


async def test_if_match_is_honoured(desk: Desk) -> None:
    """If-Match: the current tag and `*` pass; an old, a weak or a broken one is a 412 that changes nothing."""
    old = (await desk.owner.get(desk.of_session)).headers["etag"]
    now = (await put(desk, desk.of_session, exclude("message:2"), headers={"If-Match": old})).headers["etag"]
    wanted = exclude("message:4")

    for bad in (old, f"W/{now}", now.strip('"'), '"x", "y"', ""):
        for query in ("", "?check=true"):
            refused = await put(desk, desk.of_session + query, wanted, headers={"If-Match": bad})
            assert (refused.status_code, refused.json()["code"]) == (412, "precondition_failed")
    assert (await desk.owner.get(desk.of_session)).headers["etag"] == now

    for good in ("*", f'"x", {now}', now):
        assert (await put(desk, desk.of_session, exclude("message:2"), headers={"If-Match": good})).status_code == 200


async def test_of_two_puts_at_once_one_wins(desk: Desk) -> None:
    """Two PUTs at once: one wins, the other gets 412 with If-Match."""
    tag = (await desk.owner.get(desk.of_session)).headers["etag"]
    sets = [exclude("message:2"), exclude("message:4"), swap("message:4", "Forty."), exclude("message:5")]

    replies = await asyncio.gather(*[put(desk, desk.of_session, one, headers={"If-Match": tag}) for one in sets])

    assert sorted(reply.status_code for reply in replies) == [200, 412, 412, 412]
    winner = next(reply for reply in replies if reply.status_code == 200)
    assert as_json(await desk.owner.get(desk.of_session)) == winner.json()


async def test_of_two_puts_at_once_the_later_stands_whole(desk: Desk) -> None:
    """Without If-Match the later set stands whole: never a mixture of two."""
    sets = [exclude("message:2", "message:4"), exclude("message:4", "message:5"), swap("message:1", "Bolts?")]

    replies = await asyncio.gather(*[put(desk, desk.of_session, one) for one in sets])

    assert [reply.status_code for reply in replies] == [200, 200, 200]
    assert as_json(await desk.owner.get(desk.of_session)) in [reply.json() for reply in replies]


async def test_check_answers_the_same_and_stores_nothing(desk: Desk) -> None:
    """`?check=true` answers the same and stores nothing: no row, no audit event, the stored set's tag."""
    for path, overrides in (
        (desk.of_session, [*exclude("message:2"), *swap("message:4", "Forty.")]),
        (desk.of_agent, [*swap("system:agent", "You count."), *exclude("tool:gone")]),
    ):
        before, audit = await desk.owner.get(path), await desk.owner.audit()

        checked = await put(desk, f"{path}?check=true", overrides)

        after = await desk.owner.get(path)
        assert (after.content, after.headers["etag"]) == (before.content, before.headers["etag"])
        assert checked.headers["etag"] == before.headers["etag"]
        assert await desk.owner.audit() == audit
        assert without_times(as_json(checked)) == without_times(as_json(await put(desk, path, overrides)))


async def test_a_failure_in_the_middle_keeps_the_old_set(settings: Settings, fresh_database: Database) -> None:
    """A PUT is one transaction: when its audit row cannot be written, the set of before stays."""
    async with serve(replace(settings, database_url=SecretUrl(fresh_database.app_dsn))) as api:
        desk = await make_desk(await api.admin())
        old = as_json(await put(desk, desk.of_session, exclude("message:2")))
        with psycopg.connect(fresh_database.superuser_dsn, autocommit=True) as connection:
            connection.execute("revoke insert on audit_events from hango_app")

        failed = await put(desk, desk.of_session, exclude("message:4"))

        assert failed.status_code >= 500
        assert as_json(await desk.owner.get(desk.of_session)) == old


async def test_both_puts_are_in_the_audit_log(desk: Desk) -> None:
    """Both PUT routes write a context.override audit row; no replacement text appears in its detail."""
    as_json(await put(desk, desk.of_session, [*exclude("message:2"), *swap("message:4", "canary-41c9")]))
    as_json(await put(desk, desk.of_agent, swap("system:agent", "canary-77d0")))
    as_json(await put(desk, desk.of_agent, []))

    log = await desk.owner.get("/v1/audit")
    rows = [(row["target_kind"], row["target_id"], row["detail"]) for row in reversed(as_json(log)["data"])]

    of_session = [{"part": "message:2", "action": "exclude"}, {"part": "message:4", "action": "replace"}]
    assert [row for row in rows if "overrides" in row[2]] == [
        ("session", desk.session_id, {"overrides": of_session}),
        ("agent", desk.agent_id, {"overrides": [{"part": "system:agent", "action": "replace"}]}),
        ("agent", desk.agent_id, {"overrides": []}),
    ]
    assert "canary" not in log.text


async def test_another_members_agent_and_session_are_not_there(api: Api) -> None:
    """A member changing another member's agent overrides, or session's, gets a 404 before the body is looked at."""
    admin = await api.admin()
    desk = await make_desk(await admin.member())
    other = await admin.member()

    for path, part in ((desk.of_agent, "tool:look"), (desk.of_session, "message:2")):
        for body in ({"overrides": exclude(part)}, {"overrides": "x"}):
            assert (await other.put(path, json=body)).status_code == 404
        assert as_json(await desk.owner.get(path))["overrides"] == []
        assert (await admin.put(path, json={"overrides": exclude(part)})).status_code == 200


async def test_the_longest_part_can_be_saved(desk: Desk) -> None:
    """The longest path of a file is a part that an override can be saved for, whatever its letters."""
    # Letters that no compression makes shorter: a key of an index has its bound in bytes.
    path = "/" + "".join(chr(0x20000 + n * n * 7919 % 40000) for n in range(511))
    await desk.change(memory=[path])
    await desk.write(path, "The owner is away.")

    made = as_json(await put(desk, desk.of_agent, exclude(f"system:memory:{path}")))

    assert ([one["part"] for one in made["overrides"]], made["stale"]) == ([f"system:memory:{path}"], [])
    for letters in ("字字", "字" * 400):
        refused = await put(desk, desk.of_agent, exclude(f"system:memory:{path}{letters * 100}"))
        assert (refused.status_code, refused.json()["code"]) == (422, "bad_part_id")
        written = await desk.owner.put(f"/v1/agents/{desk.agent_id}/files{path}{letters}", json={"content": "x"})
        assert written.status_code == 422
