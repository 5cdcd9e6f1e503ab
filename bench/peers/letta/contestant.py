"""Letta: its own context window, by HTTP, from a server of its own on a database beside the product's.

The answer holds the bodies of the messages, and the definitions of Letta's own few tools. Nothing listens at the
address of its model: a context window calls none.
"""

from __future__ import annotations

import http.client
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import psycopg2
import sqlalchemy

from bench import conversation
from bench.contestant import Facts, Work, place, serve

START_SECONDS = 240
ASK_SECONDS = 600
NOWHERE = "http://127.0.0.1:9/v1"
MODEL = {"model": "none", "model_endpoint_type": "openai", "model_endpoint": NOWHERE, "context_window": 2_000_000}
EMBEDDING = {
    "embedding_model": "none",
    "embedding_endpoint_type": "openai",
    "embedding_endpoint": NOWHERE,
    "embedding_dim": 1536,
}


def main() -> None:
    url = place()["database_urls"]["letta"]
    there = urlsplit(url)
    # Letta loses an address without a host, so it gets one that the folder of the socket overrides. Its models look
    # here for the kind of database when they are imported.
    folder = parse_qs(there.query)["host"][0]
    os.environ["LETTA_PG_URI"] = f"postgresql://{there.username}@localhost{there.path}?host={folder}&ssl=disable"
    make_tables(url)
    with tempfile.TemporaryDirectory() as home, server(Path(home)) as port:
        serve({"inspect over HTTP": partial(open_context, port)})


def open_context(port: int, size: int) -> Work:
    agent = {
        "name": f"bench-{size}",
        "llm_config": MODEL,
        "embedding_config": EMBEDDING,
        "initial_message_sequence": [said(message) for message in conversation.messages(size)],
        "system": conversation.system_prompt(),
        "memory_blocks": [{"label": "human", "value": conversation.memory()[:4000]}],
        "include_base_tools": True,
    }
    id = json.loads(ask(port, "POST", "/v1/agents/", agent))["id"]
    return Work(lambda: ask(port, "GET", f"/v1/agents/{id}/context"), facts)


def facts(answer: bytes) -> Facts:
    """Behind its system message Letta keeps an assistant's message as a call and its result: three for two of ours."""
    return {"messages": (json.loads(answer)["num_messages"] - 1) * 2 // 3}


def said(message: dict[str, Any]) -> dict[str, str]:
    """A message as Letta takes it into a new agent: text alone."""
    shown = []
    for block in message["content"]:
        if block["type"] == "text":
            shown.append(block["text"])
        elif block["type"] == "tool_use":
            shown.append(f"{block['name']} {json.dumps(block['input'])}")
        else:
            shown.append(block["content"][0]["text"])
    return {"role": message["role"], "content": "\n".join(shown)}


def ask(port: int, method: str, path: str, body: Any = None) -> bytes:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=ASK_SECONDS)
    try:
        connection.request(
            method, path, None if body is None else json.dumps(body), {"Content-Type": "application/json"}
        )
        reply = connection.getresponse()
        answer = reply.read()
    finally:
        connection.close()
    if reply.status >= 300:
        raise RuntimeError(f"{method} {path} gave {reply.status}: {answer[:500].decode()}")
    return answer


def make_tables(url: str) -> None:
    """The tables of this version; the package brings its models and no migrations."""
    from letta.orm import Base

    def connect() -> Any:
        return psycopg2.connect(url)

    engine = sqlalchemy.create_engine("postgresql+psycopg2://", creator=connect)
    with engine.begin() as connection:
        connection.execute(sqlalchemy.text("create extension if not exists vector"))
    Base.metadata.create_all(engine)
    with engine.begin() as connection:
        # Its migrations number the messages; its models only ask for the number.
        connection.execute(sqlalchemy.text("create sequence if not exists message_seq_id"))
        numbered = "alter table messages alter column sequence_id set default nextval('message_seq_id')"
        connection.execute(sqlalchemy.text(numbered))
    engine.dispose()


@contextmanager
def server(home: Path) -> Iterator[int]:
    """The port of a Letta server that answers."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    process = subprocess.Popen(
        [Path(sys.executable).with_name("letta"), "server", "--port", str(port)],
        env=os.environ | {"HOME": str(home), "LETTA_DIR": str(home)},
        cwd=home,
        stdin=subprocess.DEVNULL,
        stdout=sys.stderr.fileno(),
        stderr=sys.stderr.fileno(),
    )
    try:
        wait_for(process, port)
        yield port
    finally:
        process.terminate()
        process.wait()


def wait_for(process: subprocess.Popen[bytes], port: int) -> None:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        try:
            ask(port, "GET", "/v1/health/")
        except (OSError, http.client.HTTPException, RuntimeError):
            time.sleep(0.5)
        else:
            return
    raise RuntimeError(f"the Letta server did not answer in {START_SECONDS} s, or it ended")


if __name__ == "__main__":
    main()
