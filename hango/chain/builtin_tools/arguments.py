"""The arguments of a call: read from its JSON text and checked against the tool's schema, the fault in one sentence.

The sentence is for the model: it names the argument and says what would be right. A text is never made of what is none,
so that no digit of a number can change.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from jsonschema import ValidationError

from hango import jsontext
from hango.chain.builtin_tools.base import Arguments, Outcome, failed
from hango.chain.builtin_tools.schema_check import TooMuchWork, first_error
from hango.errors import Invalid, Malformed
from hango.messages import Block, ToolSpec

# Of a name or a value inside a sentence.
SHOWN_CHARS = 200
SHOWN_VALUES = 20

_TYPES = {
    "string": "a string",
    "integer": "an integer",
    "number": "a number",
    "object": "an object",
    "array": "an array",
    "boolean": "true or false",
    "null": "null",
}
# What a value must be by a rule of the schema: `{}` is the rule's own value.
_RULES = {
    "minimum": "be at least {}",
    "maximum": "be at most {}",
    "exclusiveMinimum": "be more than {}",
    "exclusiveMaximum": "be less than {}",
    "multipleOf": "be a multiple of {}",
    "minLength": "have at least {} characters",
    "maxLength": "have at most {} characters",
    "minItems": "have at least {} items",
    "maxItems": "have at most {} items",
    "minProperties": "have at least {} members",
    "maxProperties": "have at most {} members",
    "const": "be {}",
    "pattern": "match the pattern {}",
    "uniqueItems": "hold no item twice",
}


def arguments_of(block: Block, spec: ToolSpec) -> Arguments | Outcome:
    """The arguments of a call of the tool, or its result when they are bad. Raises nothing."""
    try:
        arguments = jsontext.read(bytes(block.view.input) or b"{}")
    except (Malformed, Invalid) as error:
        return failed(f"The arguments of '{spec.name}' cannot be read. {error}")
    fault = fault_of(spec, arguments)
    return arguments if fault is None else failed(fault)


def fault_of(spec: ToolSpec, arguments: object) -> str | None:
    """What is wrong with the arguments, in one sentence; None when they fit the tool's schema. Raises nothing.

    A schema that is none, or that reaches outside, takes everything.
    """
    if not isinstance(arguments, dict):
        return f"The arguments of '{spec.name}' must be a JSON object."
    try:
        error = first_error(spec.input_schema, arguments)
    except TooMuchWork:
        return f"The arguments of '{spec.name}' are too large or too deep to be checked: give less at once."
    return None if error is None else _sentence(error)


def _sentence(error: ValidationError) -> str:
    # The library's types leave out that each of these may be anything.
    rule: Any = error.validator
    wanted: Any = error.validator_value
    around: Any = error.schema
    path = list(error.absolute_path)
    if rule is None:  # a schema that is `false`: the library does not say where
        return "The arguments hold something that must not be given."
    if rule == "required":
        given: Any = error.instance
        missing = next(name for name in wanted if name not in given)
        return f"Argument '{_name([*path, missing])}' is missing."
    if rule == "additionalProperties":
        known = _listed(around.get("properties", {}))
        return (
            f"There is no argument '{_name(path)}'; there are {known}." if known else f"{_subject(path)} is too much."
        )
    if rule == "type":
        must = f"be {_types(wanted)}"
    elif rule == "enum":
        must = f"be one of {_listed(wanted)}"
    elif rule in {"anyOf", "oneOf"} and (types := _types_of(error)):
        must = f"be {types}"
    elif rule in {"anyOf", "oneOf"}:
        must = "have one of the forms that its schema allows"
    elif rule in _RULES:
        must = _RULES[rule].format(_shown(wanted))
    else:
        must = f"keep the rule '{rule}' of its schema"
    return f"{_subject(path)} must {must}."


def _subject(path: list[str | int]) -> str:
    return f"Argument '{_name(path)}'" if path else "The arguments"


def _name(path: list[str | int]) -> str:
    """Such as `todos[2].status`."""
    steps = (f"[{step}]" if isinstance(step, int) else f".{_cut(step)}" for step in path)
    return _cut("".join(steps).removeprefix("."))


def _types_of(error: ValidationError) -> str:
    """The types, when the forms differ in nothing else."""
    below = error.context or ()
    if not below or any(one.validator != "type" or one.relative_path for one in below):
        return ""
    return " or ".join(dict.fromkeys(_types(one.validator_value) for one in below))


def _types(wanted: Any) -> str:
    names = [wanted] if isinstance(wanted, str) else wanted
    return " or ".join(_TYPES.get(name, str(name)) for name in names)


def _listed(values: Iterable[object]) -> str:
    shown = [_shown(value) for value in values]
    more = ", ..." if len(shown) > SHOWN_VALUES else ""
    return ", ".join(shown[:SHOWN_VALUES]) + more


def _shown(value: object) -> str:
    return _cut(f"'{value}'" if isinstance(value, str) else json.dumps(value, ensure_ascii=False))


def _cut(text: str) -> str:
    return text if len(text) <= SHOWN_CHARS else f"{text[:SHOWN_CHARS]}..."
