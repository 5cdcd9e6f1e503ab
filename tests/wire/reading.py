"""What the strict checkers share: places of faults, and the rules for tools that both APIs hold."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Found = Iterator[tuple[str, str]]  # (place in the body, rule)

NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}", re.ASCII)
COMBINING = ("oneOf", "anyOf", "allOf")

NO_MESSAGES = "there are no messages"
NOT_USER_FIRST = "the history does not start with words of the user"
NOT_USER_LAST = "the history ends with the assistant"
EMPTY_CONTENT = "the content is empty"
BLANK_TEXT = "a text is empty or white space"
BAD_ID = "an id has a form that the API refuses"
DOUBLED_ID = "an id of a call is there twice"
BAD_NAME = "a name of a tool has a form that the API refuses"
DOUBLED_NAME = "a name of a tool is there twice"
NO_RESULT = "a call has no result right after it"
NO_CALL = "a result has no call right before it"
DOUBLED_RESULT = "a call has two results"
BAD_SCHEMA = "the schema of a tool is none that the API takes"
NO_TOOLS = "the list of tools is empty"
CHOICE_WITHOUT_TOOLS = "a choice of tools goes with no tools"
CHOICE_NOT_SENT = "the choice names a tool that is not sent"
BAD_ROLE = "there is no such role"


@dataclass(frozen=True, slots=True)
class Takes:
    """What a model's API takes that others refuse. `signed` are the thinking blocks that the model signed, as text."""

    prefill: bool = False
    system_in_history: bool = False
    tools_required: bool = False  # refuses calls and results without tools
    signed: frozenset[str] = frozenset()


def written(found: Found) -> list[str]:
    return [f"{place}: {rule}" for place, rule in found]


def rule_of(fault: str) -> str:
    """The rule that a written fault breaks."""
    return fault.partition(": ")[2]


def is_blank(text: object) -> bool:
    return not isinstance(text, str) or not text.strip()


def read_object(text: object) -> dict[str, Any] | None:
    """The object that a JSON text holds, or None."""
    if not isinstance(text, str):
        return None
    try:
        value = json.loads(text)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def of_names(names: Sequence[str]) -> Found:
    for at, name in enumerate(names):
        if not NAME.fullmatch(name):
            yield f"tools.{at}", BAD_NAME
        if name in names[:at]:
            yield f"tools.{at}", DOUBLED_NAME


def of_results(place: str, calls: Sequence[str], answers: Sequence[str]) -> Found:
    """Every call has one result right after it, and there is no other result."""
    if set(calls) - set(answers):
        yield place, NO_RESULT
    if set(answers) - set(calls):
        yield place, NO_CALL
    if len(set(answers)) != len(answers):
        yield place, DOUBLED_RESULT


def is_object_schema(schema: object, *refused: str) -> bool:
    return isinstance(schema, Mapping) and schema.get("type") == "object" and not any(key in schema for key in refused)
