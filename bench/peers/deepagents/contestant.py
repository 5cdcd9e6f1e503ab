"""deepagents: the nearest thing to an inspect that can be built on it, and the first request of a run, both from its
own checkpoint in PostgreSQL.

It loads the thread's state, assembles the request through its own middleware up to a model that only keeps what it is
given, and lists every message and tool with a preview and an approximate count. It has no overrides, checks no pairs.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

os.environ |= {"LANGSMITH_TRACING": "false", "LANGCHAIN_TRACING_V2": "false"}

from deepagents import create_deep_agent
from deepagents.backends import FilesystemBackend
from langchain_anthropic import ChatAnthropic
from langchain_anthropic.chat_models import convert_to_anthropic_tool
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.messages.utils import convert_to_openai_messages, count_tokens_approximately
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import StructuredTool
from langchain_core.utils.function_calling import convert_to_openai_tool
from langgraph.checkpoint.postgres import PostgresSaver
from pydantic import Field

from bench import conversation
from bench.contestant import Facts, Work, place, serve

Wire = Callable[[list[BaseMessage], list[dict[str, Any]]], dict[str, Any]]

CLIENT = ChatAnthropic(model="claude-sonnet-4-5", api_key="bench")
NEVER_COMPACT = {"max_input_tokens": 1_000_000_000}


class Capture(BaseChatModel):
    """A model that keeps what it is asked and answers at once."""

    profile: dict[str, Any] = NEVER_COMPACT
    asked: dict[str, Any] = Field(default_factory=dict)

    @property
    def _llm_type(self) -> str:
        return "capture"

    def bind_tools(self, tools: Any, **options: Any) -> Any:
        return self.bind(tools=[convert_to_openai_tool(tool) for tool in tools], **options)

    def _generate(self, messages: Any, stop: Any = None, run_manager: Any = None, **options: Any) -> ChatResult:
        self.asked |= {"messages": messages, "tools": options["tools"]}
        return ChatResult(generations=[ChatGeneration(message=AIMessage("Kept."))])


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        write_files(Path(folder))
        with PostgresSaver.from_conn_string(place()["database_urls"]["deepagents"]) as saver:
            saver.setup()
            cases = {
                "inspect": open_inspect,
                "first request": partial(open_request, anthropic),
                "first request, OpenAI's form": partial(open_request, openai),
            }
            serve({name: partial(opener, Path(folder), saver) for name, opener in cases.items()})


def open_request(wire: Wire, folder: Path, saver: PostgresSaver, size: int) -> Work:
    """Its own run from the checkpoint up to the JSON for a provider."""
    capture = Capture()
    kept = agent(capture, folder, checkpointer=saver)
    assembling = agent(capture, folder)  # without a checkpointer, so that a turn writes nothing
    thread = {"configurable": {"thread_id": f"{wire.__name__}-{size}"}}
    kept.update_state(thread, {"messages": [said(at, one) for at, one in enumerate(conversation.messages(size))]})

    def request() -> str:
        assembling.invoke({"messages": kept.get_state(thread).values["messages"]})
        made = wire(capture.asked["messages"], capture.asked["tools"])
        # Where the system prompt is a message, it is not of the history.
        messages = sum(message["role"] != "system" for message in made["messages"])
        return json.dumps({"messages": messages, "tools": len(made["tools"]), "bytes": len(json.dumps(made))})

    return Work(request, json.loads)


def anthropic(messages: list[BaseMessage], tools: list[dict[str, Any]]) -> dict[str, Any]:
    """What its client for Anthropic, which it calls unless told otherwise, would send."""
    made: dict[str, Any] = CLIENT._get_request_payload(  # noqa: SLF001 (there is no other way to it)
        messages, tools=[convert_to_anthropic_tool(tool) for tool in tools]
    )
    return made


def openai(messages: list[BaseMessage], tools: list[dict[str, Any]]) -> dict[str, Any]:
    """The form of OpenAI's API by its core's converter; its client for OpenAI is not among its requirements."""
    return {"model": "bench", "messages": convert_to_openai_messages(messages), "tools": tools}


def open_inspect(folder: Path, saver: PostgresSaver, size: int) -> Work:
    capture = Capture()
    kept = agent(capture, folder, checkpointer=saver)
    assembling = agent(capture, folder)  # without a checkpointer, so that an inspect writes nothing
    thread = {"configurable": {"thread_id": f"{size}"}}
    history = [said(at, message) for at, message in enumerate(conversation.messages(size))]
    kept.update_state(thread, {"messages": history})

    def inspect() -> str:
        found = kept.get_state(thread).values["messages"]
        assembling.invoke({"messages": [*found, HumanMessage(conversation.LAST_WORDS)]})
        parts = [message_part(at, message) for at, message in enumerate(capture.asked["messages"])]
        return json.dumps(parts + [tool_part(tool) for tool in capture.asked["tools"]])

    return Work(inspect, facts)


def agent(model: BaseChatModel, folder: Path, **options: Any) -> Any:
    tools = [
        StructuredTool(
            name=tool["name"], description=tool["description"], args_schema=tool["input_schema"], func=lambda **_: "x"
        )
        for tool in conversation.tools()
    ]
    return create_deep_agent(
        model=model,
        tools=tools,
        system_prompt=conversation.system_prompt(),
        memory=["/memories/AGENTS.md"],
        skills=["/skills/"],
        backend=FilesystemBackend(root_dir=folder, virtual_mode=True),
        **options,
    )


def write_files(folder: Path) -> None:
    files = {"memories/AGENTS.md": conversation.memory()}
    files |= {f"skills/{name}/SKILL.md": text for name, text in conversation.skills().items()}
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)


def said(at: int, message: dict[str, Any]) -> BaseMessage:
    """A message of the history in the peer's own form."""
    first, *others = message["content"]
    if first["type"] == "tool_result":
        return ToolMessage(first["content"][0]["text"], tool_call_id=first["tool_use_id"], id=f"{at}")
    if message["role"] == "user":
        return HumanMessage(first["text"], id=f"{at}")
    calls = [{"name": call["name"], "args": call["input"], "id": call["id"]} for call in others]
    return AIMessage(first["text"], tool_calls=calls, id=f"{at}")


def message_part(at: int, message: BaseMessage) -> dict[str, Any]:
    return {
        "id": f"message:{at}", "kind": message.type, "label": f"#{at} {message.type}", "preview": message.text[:200],
        "tokens": count_tokens_approximately([message]), "included": True, "override": "none",
    }  # fmt: skip


def tool_part(tool: dict[str, Any]) -> dict[str, Any]:
    function = tool["function"]
    return {
        "id": f"tool:{function['name']}", "kind": "tool", "label": function["name"],
        "preview": function["description"][:200], "tokens": len(json.dumps(tool)) // 4,
    }  # fmt: skip


def facts(answer: str) -> Facts:
    """The system message in front and the last words behind are not of the history."""
    parts = json.loads(answer)
    return {"messages": sum(part["id"].startswith("message:") for part in parts) - 2}


if __name__ == "__main__":
    main()
