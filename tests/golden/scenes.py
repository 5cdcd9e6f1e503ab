"""Scenes whose assembled requests are kept as files: the whole body of each provider, as the real chain makes it."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from uuid import UUID

from hango.agent_definition import AgentDefinition, Builtin, Cache, SystemBlock
from hango.chain import context_overrides
from hango.chain.chain import Capture
from hango.chain.models import Models
from hango.chain.providers.registry import Providers
from hango.chain.stack import build_chain
from hango.chain.state import Wanted
from hango.config import Settings
from hango.domain import FileVersion, Summary, SummaryID
from hango.messages import Message, ToolSpec
from tests.histories import said
from tests.states import NO_DATABASE, file, state_of

FOLDER = Path(__file__).with_name("requests")
MODELS = ("anthropic/claude-sonnet-4-5", "openai/gpt-4o", "offline/extract")

READ = ToolSpec("read_stock", "Reads the stock list.", '{"type":"object","properties":{"shelf":{"type":"integer"}}}')
SKILL = "---\nname: count\ndescription: How shelves are counted.\nallowed-tools: read_stock\n---\nCount twice.\n"
AGENT = AgentDefinition(
    MODELS[0],
    system=(SystemBlock("agent", "You look after the stock list."), SystemBlock("tone", "Be brief.")),
    tools=(READ,),
    builtin=frozenset(),
    params={"temperature": 0.5, "tool_choice": {"type": "tool", "name": "read_stock"}},
)
CALL = {"type": "tool_use", "id": "call_0", "name": "read_stock", "input": {"shelf": 9007199254740993}}
ANSWER = {"type": "tool_result", "tool_use_id": "call_0", "content": [{"type": "text", "text": "bolts: 40"}]}
HISTORY = (
    said("user", "How many bolts are left?"),
    said("assistant", [{"type": "text", "text": "I look."}, CALL]),
    said("user", [ANSWER]),
    said("assistant", "Forty."),
    said("user", "And nuts?"),
)
BROKEN = (
    said("user", [{"type": "tool_result", "tool_use_id": "lost", "content": "nobody asked"}]),
    said("user", "How many bolts are left?"),
    said("assistant", [{"type": "thinking", "thinking": "unsigned"}, CALL, CALL | {"id": "call 1"}]),
    said("user", [{"type": "text", "text": "(in kilograms)"}, ANSWER]),
    said("assistant", " \n"),
    said("system", "The shop closes at noon."),
    said("user", [{"type": "image", "source": {"type": "url", "url": "https://shop.example/a.png"}}]),
)


@dataclass(frozen=True, slots=True)
class Scene:
    """What a request is made of."""

    agent: AgentDefinition = AGENT
    messages: tuple[Message, ...] = HISTORY
    files: tuple[FileVersion, ...] = ()
    summary: Summary | None = None
    wanted: Wanted = field(default_factory=Wanted)


SCENES = {
    "plain": Scene(),
    "every_contributor": Scene(
        replace(AGENT, builtin=frozenset(Builtin), memory=("/memories/AGENTS.md",), cache=Cache(ttl="1h"), params={}),
        files=(file("/memories/AGENTS.md", "The owner likes short answers."), file("/skills/count/SKILL.md", SKILL)),
    ),
    "overrides": Scene(
        wanted=Wanted(
            overrides=context_overrides.read(
                ["system:tone", "message:2", "tool:read_stock"], {"system:agent": "You count.", "message:4": "Some."}
            ),
            message="And washers?",
        )
    ),
    "repaired": Scene(messages=BROKEN),
    "summary": Scene(messages=HISTORY[3:], summary=Summary(SummaryID(UUID(int=1)), "They counted bolts.", 3)),
}


def names() -> list[tuple[str, str]]:
    """Each scene with each model."""
    return [(scene, model) for scene in SCENES for model in MODELS]


def path_of(scene: str, model: str) -> Path:
    return FOLDER / f"{scene}.{model.partition('/')[0]}.json"


async def body_of(scene: str, model: str) -> Any:
    """The body that a provider would get, through the real chain."""
    given, models = SCENES[scene], Models.load()
    provider = Providers(Settings(home=Path("/")), models).get(model.partition("/")[0])
    agent = replace(given.agent, model=model)
    first = given.summary.through_seq + 1 if given.summary else 1
    state = state_of(
        agent,
        messages=given.messages,
        first=first,
        files=given.files,
        dialect=provider.dialect_for(agent.model_name),
        summary=given.summary,
        wanted=given.wanted,
        last_seq=first + len(given.messages) - 1,
    )
    chain, capture = build_chain(agent.builtin), Capture()
    await chain.before_run(state, NO_DATABASE)
    await chain.model_call(state, chain.draft(state), capture)
    assert capture.draft is not None
    bodies = {seq: message.content for seq, message in enumerate(given.messages, first)}
    return json.loads(provider.body(capture.draft.to_request(agent, bodies)))


def written(body: Any) -> str:
    """The body as its file holds it; the order of keys is the wire's."""
    return json.dumps(body, indent=2, ensure_ascii=False) + "\n"
