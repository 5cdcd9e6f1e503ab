"""The tools of the agent's files: `ls`, `read_file`, `write_file`, `edit_file`, `glob`, `grep`.

They see the files as they are now, in the transaction that keeps their results, and write as the API does: the same
rule for paths and sizes, a version for each write, a row in the audit log.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence

from hango.chain.builtin_tools.base import MAX_RESULT_CHARS, Arguments, Outcome, Work, Workplace, failed
from hango.chain.builtin_tools.file_texts import DEFAULT_LINES, edited, lines_holding, part_of
from hango.chain.builtin_tools.globs import Glob
from hango.domain import AuditAction, FileEntry, FileVersion
from hango.errors import NotFound
from hango.files import CONTENT_CHARS, PATH_CHARS, check_path
from hango.store import audit, files

MOST_LISTED = 1000
MOST_FOUND = 200
# Of one search: files that are looked at, and characters of them. Far more than a model reads, and a second at most.
MOST_LOOKED_AT = 10_000
MOST_SEARCHED_CHARS = 16 * 1024 * 1024
PAGE = 1000
# Room for the note under a part of a file.
NOTE_CHARS = 200


async def ls(place: Workplace, arguments: Arguments) -> Outcome:
    path = _folder(arguments["path"])
    if (fault := _fault_of_folder(path)) is not None:
        return failed(fault)
    listed: list[FileEntry] = []
    async for page in _below(place, path):
        listed += page
        if len(listed) > MOST_LISTED:
            break
    if not listed:
        return Outcome(f"There are no files below {path}.")
    lines = [f"{file.path} ({file.chars:,} characters)" for file in listed[:MOST_LISTED]]
    return Outcome(_with_note(lines, len(listed) > MOST_LISTED, f"more than {MOST_LISTED:,} files: name a folder"))


async def read_file(place: Workplace, arguments: Arguments) -> Outcome:
    path = arguments["path"]
    file = await _find(place, path)
    if not isinstance(file, FileVersion):
        return file
    # A schema takes 2.0 for an integer.
    offset, limit = int(arguments.get("offset", 0)), int(arguments.get("limit", DEFAULT_LINES))
    text = part_of(file.content, offset, limit, MAX_RESULT_CHARS - NOTE_CHARS)
    if text is None:
        return failed(f"{path} ends before the line of this offset: read it with a smaller one.")
    return Outcome(text)


async def write_file(place: Workplace, arguments: Arguments) -> Outcome:
    path, content = arguments["path"], arguments["content"]
    if (fault := check_path(path)) is not None:
        return failed(fault)
    if len(content) > CONTENT_CHARS:
        return failed(
            f"The content has {len(content):,} characters, and {CONTENT_CHARS:,} are the most: write several files."
        )
    written = await _write(place, path, content)
    return written if isinstance(written, Outcome) else Outcome(f"Wrote {_described(written)}.")


async def edit_file(place: Workplace, arguments: Arguments) -> Outcome:
    path, old, new = arguments["path"], arguments["old_text"], arguments["new_text"]
    if not old:
        return failed("The old text is empty: name the text to replace, or write the whole file.")
    if old == new:
        return failed("The old and the new text are the same: nothing would change.")
    await files.hold(place.scope, place.agent_id)  # before the reading: nobody's change in between is lost
    file = await _find(place, path)
    if not isinstance(file, FileVersion):
        return file
    made = edited(file.content, old, new, replace_all=arguments.get("replace_all", False))
    if isinstance(made, str):
        return failed(made)
    text, times = made
    written = await _write(place, path, text)
    if isinstance(written, Outcome):
        return written
    return Outcome(f"Replaced {times:,} {'place' if times == 1 else 'places'} in {_described(written)}.")


async def glob(place: Workplace, arguments: Arguments) -> Outcome:
    pattern = arguments["pattern"]
    if not pattern or len(pattern) > PATH_CHARS:
        return failed(f"A pattern has 1 to {PATH_CHARS:,} characters, such as /notes/**/*.md.")
    wanted = Glob(pattern)
    found: list[str] = []
    looked_at = 0
    async for page in _pages(place, wanted.prefix):
        looked_at += len(page)
        found += [file.path for file in page if wanted.matches(file.path)]
        if len(found) > MOST_LISTED or looked_at > MOST_LOOKED_AT:
            break
    cut = len(found) > MOST_LISTED or looked_at > MOST_LOOKED_AT
    if not found and not cut:
        return Outcome("No file has such a path.")
    return Outcome(_with_note(found[:MOST_LISTED], cut, "there may be more: give a narrower pattern"))


async def grep(place: Workplace, arguments: Arguments) -> Outcome:
    wanted, path = arguments["pattern"], _folder(arguments.get("path", "/"))
    if not wanted or "\n" in wanted:
        return failed("The text to look for is part of one line: give some characters, and no line break.")
    if (fault := _fault_of_folder(path)) is not None:
        return failed(fault)
    found: list[str] = []
    looked_at = chars = 0
    async for page in _below(place, path):
        looked_at += len(page)
        chosen = []
        for file in page:
            chars += file.chars
            if chars <= MOST_SEARCHED_CHARS:
                chosen.append(file.path)
        found += await _search(place, chosen, wanted, MOST_FOUND + 1 - len(found))
        if len(found) > MOST_FOUND or looked_at > MOST_LOOKED_AT or chars > MOST_SEARCHED_CHARS:
            break
    cut = len(found) > MOST_FOUND or looked_at > MOST_LOOKED_AT or chars > MOST_SEARCHED_CHARS
    if not found and not cut:
        return Outcome(f"No line below {path} holds this text.")
    return Outcome(_with_note(found[:MOST_FOUND], cut, "there may be more: look for a longer text, or below a folder"))


async def _search(place: Workplace, paths: Sequence[str], wanted: str, most: int) -> list[str]:
    texts = await files.holding(place.scope, place.agent_id, paths, wanted)
    found: list[str] = []
    for path, text in texts.items():
        for number, line in lines_holding(text, wanted):
            found.append(f"{path}:{number}: {line}")
            if len(found) == most:
                return found
    return found


async def _find(place: Workplace, path: str) -> FileVersion | Outcome:
    if (fault := check_path(path)) is not None:
        return failed(fault)
    file = await files.read(place.scope, place.agent_id, path)
    return file or failed(f"There is no file {path}: look with `ls` or `glob` which there are.")


async def _write(place: Workplace, path: str, content: str) -> FileVersion | Outcome:
    try:
        written = await files.write(place.scope, place.agent_id, path, content)
    except NotFound:
        return failed("The agent of these files was deleted: nothing can be written.")
    await audit.record(place.scope, AuditAction.FILE_WRITE, "agent", place.agent_id, {"version": written.version})
    return written


async def _below(place: Workplace, path: str) -> AsyncIterator[Sequence[FileEntry]]:
    """The files below a path, and the file of just this path, a page at a time."""
    if path == "/":
        folder = path
    else:
        folder = f"{path}/"
        # Before all that it is the beginning of.
        first = (await files.list_under(place.scope, place.agent_id, path, limit=1)).data
        if first and first[0].path == path:
            yield first
    async for page in _pages(place, folder):
        yield page


async def _pages(place: Workplace, prefix: str) -> AsyncIterator[Sequence[FileEntry]]:
    cursor: str | None = None
    while True:
        page = await files.list_under(place.scope, place.agent_id, prefix, limit=PAGE, cursor=cursor)
        yield page.data
        cursor = page.next_cursor
        if cursor is None:
            return


def _folder(path: str) -> str:
    """A folder may be written with a slash at its end."""
    return path.removesuffix("/") if len(path) > 1 else path


def _fault_of_folder(path: str) -> str | None:
    return None if path == "/" else check_path(path)


def _described(file: FileVersion) -> str:
    return f"{file.path} (version {file.version}, {file.chars:,} characters)"


def _with_note(lines: Sequence[str], cut: bool, note: str) -> str:
    return "\n".join([*lines, f"[{note}]"] if cut else lines)


WORK: Mapping[str, Work] = {
    "ls": ls,
    "read_file": read_file,
    "write_file": write_file,
    "edit_file": edit_file,
    "glob": glob,
    "grep": grep,
}
