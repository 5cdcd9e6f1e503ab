"""The order of the slots, as one list: outermost first. A draft passes them in this order."""

from __future__ import annotations

from collections.abc import Set

from hango.agent_definition import Builtin
from hango.chain.chain import Chain
from hango.chain.middleware.base import Middleware
from hango.chain.middleware.context_overrides import ContextOverridesMiddleware
from hango.chain.middleware.filesystem import FilesystemMiddleware
from hango.chain.middleware.memory import MemoryMiddleware
from hango.chain.middleware.prompt_cache import PromptCacheMiddleware
from hango.chain.middleware.skills import SkillsMiddleware
from hango.chain.middleware.subagent import SubagentMiddleware
from hango.chain.middleware.summarization import SummarizationMiddleware
from hango.chain.middleware.todo import TodoMiddleware
from hango.chain.middleware.tool_allowlist import ToolAllowlistMiddleware

STACK: tuple[type[Middleware], ...] = (
    TodoMiddleware,
    FilesystemMiddleware,
    SubagentMiddleware,
    MemoryMiddleware,
    SkillsMiddleware,
    ContextOverridesMiddleware,  # before compaction, so that compaction sees the filtered history
    SummarizationMiddleware,
    PromptCacheMiddleware,  # after overrides, so that the mark lands on a block that is sent
    ToolAllowlistMiddleware,  # last, so that nothing adds a tool back
)


def default_stack(builtin: Set[Builtin]) -> list[Middleware]:
    """Fresh slots: the built-in contributors that are switched on, and the slots every request passes."""
    off = {name.value for name in Builtin} - {name.value for name in builtin}
    return [slot() for slot in STACK if slot.name not in off]


def build_chain(builtin: Set[Builtin]) -> Chain:
    return Chain(default_stack(builtin))
