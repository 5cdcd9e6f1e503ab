"""Arguments of a call against the tool's schema: the fault in one sentence, in bounded time, whoever wrote either."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from hango.chain.builtin_tools.arguments import arguments_of, fault_of
from hango.chain.builtin_tools.base import Outcome
from hango.chain.middleware.filesystem import TOOLS
from hango.chain.middleware.todo import WRITE_TODOS
from hango.messages import Block, ToolSpec

READ_FILE = next(tool for tool in TOOLS if tool.name == "read_file")
SHOWN = ", ".join(["'x'"] * 20)
# The time of one check on a loaded machine; alone it takes half a second at most.
MOST_SECONDS = 3


def tool(schema: object) -> ToolSpec:
    return ToolSpec("count", "", schema if isinstance(schema, str) else json.dumps(schema))


def of(**properties: object) -> ToolSpec:
    return tool({"type": "object", "properties": properties})


def call(input: str) -> Block:
    return Block(f'{{"type":"tool_use","id":"call_0","name":"read_file","input":{input}}}')


@pytest.mark.parametrize(
    ("spec", "arguments", "fault"),
    [
        (READ_FILE, {"path": "/a"}, None),
        (READ_FILE, {"path": "/a", "offset": 2.0, "unknown": 1}, None),
        (READ_FILE, {}, "Argument 'path' is missing."),
        (READ_FILE, [], "The arguments of 'read_file' must be a JSON object."),
        (READ_FILE, None, "The arguments of 'read_file' must be a JSON object."),
        (READ_FILE, "/a", "The arguments of 'read_file' must be a JSON object."),
        (READ_FILE, {"path": 1}, "Argument 'path' must be a string."),
        (READ_FILE, {"path": "/a", "offset": "1"}, "Argument 'offset' must be an integer."),
        (READ_FILE, {"path": "/a", "offset": True}, "Argument 'offset' must be an integer."),
        (READ_FILE, {"path": "/a", "offset": float("inf")}, "Argument 'offset' must be an integer."),
        (READ_FILE, {"path": "/a", "offset": -1}, "Argument 'offset' must be at least 0."),
        (READ_FILE, {"path": "/a", "limit": 0}, "Argument 'limit' must be at least 1."),
        (WRITE_TODOS, {"todos": [{"content": "a"}]}, "Argument 'todos[0].status' is missing."),
        (
            WRITE_TODOS,
            {"todos": [{"content": "a", "status": "pending"}, {"content": "b", "status": "done"}]},
            "Argument 'todos[1].status' must be one of 'pending', 'in_progress', 'completed'.",
        ),
        (of(n={"exclusiveMinimum": 1}), {"n": 1}, "Argument 'n' must be more than 1."),
        (of(n={"exclusiveMaximum": 1}), {"n": 1}, "Argument 'n' must be less than 1."),
        (of(n={"maximum": 1}), {"n": 2}, "Argument 'n' must be at most 1."),
        (of(n={"multipleOf": 5}), {"n": 2}, "Argument 'n' must be a multiple of 5."),
        (of(s={"minLength": 2}), {"s": "a"}, "Argument 's' must have at least 2 characters."),
        (of(s={"maxLength": 2}), {"s": "abc"}, "Argument 's' must have at most 2 characters."),
        (of(s={"pattern": "^a"}), {"s": "b"}, "Argument 's' must match the pattern '^a'."),
        (of(s={"const": {"a": 1}}), {"s": 1}, "Argument 's' must be {\"a\": 1}."),
        (of(s={"type": ["string", "null"]}), {"s": 1}, "Argument 's' must be a string or null."),
        (of(s={"anyOf": [{"type": "string"}, {"type": "null"}]}), {"s": 1}, "Argument 's' must be a string or null."),
        (
            of(s={"oneOf": [{"type": "string"}, {"minimum": 5}]}),
            {"s": 1},
            "Argument 's' must have one of the forms that its schema allows.",
        ),
        (of(s={"not": {"type": "string"}}), {"s": "a"}, "Argument 's' must keep the rule 'not' of its schema."),
        (of(s=False), {"s": "a"}, "The arguments hold something that must not be given."),
        (of(l={"minItems": 1}), {"l": []}, "Argument 'l' must have at least 1 items."),
        (of(l={"maxItems": 1}), {"l": [1, 2]}, "Argument 'l' must have at most 1 items."),
        (of(l={"uniqueItems": True}), {"l": [{"a": 1}, {"a": 1.0}]}, "Argument 'l' must hold no item twice."),
        (of(l={"uniqueItems": True}), {"l": [1, True, "1", [1], {"a": 1}]}, None),
        (tool({"minProperties": 1}), {}, "The arguments must have at least 1 members."),
        (
            tool({"properties": {"a": {}, "b": {}}, "additionalProperties": False}),
            {"c": 1},
            "There is no argument 'c'; there are 'a', 'b'.",
        ),
        (tool({"additionalProperties": False}), {"c": 1}, "Argument 'c' is too much."),
        (of(a={"additionalProperties": {"type": "string"}}), {"a": {"c": 1}}, "Argument 'a.c' must be a string."),
        (tool({"patternProperties": {"^n": {"type": "string"}}}), {"n1": 1}, "Argument 'n1' must be a string."),
        (tool({"patternProperties": {"^n": {}}, "additionalProperties": False}), {"n1": 1}, None),
        (tool({"patternProperties": {"(?=n)": {}}, "additionalProperties": False}), {"x": 1}, None),
        (
            tool({"$defs": {"name": {"type": "string"}}, "properties": {"a": {"$ref": "#/$defs/name"}}}),
            {"a": 1},
            "Argument 'a' must be a string.",
        ),
        (
            tool(
                {
                    "$schema": "http://json-schema.org/draft-07/schema#",
                    "properties": {"a": {"items": [{"type": "string"}]}},
                }
            ),
            {"a": [1]},
            "Argument 'a[0]' must be a string.",
        ),
        (of(s={"enum": ["x"] * 30}), {"s": "a"}, f"Argument 's' must be one of {SHOWN}, ...."),
        (of(s={"const": "x" * 999}), {"s": "a"}, f"Argument 's' must be '{'x' * 199}...."),
        (tool({"additionalProperties": False}), {"x" * 999: 1}, f"Argument '{'x' * 200}...' is too much."),
    ],
)  # fmt: skip
def test_a_fault_is_one_sentence(spec: ToolSpec, arguments: object, fault: str | None) -> None:
    """The sentence names the argument and says what would be right; what fits has no fault."""
    assert fault_of(spec, arguments) == fault


@pytest.mark.parametrize(
    "schema",
    [
        {"properties": {"a": {"$ref": "http://127.0.0.1:9/schema"}}},
        {"properties": {"a": {"$ref": "file:///etc/passwd"}}},
        {"properties": {"a": {"$ref": "#/$defs/missing"}}},
        {"properties": {"a": {"$ref": "https://json-schema.org/draft/2020-12/schema"}}},
        {"properties": {"a": {"$dynamicRef": "other"}}},
        {"$id": "http://[", "properties": {"a": {"$ref": "#/x"}}},
        {"properties": {"a": {"type": "text"}}},
        {"properties": {"a": {"pattern": "("}}},
        {"properties": {"a": {"minimum": "1"}}},
        {"properties": ["a"]},
        {"properties": {"a": {"unevaluatedProperties": False}}},
        '{"properties":{"a":{"multipleOf":1e999}}}',
        '{"properties":{"a":{"maximum":' + "9" * 5000 + "}}}",
        "[]",
        "1",
    ],
)
def test_a_schema_that_is_none_takes_everything(schema: object) -> None:
    """What a schema's fault is cannot be a call's: nothing raises, and nothing outside is asked."""
    assert fault_of(tool(schema), {"a": 1}) is None


def deep(levels: int) -> str:
    return "[" * levels + "]" * levels


@pytest.mark.parametrize(
    ("input", "said"),
    [
        ("[1]", "The arguments of 'read_file' must be a JSON object."),
        (f'{{"path":{deep(200)}}}', "The arguments of 'read_file' cannot be read. "),
        ('{"path":"/a","path":"/b"}', "The arguments of 'read_file' cannot be read. "),
        ('{"path":"\\u0000"}', "The arguments of 'read_file' cannot be read. "),
        (f'{{"path":{"9" * 1_000_000}}}', "Argument 'path' must be a string."),
        ('{"path":"/a","limit":1e400}', "Argument 'limit' must be an integer."),
        ('{"path":1.10}', "Argument 'path' must be a string."),
    ],
)
def test_arguments_that_cannot_be_read_are_a_result(input: str, said: str) -> None:
    """A bad call gets an error result, not a crash; a number is never made a text, so it loses no digit."""
    made = arguments_of(call(input), READ_FILE)

    assert isinstance(made, Outcome)
    assert (made.is_error, made.text[: len(said)]) == (True, said)


def test_arguments_are_read_as_they_stand() -> None:
    """Texts and integers come to the letter, and a call without arguments has none."""
    wide = 123456789012345678901234567890

    made = arguments_of(call(f'{{"path": "/a\\u00e9\\n", "offset": {wide}}}'), READ_FILE)

    assert made == {"path": "/aé\n", "offset": wide}
    assert arguments_of(call("{}"), tool({})) == {}


TOO_LARGE = "The arguments of 'count' are too large or too deep to be checked: give less at once."
EVIL, UNLIKE = "^(a+)+$", "Argument 'a' must match the pattern '^(a+)+$'."
UNLISTED = f"Argument 'a[0]' must be one of {SHOWN}, ...."
DRAFT_07 = "http://json-schema.org/draft-07/schema#"
DOUBLED: dict[str, Any] = {f"d{n}": {"allOf": [{"$ref": f"#/$defs/d{n + 1}"}] * 2} for n in range(40)}


@pytest.mark.parametrize(
    ("schema", "arguments", "fault"),
    [
        ({"$defs": {**DOUBLED, "d40": {}}, "$ref": "#/$defs/d0"}, {}, TOO_LARGE),
        ({"$ref": "#"}, {}, TOO_LARGE),
        ({"$defs": {"a": {"anyOf": [{"$ref": "#/$defs/a"}] * 2}}, "$ref": "#/$defs/a"}, {}, TOO_LARGE),
        ({"anyOf": [{"required": [f"k{n}"]} for n in range(50_000)]}, {"a": "x" * 1_000_000}, TOO_LARGE),
        ({"anyOf": [{"type": "array"}] * 10_000}, {"a": "x" * 1_000_000}, TOO_LARGE),
        ({"properties": {"a": {"uniqueItems": True}}}, {"a": [{"n": n} for n in range(80_000)]}, TOO_LARGE),
        ({"properties": {"a": {"items": {}}}}, {"a": [1] * 500_000}, TOO_LARGE),
        ({"properties": {"a": {"items": {"enum": ["x"] * 5_000}}}}, {"a": [-1.5] * 20_000}, UNLISTED),
        ({"properties": {"a": {"items": {"not": {"enum": list(range(5_000))}}}}}, {"a": [-1] * 20_000}, TOO_LARGE),
        ({"patternProperties": {f"(a+)+b{n}": {} for n in range(2_000)}}, {"a" * n: 1 for n in range(999)}, TOO_LARGE),
        ({"patternProperties": {f"(?=a){n}": {} for n in range(5_000)}}, {str(n): 1 for n in range(5_000)}, TOO_LARGE),
        ({"properties": {"a": {"pattern": EVIL}}}, {"a": "a" * 1_000_000 + "!"}, UNLIKE),
        ({"allOf": [{"patternProperties": {rf"\w{{0,60}}{n}": {}}} for n in range(50)]}, {"a": 1}, TOO_LARGE),
        ({"properties": {"a": {"$schema": DRAFT_07, "pattern": EVIL}}}, {"a": "a" * 40 + "!"}, UNLIKE),
        ({"propertyNames": {"pattern": EVIL}}, {"a" * 40 + "!": 1}, UNLIKE.replace("Argument 'a'", "The arguments")),
        ({"dependentRequired": {f"k{n}": ["z"] for n in range(50_000)}}, {"a": 1}, None),
        ({"unevaluatedProperties": False, "allOf": [{"$ref": "#"}]}, {"a": 1}, TOO_LARGE),
        ({"type": "object"}, {"a": "x" * 1_000_000}, None),
        ({"properties": {"a": {"type": "object"}}}, {"a": [["x" * 99] * 99] * 99}, "Argument 'a' must be an object."),
    ],
)  # fmt: skip
def test_the_work_is_bounded(schema: object, arguments: object, fault: str | None) -> None:
    """Whatever a schema and a call ask for, the check ends soon: with an answer, or by saying that it is too much."""
    spec = tool(schema)
    before = time.process_time()

    found = fault_of(spec, arguments)

    assert found == fault
    assert time.process_time() - before < MOST_SECONDS


@pytest.mark.parametrize("levels", [60, 1_000, 100_000])
def test_deep_values_do_not_crash(levels: int) -> None:
    """A value nested as deep as it likes is a wrong type like another, or too deep to be checked."""
    nested: Any = []
    for _ in range(levels):
        nested = [nested]

    fault = fault_of(READ_FILE, {"path": nested})

    assert fault in {
        "Argument 'path' must be a string.",
        "The arguments of 'read_file' are too large or too deep to be checked: give less at once.",
    }


values = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from([0.5, 1.0]) | st.text("ab", max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("ab"), inner, max_size=2),
    max_leaves=6,
)
types = st.sampled_from(["string", "integer", "number", "object", "array", "boolean", "null"])
schemas = st.recursive(
    st.booleans()
    | st.builds(lambda type: {"type": type}, types)
    | st.builds(lambda value: {"const": value}, values)
    | st.builds(lambda items: {"enum": items}, st.lists(values, max_size=3))
    | st.builds(lambda n: {"minimum": n, "maxLength": 2, "minItems": 1}, st.integers(-2, 2))
    | st.sampled_from([{"pattern": "^a"}, {"uniqueItems": True}, {"required": ["a"]}])
    | st.just({"patternProperties": {"^a": False}}),
    lambda inner: st.builds(lambda one: {"properties": {"a": one}}, inner)
    | st.builds(lambda one: {"items": one}, inner)
    | st.builds(lambda one: {"patternProperties": {"b": True}, "additionalProperties": one}, inner)
    | st.builds(lambda some: {"anyOf": some}, st.lists(inner, min_size=1, max_size=2))
    | st.builds(lambda some: {"oneOf": some}, st.lists(inner, min_size=1, max_size=2))
    | st.builds(lambda some: {"allOf": some}, st.lists(inner, min_size=1, max_size=2))
    | st.builds(lambda one, two: {"if": one, "then": two}, inner, inner)
    | st.builds(lambda one: {"contains": one}, inner)
    | st.builds(lambda one: {"not": one}, inner),
    max_leaves=5,
)  # fmt: skip


@given(schemas, values)
def test_it_judges_as_the_library_does(schema: object, value: object) -> None:
    """What is bounded judges every value as JSON Schema's own checker does."""
    spec = of(a=schema)

    assert (fault_of(spec, {"a": value}) is None) == Draft202012Validator(json.loads(spec.input_schema)).is_valid(
        {"a": value}
    )
