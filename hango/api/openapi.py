"""The OpenAPI 3.1 document, made from the table of routes: pydantic for what comes in, msgspec for what goes out."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec
from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema, models_json_schema

from hango import __version__
from hango.api.authz import MEMBER, PUBLIC
from hango.api.endpoint import JSON, Row
from hango.api.errors import PROBLEM_JSON, TITLES, ProblemDocument
from hango.api.headers import LOCATION, RETRY_AFTER, Header

REF = "#/components/schemas/{model}"
ABOUT = (
    "See, part by part, what the next model request of a session contains.\n\n"
    "Errors are RFC 9457 problem documents with a `code` from a closed set. "
    "What is not there and what is not yours are the same 404."
)

# The bounds of a number that is read from text: pydantic leaves them in its own words.
_BOUNDS = {"ge": "minimum", "le": "maximum"}
_PARAM = re.compile(r"\{(\w+)(?::path)?\}")

Schema = dict[str, Any]


class _Untitled(GenerateJsonSchema):
    """Without a title for every field: a name in other letters tells nobody anything."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False


def document(rows: Sequence[Row]) -> Schema:
    bodies, body_schemas = _incoming(rows)
    replies, reply_schemas = _outgoing(rows)
    paths: dict[str, Schema] = {}
    for row in rows:
        operation = _operation(row, bodies, replies)
        paths.setdefault(_PARAM.sub(r"{\1}", row.path), {})[row.method.lower()] = operation
    return {
        "openapi": "3.1.0",
        "info": {"title": "hango", "version": __version__, "description": ABOUT},
        "paths": paths,
        "components": {
            "schemas": dict(sorted({**body_schemas, **reply_schemas}.items())),
            "securitySchemes": {"apiKey": {"type": "http", "scheme": "bearer"}},
        },
    }


def tag(row: Row) -> str:
    """The noun of a row: the module of its handler."""
    return row.handler.__module__.rpartition(".")[2].replace("_", " ")


def reply_types(row: Row) -> tuple[Any, ...]:
    if row.reply is None:
        return ()
    return row.reply if isinstance(row.reply, tuple) else (row.reply,)


def refusals(row: Row) -> list[int]:
    """Every status of refusal that a row may answer."""
    found = {500, 503, *row.refuses}
    if row.access is not PUBLIC:
        found |= {401, 429}
    if row.access is not MEMBER or row.body or row.query or "{" in row.path:
        found.add(404)
    if row.body or row.takes:
        found |= {400, 413, 422}
    if row.query:
        found.add(422)
    if row.access is PUBLIC:
        found.discard(404)
    return sorted(found)


def _operation(row: Row, bodies: dict[type[BaseModel], Schema], replies: dict[Any, Schema]) -> Schema:
    made: Schema = {
        "operationId": row.handler.__name__,
        "summary": row.summary,
        "tags": [tag(row)],
        "parameters": [*_path_parameters(row), *_query_parameters(row), *_header_parameters(row)],
        "responses": _responses(row, replies),
        "security": [] if row.access is PUBLIC else [{"apiKey": []}],
    }
    if row.access is not PUBLIC:
        made["description"] = f"For: {row.access.who}."
    if row.body:
        made["requestBody"] = {"required": True, "content": {JSON: {"schema": bodies[row.body]}}}
    if row.takes:
        anything: Schema = {"application/octet-stream": {"schema": {}}}
        made["requestBody"] = {"required": True, "description": row.takes, "content": anything}
    return made


def _path_parameters(row: Row) -> list[Schema]:
    return [
        {"name": name, "in": "path", "required": True, "schema": _path_schema(name)}
        for name in _PARAM.findall(row.path)
    ]


def _path_schema(name: str) -> Schema:
    return {"type": "string"} if name == "path" else {"type": "string", "format": "uuid"}


def _query_parameters(row: Row) -> list[Schema]:
    if row.query is None:
        return []
    schema = row.query.model_json_schema(ref_template=REF, schema_generator=_Untitled)
    required = schema.get("required", [])
    return [
        {"name": name, "in": "query", "required": name in required, "schema": _without_null(one)}
        for name, one in schema.get("properties", {}).items()
    ]


def _header_parameters(row: Row) -> list[Schema]:
    return [
        {"name": one.name, "in": "header", "required": False, "description": one.description, "schema": {**one.schema}}
        for one in row.asks
    ]


def _headers(*headers: Header) -> Schema:
    return {one.name: {"description": one.description, "schema": {**one.schema}} for one in headers}


def _without_null(schema: Schema) -> Schema:
    """A query parameter that may be left out is not null: it is not there."""
    rest = {_BOUNDS.get(key, key): value for key, value in schema.items() if key != "anyOf"}
    if rest.get("default", ...) is None:
        del rest["default"]
    choices = [one for one in schema.get("anyOf", []) if one != {"type": "null"}]
    if len(choices) == 1:
        return {**rest, **_without_null(choices[0])}
    return {**rest, "anyOf": choices} if choices else rest


def _responses(row: Row, replies: dict[Any, Schema]) -> Schema:
    made: Schema = {}
    for status in sorted({row.status, *row.also}):
        answer: Schema = {"description": TITLES[status]}
        if row.reply is not None:
            schemas = [replies[one] for one in reply_types(row)]
            schema = schemas[0] if len(schemas) == 1 else {"anyOf": schemas}
            answer["content"] = {row.media_type: {"schema": schema}}
        if given := (LOCATION, *row.gives) if status == 201 else row.gives:
            answer["headers"] = _headers(*given)
        made[str(status)] = answer
    for status in refusals(row):
        answer = {
            "description": TITLES[status],
            "content": {PROBLEM_JSON: {"schema": replies[ProblemDocument]}},
        }
        if status in (429, 503):
            answer["headers"] = _headers(RETRY_AFTER)
        made[str(status)] = answer
    return made


def _incoming(rows: Iterable[Row]) -> tuple[dict[type[BaseModel], Schema], Schema]:
    models = list(dict.fromkeys(row.body for row in rows if row.body))
    found, definitions = models_json_schema(
        [(model, "validation") for model in models], ref_template=REF, schema_generator=_Untitled
    )
    return {model: found[(model, "validation")] for model in models}, definitions.get("$defs", {})


def _outgoing(rows: Iterable[Row]) -> tuple[dict[Any, Schema], Schema]:
    types = list(dict.fromkeys([ProblemDocument, *(one for row in rows for one in reply_types(row))]))
    found, definitions = msgspec.json.schema_components(types, ref_template=REF.replace("{model}", "{name}"))
    return dict(zip(types, found, strict=True)), definitions
