"""docs/tools.md has every built-in tool as its specification has it."""

from __future__ import annotations

import json
import re
from pathlib import Path

from hango.chain.middleware import filesystem, skills, subagent, todo

PAGE = Path(__file__).resolve().parents[2] / "docs" / "tools.md"


def test_every_tool_is_documented() -> None:
    """Each tool stands in the table with its contributor and its arguments, and no other does."""
    rows = re.findall(r"^\| `(\w+)` \| (\w+) \| ([^|]*) \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE)

    expected = []
    for contributor, tools in {
        "todo": (todo.WRITE_TODOS,),
        "filesystem": filesystem.TOOLS,
        "subagent": (subagent.TASK,),
        "skills": (skills.LOAD_SKILL,),
    }.items():
        for tool in tools:
            properties = json.loads(tool.input_schema)["properties"]
            below = [name for one in properties.values() for name in one.get("items", {}).get("properties", {})]
            expected.append((tool.name, contributor, [*properties, *below]))
    assert [(name, contributor, re.findall(r"`(\w+)`", cell)) for name, contributor, cell in rows] == expected
