"""What people should know about a request before it is sent: why it could not be, or what is changed on the wire."""

from __future__ import annotations

from functools import lru_cache

from hango.agent_definition import AgentDefinition
from hango.chain.draft import Draft
from hango.chain.parts import tool_part
from hango.chain.providers.schemas import check_schema
from hango.dialect import Dialect
from hango.errors import Detail, Reason
from hango.messages import ToolSpec


def find(draft: Draft, agent: AgentDefinition, dialect: Dialect) -> tuple[Detail, ...]:
    """All problems of a draft, in the order of its parts; those of the history come from its repair."""
    assert draft.repair is not None, "the context_overrides slot sets the repair"
    tools = tuple(item.value for item in draft.tools if not draft.mark(item.part).excluded)
    return (
        *draft.problems,
        *_empty_blocks(draft),
        *_of_tools(tools, dialect),
        *_of_number(len(draft.kept_tools()), dialect),
        *_of_params(draft, agent, dialect),
        *draft.repair.problems,
    )


def _empty_blocks(draft: Draft) -> list[Detail]:
    if len(draft.kept_system()) == len(draft.system):
        return []
    message = "The system block is empty or white space and is not sent."
    return [
        Detail(Reason.EMPTY_TEXT, message, part=item.part)
        for item in draft.system
        if not draft.mark(item.part).excluded and not (draft.mark(item.part).replacement or item.value).strip()
    ]


# An agent's tools are immutable and come back at every call: judged once, and all of them in one look-up.
@lru_cache(maxsize=256)
def _of_tools(tools: tuple[ToolSpec, ...], dialect: Dialect) -> tuple[Detail, ...]:
    return tuple(detail for tool in tools for detail in _of_tool(tool, dialect))


def _of_tool(tool: ToolSpec, dialect: Dialect) -> list[Detail]:
    found = []
    if not dialect.tool_name.fullmatch(tool.name):
        message = f"The provider does not take the name of the tool '{tool.name}': it goes out in a cleaned form."
        found.append(Detail(Reason.BAD_TOOL_NAME, message, part=tool_part(tool.name)))
    if (fault := check_schema(tool, dialect)) is not None:
        found.append(fault)
    return found


def _of_number(tools: int, dialect: Dialect) -> list[Detail]:
    if dialect.max_tools is None or tools <= dialect.max_tools:
        return []
    message = f"The request holds {tools} tools; the provider takes {dialect.max_tools}. Leave some out."
    return [Detail(Reason.TOO_MANY_TOOLS, message)]


def _of_params(draft: Draft, agent: AgentDefinition, dialect: Dialect) -> list[Detail]:
    found = [
        Detail(Reason.PARAM_NOT_TAKEN, f"The provider does not take the parameter '{name}': it is not sent.")
        for name in agent.params
        if name not in dialect.params
    ]
    named = _chosen(agent.params.get("tool_choice"))
    if named is not None and named not in {item.value.name for item in draft.kept_tools()}:
        message = "The parameter 'tool_choice' names a tool that is not sent: it falls back to auto."
        found.append(Detail(Reason.TOOL_CHOICE_DROPPED, message))
    return found


def _chosen(choice: object) -> str | None:
    """The tool that a `tool_choice` names, in the words of either API."""
    if not isinstance(choice, dict) or choice.get("type") not in ("tool", "function"):
        return None
    function = choice.get("function")
    name = function.get("name") if isinstance(function, dict) else choice.get("name")
    return str(name)
