"""The agent's virtual files: a block that explains them and the tools that read and write them."""

from __future__ import annotations

from collections.abc import Sequence

from hango.chain.draft import SourcedBlock
from hango.chain.middleware.base import Middleware, block
from hango.chain.parts import system_part
from hango.chain.state import State
from hango.messages import ToolSpec

PROMPT = """\
# Files

You have files of your own. Every path is absolute and starts with a slash, for example /notes/plan.md. Look with `ls`,
`glob` or `grep` before you read, read a file before you edit it, and keep long results in a file instead of repeating
them. Memory files, usually those below /memories, are read anew at the start of every run."""


def _schema(properties: str, *required: str) -> str:
    names = ",".join(f'"{name}"' for name in required)
    return f'{{"type":"object","properties":{{{properties}}},"required":[{names}]}}'


_PATH = '"path":{"type":"string","description":"Absolute path."}'
_PATTERN = '"pattern":{"type":"string","description":"%s"}'

TOOLS = (
    ToolSpec("ls", "List the files below a path.", _schema(_PATH, "path")),
    ToolSpec(
        "read_file",
        "Read a text file, or some lines of it.",
        _schema(
            _PATH
            + ',"offset":{"type":"integer","minimum":0,"description":"First line, from 0."}'
            + ',"limit":{"type":"integer","minimum":1,"description":"How many lines."}',
            "path",
        ),
    ),
    ToolSpec(
        "write_file",
        "Write a whole text file. A file of that path is replaced.",
        _schema(_PATH + ',"content":{"type":"string"}', "path", "content"),
    ),
    ToolSpec(
        "edit_file",
        "Replace a text in a file. The old text must stand there exactly once, unless replace_all is true.",
        _schema(
            _PATH + ',"old_text":{"type":"string"},"new_text":{"type":"string"},"replace_all":{"type":"boolean"}',
            "path",
            "old_text",
            "new_text",
        ),
    ),
    ToolSpec(
        "glob",
        "Find files by a pattern such as /notes/**/*.md.",
        _schema(_PATTERN % "A glob pattern.", "pattern"),
    ),
    ToolSpec(
        "grep",
        "Find the lines that hold a text, in the files below a path.",
        _schema(_PATTERN % "The text to look for." + "," + _PATH, "pattern"),
    ),
)


class FilesystemMiddleware(Middleware):
    name = "filesystem"

    def system_blocks(self, state: State) -> Sequence[SourcedBlock]:
        return (block(system_part(self.name), PROMPT),)

    def tools(self, state: State) -> Sequence[ToolSpec]:
        return TOOLS
