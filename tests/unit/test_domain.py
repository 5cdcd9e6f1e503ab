"""The nouns of the product: frozen records, closed sets."""

from __future__ import annotations

import dataclasses
import inspect

import msgspec
import pytest

from hango import domain
from hango.agent_definition import AgentDefinition, Builtin
from hango.digests import BlockDigest, MessageDigest
from hango.domain import AuditAction, Purpose, Role, RunStatus


def test_every_record_is_frozen() -> None:
    """Records are frozen: a rule takes values and gives values."""
    records = [kind for _, kind in inspect.getmembers(domain, inspect.isclass) if dataclasses.is_dataclass(kind)]

    assert records
    assert [kind.__name__ for kind in records if not kind.__dataclass_params__.frozen] == []  # type: ignore[attr-defined]  # private of dataclasses
    structs = [
        kind
        for _, kind in inspect.getmembers(domain, inspect.isclass)
        if issubclass(kind, msgspec.Struct) and kind is not msgspec.Struct
    ]
    assert [kind.__name__ for kind in structs if not kind.__struct_config__.frozen] == []


def test_closed_sets() -> None:
    """Fixed strings are closed sets."""
    assert [role.value for role in Role] == ["admin", "member"]
    assert [item.value for item in Builtin] == ["todo", "filesystem", "subagent", "memory", "skills"]
    assert [status.value for status in RunStatus] == [
        "queued", "running", "succeeded", "failed", "timed_out", "cancelled", "requires_action",
    ]  # fmt: skip
    assert [purpose.value for purpose in Purpose] == ["run", "subagent", "summary", "context_try"]
    assert all("." in action.value for action in AuditAction)


@pytest.mark.parametrize(
    ("model", "provider", "name"),
    [
        ("anthropic/claude-sonnet-4-5", "anthropic", "claude-sonnet-4-5"),
        ("openai/org/model:free", "openai", "org/model:free"),  # compatible servers have slashes in names
        ("offline/extract", "offline", "extract"),
    ],
)
def test_a_model_is_provider_and_name(model: str, provider: str, name: str) -> None:
    """`<provider>/<model>`: the provider ends at the first slash."""
    definition = AgentDefinition(model)

    assert (definition.provider, definition.model_name) == (provider, name)


def test_a_digest_survives_its_storage() -> None:
    """A digest is stored as an array and read back as it was; its blocks are read only when somebody asks."""
    blocks = (BlockDigest("text", 4), BlockDigest("tool_use", 5, "c1", "ls", None, False, True))
    digest = MessageDigest(
        7, "assistant", None, 12, 9, "I will look.", "ab" * 32, "other", "", msgspec.Raw(msgspec.json.encode(blocks))
    )

    assert msgspec.json.decode(msgspec.json.encode(digest), type=MessageDigest) == digest
    assert digest.blocks == blocks
