"""Each key of a case's `then` as one check of an outcome. What is said in prose is held by `always`."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from wcwidth import wcswidth

from hango.dialect import Dialect
from hango.messages import Message, MessageRole, Request
from tests.cases.outcome import Outcome, as_blocks
from tests.strict_wire import faults

T = TypeVar("T", bound=Outcome)

ANY_BLOCK = Dialect("anthropic", None, True, True, False, True)
BROUGHT_BY_SKILLS = "tool:load_skill"
BIDI = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
TOOL_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}", re.ASCII)
# Said for readers, and held by `always` or by another key.
FOR_READERS = frozenset({"note", "never", "should", "why", "wire", "same_work"})


def check(outcome: Outcome, then: Mapping[str, Any]) -> None:
    """Raise AssertionError where the outcome is not as `then` says. A key that nobody knows is a failure."""
    always(outcome)
    compare(outcome, then, CHECKS)


def compare(outcome: T, then: Mapping[str, Any], checks: Mapping[str, Callable[[T, Any], None]]) -> None:
    """The same with the given checks."""
    for key, wanted in then.items():
        if key == "any_of":
            any_of(outcome, wanted, checks)
        elif key not in FOR_READERS or not isinstance(wanted, str | list):
            checks[key](outcome, wanted)


def any_of(outcome: T, choices: list[dict[str, Any]], checks: Mapping[str, Callable[[T, Any], None]]) -> None:
    wrong = []
    for choice in choices:
        try:
            compare(outcome, choice, checks)
        except AssertionError as error:
            wrong.append(str(error))
        else:
            return
    raise AssertionError("none of: " + " | ".join(wrong))


def always(outcome: Outcome) -> None:
    """What holds of every answer: no 5xx; of every snapshot: it adds up and names what is not sent; of every body:
    a strict provider takes it."""
    assert outcome.reply is None or outcome.reply.status_code < 500, outcome.body
    if not outcome.accepted or outcome.made is None:
        return
    snapshot = outcome.snapshot
    groups = [snapshot["system"], snapshot["tools"], snapshot["messages"]]
    after = [sum(part["tokens"] for part in group if part["included"]) for group in groups]
    before = [sum(part.get("tokens_original", part["tokens"]) for part in group) for group in groups]
    assert [snapshot["groups"][name] for name in ("system", "tools", "messages")] == [
        {"before": b, "after": a} for b, a in zip(before, after, strict=True)
    ]
    assert (snapshot["estimate_before"], snapshot["estimate_after"]) == (sum(before), sum(after))
    if snapshot["counted"] == "estimate":
        assert (snapshot["total_before"], snapshot["total_after"]) == (sum(before), sum(after))
    named = {problem.get("part") for problem in snapshot["problems"]}
    assert {part["id"] for part in outcome.parts if part["included"] and not part["sent"]} <= named
    assert not [part for part in outcome.parts if part["included"] and not part["sent"] and part["tokens"]]
    assert all(len(part["preview"]) <= 200 for part in outcome.parts)
    _wire_is_sound(outcome)


def _wire_is_sound(outcome: Outcome) -> None:
    wire, provider = outcome.wire, outcome.snapshot["provider"]
    assert wire["messages"] or not any(part["sent"] for part in outcome.snapshot["messages"])
    if provider == "openai":
        names = [tool["function"]["name"] for tool in wire.get("tools", ()) if tool["type"] == "function"]
    else:
        names = [tool["name"] for tool in wire.get("tools", ())]
        messages = tuple(Message(MessageRole(role), as_blocks(blocks)) for role, blocks in outcome.wire_messages)
        request = Request("m", (), (), messages, 1)
        assert faults(request, ANY_BLOCK, outcome.snapshot["model"]) == []
    assert len(set(names)) == len(names)
    assert all(TOOL_NAME.fullmatch(name) for name in names), names
    marked = list(_marked(wire))
    assert len(marked) <= 4
    assert not [block for block in marked if "text" in block and not block["text"].strip()]


def _marked(value: Any) -> list[dict[str, Any]]:
    """Every object with a cache mark."""
    if isinstance(value, list):
        return [block for item in value for block in _marked(item)]
    if not isinstance(value, dict):
        return []
    here = [value] if "cache_control" in value else []
    return [*here, *(block for item in value.values() for block in _marked(item))]


def _accepted(outcome: Outcome, wanted: bool) -> None:
    assert outcome.accepted is wanted, f"accepted is {outcome.accepted}: {outcome.body[:500]!r} {outcome.output}"


def _status(outcome: Outcome, wanted: int) -> None:
    _status_any(outcome, [wanted])


def _status_any(outcome: Outcome, wanted: list[int]) -> None:
    assert outcome.reply is not None
    assert outcome.reply.status_code in wanted, f"status {outcome.reply.status_code}: {outcome.body[:500]!r}"


def _reason_any(outcome: Outcome, wanted: list[str]) -> None:
    reasons = {outcome.json["code"], *(error["reason"] for error in outcome.json.get("errors", ()))}
    assert reasons & set(wanted), reasons


def _named_parts(outcome: Outcome, wanted: list[str]) -> None:
    assert set(wanted) <= {error.get("part") for error in outcome.json.get("errors", ())}, outcome.json


def _sent(group: str) -> Callable[[Outcome, list[Any]], None]:
    def of_group(outcome: Outcome, wanted: list[Any]) -> None:
        _are_named(outcome, [part["id"] for part in outcome.snapshot[group] if part["sent"]], wanted)
        if group == "messages" and outcome.snapshot["provider"] != "openai":
            _sent_is_on_the_wire(outcome)

    return of_group


def _sent_is_on_the_wire(outcome: Outcome) -> None:
    for part in outcome.snapshot["messages"]:
        if part.get("seq") and part["override"] != "replace" and outcome.stored_blocks(part["id"]):
            assert bool(outcome.on_the_wire(part["id"])) is part["sent"], part["id"]


def _listed(group: str) -> Callable[[Outcome, Any], None]:
    def of_group(outcome: Outcome, wanted: Any) -> None:
        listed = [part["id"] for part in outcome.snapshot[group]]
        if isinstance(wanted, int):
            assert len(listed) == wanted, listed
        else:
            _are_named(outcome, listed, wanted)

    return of_group


def _are_named(outcome: Outcome, ids: list[str], wanted: list[Any]) -> None:
    """Wanted are whole ids, or names and numbers without their kind."""
    ids = [id for id in ids if id != BROUGHT_BY_SKILLS]
    assert wanted in (ids, [_short(id) for id in ids]), ids


def _short(id: str) -> int | str:
    kind, _, name = id.partition(":")
    return int(name) if kind == "message" else name or kind


def _of_parts(field: str) -> Callable[[Outcome, Any], None]:
    """`{part: value}`, or a list of the parts for which it is true."""

    def of_parts(outcome: Outcome, wanted: Any) -> None:
        if isinstance(wanted, list):
            found = [part["id"] for part in outcome.parts if part[field]]
            assert [_short(id) for id in found] == wanted or found == wanted, found
            return
        found_values = {id: outcome.part(id)[field] for id in wanted}
        assert found_values == wanted, found_values

    return of_parts


def _of_snapshot(field: str) -> Callable[[Outcome, Any], None]:
    def of_snapshot(outcome: Outcome, wanted: Any) -> None:
        assert outcome.snapshot[field] == wanted, outcome.snapshot[field]

    return of_snapshot


def _tokens(outcome: Outcome, wanted: dict[str, list[int]]) -> None:
    found = {id: outcome.part(id)["tokens"] for id in wanted}
    assert all(low <= found[id] <= high for id, (low, high) in wanted.items()), found


def _totals(outcome: Outcome, wanted: Any) -> None:
    snapshot = outcome.snapshot
    if isinstance(wanted, dict):
        assert {key: snapshot[f"total_{key}"] for key in wanted} == wanted
        return
    expected = sum(outcome.part(id)["tokens"] for id in re.findall(r"(?:system|tool|message):\S+", wanted))
    assert snapshot["total_before"] - snapshot["total_after"] == expected
    assert snapshot["total_after"] == sum(part["tokens"] for part in outcome.parts if part["included"])


def _previews_any(outcome: Outcome, wanted: dict[str, list[str]]) -> None:
    found = {id: outcome.part(id)["preview"] for id in wanted}
    assert all(found[id] in choices for id, choices in wanted.items()), found


def _previews_without(outcome: Outcome, wanted: dict[str, list[str]]) -> None:
    assert not [text for id, texts in wanted.items() for text in texts if text in outcome.part(id)["preview"]]


def _full(outcome: Outcome, wanted: dict[str, str]) -> None:
    """The whole text of parts. In an import's words: "still shows ..." means that every stored block is there."""
    for id, text in wanted.items():
        content = outcome.full(id)["content"]
        if text.startswith("still shows"):
            assert content == next(m["content"] for m in outcome.stored if f"message:{m['seq']}" == id)
        else:
            assert [block["text"] for block in content] == [text] if isinstance(content, list) else content == text


def _next_request(outcome: Outcome, wanted: Any) -> None:
    if isinstance(wanted, dict):
        check(outcome, wanted)


def _imported(outcome: Outcome, wanted: int) -> None:
    assert sum(session["messages"] for session in outcome.json["sessions"]) == wanted == len(outcome.stored)


def _flagged(outcome: Outcome, wanted: list[str]) -> None:
    assert [flag["part"] for session in outcome.json["sessions"] for flag in session["flagged"]] == wanted


def _wire_blocks(outcome: Outcome, wanted: dict[str, list[str]]) -> None:
    found = {id: [[block["type"] for block in blocks] for blocks in outcome.on_the_wire(id)] for id in wanted}
    assert found == {id: [types] for id, types in wanted.items()}


def _wire_bytes_unchanged(outcome: Outcome, wanted: list[str]) -> None:
    """Every block of a message, or those of one type: "message:2/thinking"."""
    for one in wanted:
        id, _, type = one.partition("/")
        found = [[block for block in blocks if type in ("", block["type"])] for blocks in outcome.on_the_wire(id)]
        assert found == [[block for block in outcome.stored_blocks(id) if type in ("", block["type"])]]


def _wire_contains(outcome: Outcome, wanted: list[str]) -> None:
    body = str(outcome.wire)
    assert [text for text in wanted if text not in body] == []


def _wire_must_not_contain(outcome: Outcome, wanted: list[str]) -> None:
    body = str(outcome.wire)
    assert [text for text in wanted if text in body] == []


def _wire_tool_names(outcome: Outcome, wanted: dict[str, Any]) -> None:
    tools = outcome.wire["tools"]
    names = [tool["function"]["name"] if "function" in tool else tool["name"] for tool in tools]
    assert all(re.fullmatch(wanted["pattern"], name) for name in names), names
    assert len(set(names)) == wanted["distinct"], names


def _stored_unchanged(outcome: Outcome, wanted: bool) -> None:
    assert wanted is True
    before = outcome.stored
    assert outcome.look("format=provider")
    outcome.__dict__.pop("stored")
    assert outcome.stored == before


def _at_most(measure: Callable[[Outcome], float]) -> Callable[[Outcome, float], None]:
    def at_most(outcome: Outcome, wanted: float) -> None:
        assert measure(outcome) <= wanted, measure(outcome)

    return at_most


def _exactly(measure: Callable[[Outcome], Any]) -> Callable[[Outcome, Any], None]:
    def exactly(outcome: Outcome, wanted: Any) -> None:
        assert measure(outcome) == wanted, measure(outcome)

    return exactly


def _output_contains(outcome: Outcome, wanted: list[str]) -> None:
    assert [text for text in wanted if text not in outcome.output] == [], outcome.output


def _display_width(outcome: Outcome, wanted: int) -> None:
    assert [line for line in outcome.output.splitlines() if not 0 <= wcswidth(line) <= wanted] == []


def _one_line_per_part(outcome: Outcome, wanted: bool) -> None:
    rows = [line for line in outcome.output.splitlines() if line.lstrip().startswith("[")]
    shown = [next((part["id"] for part in outcome.parts if part["id"] in row.split()), row) for row in rows]
    assert wanted is (shown == [part["id"] for part in outcome.parts]), outcome.output


def _no_raw_bidi(outcome: Outcome, wanted: bool) -> None:
    acting = {c for c in outcome.output if c in BIDI or (unicodedata.category(c) == "Cc" and c != "\n")}
    assert wanted is not bool(acting), acting


def _absent(outcome: Outcome, wanted: dict[str, list[str]]) -> None:
    log = outcome.server.log.read_text()
    assert '"route"' in log, "the log holds no request at all"
    assert [text for texts in wanted.values() for text in texts if text in log] == []


def _body_equal_to(outcome: Outcome, _: str) -> None:
    assert outcome.others
    assert all(outcome.body == other for other in outcome.others)


def _named_are_listed(outcome: Outcome, wanted: list[str]) -> None:
    assert set(wanted) <= {part["id"] for part in outcome.parts}


def _sent_summary(outcome: Outcome, wanted: str) -> None:
    assert outcome.full("summary")["content"] == wanted
    assert wanted in str(outcome.wire["messages"])


def _cache_mark_on(outcome: Outcome, wanted: str | None) -> None:
    """The last mark of system and tools stands on this part; "last tool", or None for nowhere."""
    marked = [block for group in ("tools", "system") for block in _marked(outcome.wire.get(group, []))]
    if wanted is None:
        assert marked == []
    elif wanted == "last tool":
        assert marked == outcome.wire["tools"][-1:]
    else:
        assert [block["text"] for block in marked] == [outcome.full(wanted)["content"]]


def _cache_mark_on_any(outcome: Outcome, wanted: list[str | None]) -> None:
    any_of(outcome, [{"cache_mark_on": one} for one in wanted], CHECKS)


def _keys_absent(outcome: Outcome, wanted: list[str]) -> None:
    assert set(wanted).isdisjoint(outcome.wire), outcome.wire.keys()


CHECKS: Mapping[str, Callable[[Outcome, Any], None]] = {
    "accepted": _accepted,
    "status": _status,
    "status_any": _status_any,
    "reason": lambda outcome, wanted: _reason_any(outcome, [wanted]),
    "reason_any": _reason_any,
    "parts": _named_parts,
    "part_ids": _named_are_listed,
    "added": _exactly(lambda outcome: outcome.added),
    **{f"sent_{group}": _sent(group) for group in ("system", "tools", "messages")},
    **{f"listed_{group}": _listed(group) for group in ("system", "tools", "messages")},
    "included": _of_parts("included"),
    "cached_prefix": _of_parts("cached_prefix"),
    "preview": _of_parts("preview"),
    "preview_any_of": _previews_any,
    "preview_must_not_contain": _previews_without,
    "preview_max_chars": _at_most(lambda outcome: max(len(part["preview"]) for part in outcome.parts)),
    "would_compact": _of_snapshot("would_compact"),
    "counted": _of_snapshot("counted"),
    "stale": _exactly(lambda outcome: [stale["part"] for stale in outcome.snapshot["stale"]]),
    "tokens": _tokens,
    "totals": _totals,
    "sum_of_parts_equals_total": lambda outcome, _: _totals(outcome, "the sum of parts"),
    "full": _full,
    "next_request": _next_request,
    "imported": _imported,
    "flagged": _flagged,
    "wire_blocks": _wire_blocks,
    "wire_bytes_unchanged": _wire_bytes_unchanged,
    "wire_contains": _wire_contains,
    "wire_must_not_contain": _wire_must_not_contain,
    "wire_keys_absent": _keys_absent,
    "wire_cache_marks_max": _at_most(lambda outcome: len(_marked(outcome.wire))),
    "wire_tool_names": _wire_tool_names,
    "stored_unchanged": _stored_unchanged,
    "response_bytes_max": _at_most(lambda outcome: len(outcome.body)),
    "seconds_max": _at_most(lambda outcome: outcome.seconds),
    "provider_calls": _exactly(lambda outcome: outcome.answers_asked),
    "provider_calls_max": _at_most(lambda outcome: outcome.answers_asked),
    "summarizer_calls": _exactly(lambda outcome: outcome.answers_asked),
    "rows_written": _exactly(lambda outcome: len(outcome.rows_changed)),
    "exit_code": _exactly(lambda outcome: outcome.exit_code),
    "output_contains": _output_contains,
    "max_display_width": _display_width,
    "one_line_per_part": _one_line_per_part,
    "raw_bidi_controls_absent": _no_raw_bidi,
    "absent_in": _absent,
    "body_equal_to": _body_equal_to,
    "sent_summary": _sent_summary,
    "cache_mark_on": _cache_mark_on,
    "cache_mark_on_any": _cache_mark_on_any,
}
