"""What a client writes of an agent: shapes and types. The rules that need more than one field are in agent_rules.py."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal, TypeAlias, get_args

from pydantic import ConfigDict, Field

from hango.api.fields import Body, Name, Patch, RawObject

SYSTEM_BLOCKS_MOST = 1000
TOOLS_MOST = 2000
PATHS_MOST = 1000
OUTPUT_TOKENS_MOST = 1_000_000
# Far above any model's window: the bound only keeps the number inside a database integer.
TOKENS_MOST = 1_000_000_000

BuiltinName: TypeAlias = Literal["todo", "filesystem", "subagent", "memory", "skills"]
ToolName = Annotated[str, Field(min_length=1, max_length=256)]


class SystemBlockIn(Body):
    """One named block of the system prompt."""

    name: str
    text: str


class ToolIn(Body):
    """A declared tool: its calls are answered by the client.

    `kind: "server"` with `definition` is a tool that only its own provider knows, as an import brings it.
    """

    name: str
    description: str = ""
    input_schema: RawObject = None
    kind: Literal["client", "server"] = "client"
    definition: RawObject = None


class CompactionIn(Body):
    """`trigger_tokens` null: the default of the model's window."""

    trigger_tokens: Annotated[int, Field(ge=1, le=TOKENS_MOST)] | None = None
    keep_messages: Annotated[int, Field(ge=0, le=100_000)] = 20


class CacheIn(Body):
    """Where the provider has a prompt cache."""

    enabled: bool = True
    ttl: Literal["5m", "1h"] = "5m"


class ToolChoiceIn(Body):
    """`name` goes with type `tool`."""

    type: Literal["auto", "any", "tool", "none"]
    name: ToolName | None = None


class ThinkingIn(Body):
    """`budget_tokens` goes with type `enabled`."""

    type: Literal["enabled", "disabled", "adaptive"]
    budget_tokens: Annotated[int, Field(ge=1, le=OUTPUT_TOKENS_MOST)] | None = None
    display: Literal["summarized", "omitted"] | None = None


class ParamsIn(Body):
    """The closed list of a model call's parameters. A provider that does not take one says so in `problems`."""

    temperature: Annotated[float, Field(ge=0, le=2)] | None = None
    top_p: Annotated[float, Field(ge=0, le=1)] | None = None
    top_k: Annotated[int, Field(ge=0, le=1_000_000)] | None = None
    stop: Annotated[list[Annotated[str, Field(min_length=1, max_length=1000)]], Field(max_length=64)] | None = None
    seed: Annotated[int, Field(ge=-(2**63), le=2**63 - 1)] | None = None
    tool_choice: ToolChoiceIn | None = None
    parallel_tool_calls: bool | None = None
    thinking: ThinkingIn | None = None
    reasoning_effort: Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"] | None = None

    def items(self) -> dict[str, Any]:
        """Only what was given; null is the same as not given."""
        return self.model_dump(exclude_none=True)


class AgentPatch(Patch):
    """Any of an agent's fields; what is not given stays as it is."""

    raw_fields: ClassVar[tuple[tuple[str, ...], ...]] = (
        ("tools", "*", "input_schema"),
        ("tools", "*", "definition"),
    )

    name: Name = ""
    model: Annotated[str, Field(max_length=256)] = ""
    shared: bool = False
    system: Annotated[list[SystemBlockIn], Field(max_length=SYSTEM_BLOCKS_MOST, default_factory=list)]
    system_prompt: Annotated[str, Field(description="Short for one system block named `agent`.")] = ""
    tools: Annotated[list[ToolIn], Field(max_length=TOOLS_MOST, default_factory=list)]
    builtin: Annotated[list[BuiltinName], Field(default_factory=lambda: [*get_args(BuiltinName)])]
    memory: Annotated[list[str], Field(max_length=PATHS_MOST, default_factory=list)]
    allowed_tools: Annotated[list[ToolName], Field(max_length=TOOLS_MOST)] | None = None
    max_output_tokens: Annotated[int, Field(ge=1, le=OUTPUT_TOKENS_MOST)] = 4096
    params: ParamsIn = ParamsIn()
    compaction: CompactionIn = CompactionIn()
    cache: CacheIn = CacheIn()


class AgentIn(AgentPatch):
    """A new agent: `name` and `model` are needed, the rest has defaults."""

    model_config = ConfigDict(json_schema_extra=None)

    name: Name
    model: Annotated[str, Field(max_length=256)]
