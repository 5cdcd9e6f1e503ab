"""A value checked against a JSON Schema that may come from anybody: in bounded work, without a look outside. Pure.

The library checks; this wraps every keyword of it. Each costs, and a check that costs too much is given up. Patterns go
to an engine that takes linear time, references lead nowhere but into the schema itself, and what no such bound can be
put on is not checked: `unevaluatedItems`, `unevaluatedProperties`, a pattern that is not answered.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from functools import lru_cache
from typing import Any

import jsonschema
from jsonschema import ValidationError, validators

from hango.chain.builtin_tools import patterns

# Units of work of one check, about ten microseconds each; to follow a reference takes several.
MOST_WORK = 30_000
REFERENCE_UNITS = 5
# Keywords inside each other. A reference that leads to itself must end before Python's stack does, at which the
# library's own library ends the process.
MOST_DEEP = 120
# The library writes what is wrong into its error's text, which takes time.
CHARS_A_UNIT = 64

Check = Callable[[Any, Any, Any, Any], Iterator[ValidationError] | None]


class TooMuchWork(Exception):
    """The check was given up."""


class _Budget:
    def __init__(self) -> None:
        self.left = MOST_WORK
        self.depth = 0
        self.last: ValidationError | None = None

    def spend(self, units: int) -> None:
        self.left -= units
        if self.left < 0 or self.depth > MOST_DEEP:
            raise TooMuchWork

    def spend_on(self, error: ValidationError) -> None:
        """For its text, once: an error passes through every keyword around the one that made it."""
        if error is not self.last:
            self.spend(len(error.message) // CHARS_A_UNIT)
            self.last = error


_budget: ContextVar[_Budget] = ContextVar("_budget")


def first_error(schema: str, value: object) -> ValidationError | None:
    """The first thing that is wrong with a value; None when it fits, or when the schema cannot be used.

    Raises TooMuchWork, also for a value or a schema that is nested without end.
    """
    token = _budget.set(_Budget())
    try:
        return next(_validator(schema).iter_errors(value), None)
    except (TooMuchWork, RecursionError):
        raise TooMuchWork from None
    except Exception:  # the library raises many things on a schema that is none
        return None
    finally:
        _budget.reset(token)


@lru_cache(maxsize=64)
def _validator(schema: str) -> Any:
    read = json.loads(schema)
    named = read.get("$schema")
    base = _DRAFTS.get(named.rstrip("#"), _LATEST) if isinstance(named, str) else _LATEST
    return _bounded(base)(_one_draft(read))


def _one_draft(value: Any) -> Any:
    """The schema without the names of drafts inside, at which the library would go over to its own checks."""
    if isinstance(value, dict):
        return {key: _one_draft(item) for key, item in value.items() if key != "$schema" or not isinstance(item, str)}
    return [_one_draft(item) for item in value] if isinstance(value, list) else value


@lru_cache(maxsize=8)
def _bounded(base: Any) -> Any:
    checks: dict[str, Check] = {
        **base.VALIDATORS,
        **{name: own for name, own in _OWN.items() if name in base.VALIDATORS},
    }
    for name in _REFERENCES & set(checks):
        checks[name] = _inside(checks[name])
    extend: Callable[..., Any] = validators.extend
    return extend(base, {name: _counted(check) for name, check in checks.items()})


def _counted(check: Check) -> Check:
    def counted(validator: Any, value: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
        budget = _budget.get()
        budget.depth += 1
        try:
            budget.spend(1 + _size(value) + (len(instance) if isinstance(instance, dict | list) else 0))
            for error in check(validator, value, instance, schema) or ():
                budget.spend_on(error)
                yield error
        finally:
            budget.depth -= 1

    return counted


def _size(value: object) -> int:
    """How much a keyword's own value makes it do: to compare with a list of values is to look at all of them."""
    return len(str(value)) // CHARS_A_UNIT if isinstance(value, dict | list) else 0


def _inside(check: Check) -> Check:
    def inside(validator: Any, ref: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
        if isinstance(ref, str) and ref.startswith("#"):
            _budget.get().spend(REFERENCE_UNITS)
            yield from check(validator, ref, instance, schema) or ()

    return inside


def _unchecked(validator: Any, value: Any, instance: Any, schema: Any) -> None:
    return None


def _pattern(validator: Any, pattern: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
    if isinstance(instance, str) and _fits(pattern, instance) is False:
        yield ValidationError("pattern")


def _pattern_properties(validator: Any, named: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
    if isinstance(instance, dict):
        for pattern, below in named.items():
            for key, item in instance.items():
                if _fits(pattern, key):
                    yield from validator.descend(item, below, path=key)


def _additional_properties(validator: Any, below: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
    if not isinstance(instance, dict):
        return
    known, named = schema.get("properties", {}), schema.get("patternProperties", {})
    for key, item in instance.items():
        # A pattern that is not answered may well be one that allows the name.
        if key in known or any(_fits(pattern, key) is not False for pattern in named):
            continue
        if below is False:
            yield ValidationError("additionalProperties", path=[key])
        else:
            yield from validator.descend(item, below, path=key)


def _unique_items(validator: Any, unique: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
    if unique and isinstance(instance, list):
        _budget.get().spend(len(str(instance)) // CHARS_A_UNIT)
        if len({_key(item) for item in instance}) != len(instance):
            yield ValidationError("uniqueItems")


def _key(value: object) -> object:
    """Equal for equal JSON values: 1 and 1.0 are, 1 and true are not."""
    if isinstance(value, dict):
        return "object", frozenset((name, _key(item)) for name, item in value.items())
    if isinstance(value, list):
        return "array", tuple(_key(item) for item in value)
    return isinstance(value, bool), value


def _fits(pattern: str, text: str) -> bool | None:
    found = patterns.ready(pattern)
    _budget.get().spend(found.states + len(text) // CHARS_A_UNIT)
    return found.is_in(text)


_LATEST = jsonschema.Draft202012Validator
_DRAFTS: dict[str, Any] = {
    "http://json-schema.org/draft-04/schema": jsonschema.Draft4Validator,
    "http://json-schema.org/draft-06/schema": jsonschema.Draft6Validator,
    "http://json-schema.org/draft-07/schema": jsonschema.Draft7Validator,
    "https://json-schema.org/draft/2019-09/schema": jsonschema.Draft201909Validator,
}
_REFERENCES = frozenset({"$ref", "$dynamicRef", "$recursiveRef"})
_OWN: dict[str, Check] = {
    "pattern": _pattern,
    "patternProperties": _pattern_properties,
    "additionalProperties": _additional_properties,
    "uniqueItems": _unique_items,
    "unevaluatedItems": _unchecked,
    "unevaluatedProperties": _unchecked,
}
