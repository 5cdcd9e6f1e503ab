"""What several wires need done to a request before its JSON is written. Pure: a request in, a request out.

`settle` makes names and ids legal, takes cache marks off the blocks, writes as text what the wire does not
take, and brings the params to one form. Afterwards an adapter only shapes JSON.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from operator import is_
from typing import Any

import msgspec

from hango.chain.providers import blocks as wire_blocks
from hango.chain.providers.ids import Ids
from hango.chain.providers.schemas import takes_tool
from hango.dialect import Dialect, clean_names, takes_system
from hango.messages import Block, Message, MessageRole, Request, ToolSpec, is_call, is_result, text_block

# How a system message stands in a turn of the user where the wire has no such role: marked, so that it is not
# taken for the user's own words.
SYSTEM_MARK = "[System message at this point of the conversation, not the user's words]\n"


# Params by which a model samples; newer models choose for themselves and refuse them.
SAMPLING = frozenset({"temperature", "top_p", "top_k"})


def settle(request: Request, dialect: Dialect) -> Request:
    """The same request with everything legal for the wire. Equal requests give equal results."""
    tools, messages = _sent(request, dialect)
    messages = _place_system(messages, dialect)
    blocks = list(_looked_at(messages))
    names = clean_names(_tool_names(tools, blocks), dialect.tool_name)
    ids = Ids(blocks, dialect.tool_id)
    messages = [_settle_message(message, names, ids) for message in messages]
    return replace(
        request,
        tools=tuple(_renamed(tool, names) for tool in tools),
        messages=tuple(_trim_prefill(messages)),
        params=_settle_params(request.params, tools, names, dialect),
        mark_last_tool=request.mark_last_tool and bool(tools),
    )


def own_names(request: Request, dialect: Dialect) -> dict[str, str]:
    """The agent's own name for each name of a tool that `settle` changes: an answer speaks in the wire's names."""
    tools, messages = _sent(request, dialect)
    names = clean_names(_tool_names(tools, _looked_at(messages)), dialect.tool_name)
    return {cleaned: name for name, cleaned in names.items() if cleaned != name}


def _sent(request: Request, dialect: Dialect) -> tuple[tuple[ToolSpec, ...], Sequence[Message]]:
    """The tools and messages that go out, before anything in them is changed."""
    tools = tuple(tool for tool in request.tools if takes_tool(tool, dialect))
    if dialect.tool_blocks_need_tools and not tools:
        return tools, [_tools_as_text(message) for message in request.messages]
    return tools, request.messages


def _tool_names(tools: Sequence[ToolSpec], blocks: Iterable[Block]) -> Iterator[str]:
    yield from (tool.name for tool in tools)
    for block in blocks:
        if block.type == "tool_use":
            yield block.view.name or ""


def _looked_at(messages: Sequence[Message]) -> Iterator[Block]:
    """Every block that is more than a plain text."""
    for message in messages:
        for block in message.content:
            if not block.is_plain_text:
                yield block


def _settle_message(message: Message, names: Mapping[str, str], ids: Ids) -> Message:
    if all(block.is_plain_text for block in message.content):
        return message
    settled = tuple(block if block.is_plain_text else _settle_block(block, names, ids) for block in message.content)
    if all(map(is_, settled, message.content)):
        return message
    return replace(message, content=settled)


def _settle_block(block: Block, names: Mapping[str, str], ids: Ids) -> Block:
    block = wire_blocks.without_marks(block)
    view = block.view
    changes: dict[str, Any] = {}
    if is_call(view.type):
        if (id := ids.of_call(block)) != view.id:
            changes["id"] = id
        if view.type == "tool_use" and (name := names[view.name or ""]) != view.name:
            changes["name"] = name
        if not bytes(view.input).startswith(b"{"):
            changes["input"] = wire_blocks.as_arguments(view.input)
    elif is_result(view.type) and (id := ids.of_result(block)) != view.tool_use_id:
        changes["tool_use_id"] = id
    return block.with_fields(**changes) if changes else block


def _renamed(tool: ToolSpec, names: Mapping[str, str]) -> ToolSpec:
    definition = tool.definition
    if definition is None and names[tool.name] == tool.name:
        return tool
    if definition is not None:
        own = Block(definition)
        changes: dict[str, Any] = {} if names[tool.name] == tool.name else {"name": names[tool.name]}
        definition = own.with_fields(cache_control=None, **changes).json
    return replace(tool, name=names[tool.name], definition=definition)


def _trim_prefill(messages: Sequence[Message]) -> Sequence[Message]:
    """White space at the end of a last assistant text is refused; it is taken off there and nowhere else."""
    if not messages or messages[-1].role is not MessageRole.ASSISTANT or not messages[-1].content:
        return messages
    last = messages[-1].content[-1]
    text = last.view.text if last.type == "text" else None
    if text is None or text == text.rstrip():
        return messages
    trimmed = last.with_fields(text=text.rstrip())
    return [*messages[:-1], replace(messages[-1], content=(*messages[-1].content[:-1], trimmed))]


def _place_system(messages: Sequence[Message], dialect: Dialect) -> Sequence[Message]:
    if not any(message.role is MessageRole.SYSTEM for message in messages):
        return messages
    roles = [None, *(message.role for message in messages), None]
    made = []
    for message, before, after in zip(messages, roles, roles[2:], strict=False):
        only_text = all(block.type == "text" for block in message.content)
        keeps = message.role is not MessageRole.SYSTEM or takes_system(dialect, before, after, only_text=only_text)
        made.append(message if keeps else _as_marked_turn(message))
    return made


def _as_marked_turn(message: Message) -> Message:
    content = [
        block.with_fields(text=SYSTEM_MARK + (block.view.text or "")) if block.type == "text" else block
        for block in message.content
    ]
    return replace(message, role=MessageRole.USER, content=tuple(content))


def _tools_as_text(message: Message) -> Message:
    """Calls and results as text that says what it is; pictures of a client's result stay pictures."""
    if not any(is_call(block.type) or is_result(block.type) for block in message.content):
        return message
    content: list[Block] = []
    for block in message.content:
        view = block.view
        if is_call(view.type):
            arguments = bytes(view.input).decode() or "{}"
            content.append(text_block(f"[Call of the tool {view.name or ''}]\n{arguments}"))
        elif is_result(view.type):
            text, others = wire_blocks.split_result(block)
            if view.type != "tool_result" and others:
                text, others = bytes(view.content).decode(), []
            head = "[Result of the tool, an error]" if view.is_error else "[Result of the tool]"
            content += [text_block(f"{head}\n{text}"), *others]
        else:
            content.append(block)
    return replace(message, content=tuple(content))


def _settle_params(
    params: Mapping[str, Any], tools: Sequence[ToolSpec], names: Mapping[str, str], dialect: Dialect
) -> dict[str, Any]:
    """The params that the wire takes: `tool_choice` in Anthropic's words, `stop` as a list.

    Without tools there is no param about tools.
    """
    kept = {key: value for key, value in params.items() if key in dialect.params and value is not None}
    choice, parallel = kept.pop("tool_choice", None), kept.pop("parallel_tool_calls", None)
    if isinstance(kept.get("stop"), str):
        kept["stop"] = [kept["stop"]]
    if not tools:
        return kept
    if choice is not None:
        kept["tool_choice"] = _tool_choice(choice, {tool.name for tool in tools}, names)
        if isinstance(choice, Mapping) and choice.get("disable_parallel_tool_use") is True:
            parallel = False
    if isinstance(parallel, bool):
        kept["parallel_tool_calls"] = parallel
    return kept


def _tool_choice(choice: Any, sent: set[str], names: Mapping[str, str]) -> dict[str, str]:
    """`auto`, `any`, `none` or one tool, from the words of either API; auto when that tool is not sent."""
    kind, name = choice, None
    if isinstance(choice, Mapping):
        kind = choice.get("type")
        function = choice.get("function")
        name = function.get("name") if isinstance(function, Mapping) else choice.get("name")
    if kind in ("any", "required"):
        return {"type": "any"}
    if kind == "none":
        return {"type": "none"}
    if kind in ("tool", "function") and name in sent:
        return {"type": "tool", "name": names[str(name)]}
    return {"type": "auto"}


def to_bytes(members: Mapping[str, Any]) -> bytes:
    """Compact JSON; `msgspec.Raw` stays as it is."""
    return msgspec.json.encode(members)
