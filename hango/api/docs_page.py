"""The API as one HTML page, drawn from the OpenAPI document: no script, no other address, its style allowed by hash."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping
from hashlib import sha256
from html import escape
from typing import Any

import msgspec

STYLE = """
body{font:16px/1.5 system-ui,sans-serif;margin:0 auto;max-width:62rem;padding:1rem;color:#1b1f24;background:#fff}
code,pre{font:14px/1.45 ui-monospace,monospace}
pre{background:#f4f5f7;padding:.75rem;overflow-x:auto;border-radius:6px}
h2{margin-top:2.5rem;border-bottom:1px solid #d5d9e0;padding-bottom:.25rem}
h3{margin:1.75rem 0 .25rem;font-size:1rem}
h3 b{display:inline-block;min-width:4rem}
table{border-collapse:collapse}
td,th{text-align:left;vertical-align:top;padding:.2rem 1rem .2rem 0}
nav a{margin-right:.75rem}
a{color:#0b57d0}
:target{background:#fff6d6}
@media(prefers-color-scheme:dark){
body{color:#e6e8eb;background:#14171a}pre{background:#20252b}h2{border-color:#39414a}a{color:#8ab4f8}
:target{background:#3a3417}}
"""
_STYLE_HASH = base64.b64encode(sha256(STYLE.encode()).digest()).decode()
CONTENT_SECURITY_POLICY = (
    f"default-src 'none'; style-src 'sha256-{_STYLE_HASH}'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
)


def render(document: Mapping[str, Any]) -> str:
    """The whole page. Every text of the document is escaped."""
    info = document["info"]
    tags = dict.fromkeys(tag for _, _, operation in _operations(document) for tag in operation["tags"])
    body = [f"<h1>{escape(info['title'])} {escape(info['version'])}</h1>"]
    body += [f"<p>{escape(line)}</p>" for line in info["description"].split("\n\n")]
    body.append('<p>The same for programs: <a href="/openapi.json">/openapi.json</a></p>')
    body.append("<nav>" + "".join(f'<a href="#{_anchor(tag)}">{escape(tag)}</a>' for tag in tags))
    body.append('<a href="#schemas">schemas</a></nav>')
    for tag in tags:
        body.append(f'<h2 id="{_anchor(tag)}">{escape(tag)}</h2>')
        for path, method, operation in _operations(document):
            if tag in operation["tags"]:
                body += _operation(path, method, operation)
    body.append('<h2 id="schemas">schemas</h2>')
    for name, schema in document["components"]["schemas"].items():
        body.append(f'<h3 id="schema-{_anchor(name)}">{escape(name)}</h3>{_json(schema)}')
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(info['title'])} API</title><style>{STYLE}</style></head><body>"
        + "\n".join(body)
        + "</body></html>\n"
    )


def _operations(document: Mapping[str, Any]) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            yield path, method.upper(), operation


def _operation(path: str, method: str, operation: Mapping[str, Any]) -> Iterator[str]:
    yield f'<h3 id="{escape(operation["operationId"])}"><b>{method}</b> <code>{escape(path)}</code></h3>'
    yield f"<p>{escape(operation['summary'])}. {escape(operation.get('description', ''))}</p><table>"
    for parameter in operation["parameters"]:
        name, schema = escape(parameter["name"]), escape(_short(parameter["schema"]))
        yield f"<tr><th>{escape(parameter['in'])}</th><td><code>{name}</code></td><td>{schema}</td></tr>"
    for content in operation.get("requestBody", {}).get("content", {}).values():
        yield f"<tr><th>body</th><td>{_link(content['schema'])}</td><td></td></tr>"
    for status, response in operation["responses"].items():
        links = " ".join(_link(one["schema"]) for one in response.get("content", {}).values())
        yield f"<tr><th>{status}</th><td>{escape(response['description'])}</td><td>{links}</td></tr>"
    yield "</table>"


def _link(schema: Mapping[str, Any]) -> str:
    name = schema.get("$ref", "").rpartition("/")[2]
    return f'<a href="#schema-{_anchor(name)}">{escape(name)}</a>' if name else escape(_short(schema))


def _short(schema: Mapping[str, Any]) -> str:
    return ", ".join(f"{key} {value}" for key, value in schema.items() if key not in ("title", "$ref"))


def _json(schema: Mapping[str, Any]) -> str:
    text = msgspec.json.format(msgspec.json.encode(schema), indent=2).decode()
    return f"<pre>{escape(text)}</pre>"


def _anchor(name: str) -> str:
    return "".join(letter if letter.isalnum() else "-" for letter in name)
