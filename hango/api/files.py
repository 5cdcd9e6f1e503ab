"""The text files of an agent: memory, skills, workspace."""

from __future__ import annotations

from typing import Annotated, Any
from urllib.parse import quote

import msgspec
from pydantic import Field

from hango.api.endpoint import Call, Reply
from hango.api.fields import Body, Moment, PageQuery
from hango.api.listing import Listing
from hango.domain import Agent, AuditAction, FileVersion
from hango.errors import Invalid, NotFound, Reason
from hango.files import CONTENT_CHARS, PATH_CHARS, check_path
from hango.store import audit, files


class FileIn(Body):
    """The whole text of a file."""

    content: Annotated[str, Field(max_length=CONTENT_CHARS)]


class FilesQuery(PageQuery):
    """`prefix`: the start of the paths, such as /skills/."""

    prefix: Annotated[str, Field(max_length=PATH_CHARS)] = ""


class FileEntryOut(msgspec.Struct, frozen=True):
    """A file without its text."""

    path: str
    version: int
    chars: int
    updated_at: Moment


class FileOut(msgspec.Struct, frozen=True):
    path: str
    content: str
    version: int
    chars: int
    updated_at: Moment

    @classmethod
    def of(cls, file: FileVersion) -> FileOut:
        return cls(file.path, file.content, file.version, file.chars, file.updated_at)


async def list_files(call: Call[Agent, None, FilesQuery]) -> Listing[FileEntryOut]:
    query = call.query
    async with call.deps.store.read(call.principal) as scope:
        page = await files.list_under(scope, call.target.id, query.prefix, limit=query.limit, cursor=query.cursor)
    entries = [FileEntryOut(file.path, file.version, file.chars, file.updated_at) for file in page.data]
    return Listing(entries, page.next_cursor)


async def show_file(call: Call[Agent, None]) -> FileOut:
    async with call.deps.store.read(call.principal) as scope:
        file = await files.read(scope, call.target.id, _existing(call))
    if file is None:
        raise NotFound
    return FileOut.of(file)


async def write_file(call: Call[Agent, FileIn]) -> Reply[FileOut]:
    path = _path(call)
    problem = check_path(path)
    if problem:
        raise Invalid.because(Reason.BAD_PATH, problem)
    async with call.deps.store.begin(call.principal) as scope:
        there = await files.read(scope, call.target.id, path)
        file = await files.write(scope, call.target.id, path, call.body.content)
        await audit.record(scope, AuditAction.FILE_WRITE, "agent", call.target.id, {"version": file.version})
    # A header holds only ASCII; a path may hold any letter.
    headers = {} if there else {"Location": f"/v1/agents/{call.target.id}/files{quote(path)}"}
    return Reply(FileOut.of(file), 200 if there else 201, headers)


async def delete_file(call: Call[Agent, None]) -> None:
    path = _existing(call)
    async with call.deps.store.begin(call.principal) as scope:
        if not await files.delete(scope, call.target.id, path):
            raise NotFound
        await audit.record(scope, AuditAction.FILE_DELETE, "agent", call.target.id, {})


def _path(call: Call[Agent, Any]) -> str:
    return f"/{call.request.path_params['path']}"


def _existing(call: Call[Agent, Any]) -> str:
    """The path, when it can be one of a file: a malformed one names nothing that is here."""
    path = _path(call)
    if check_path(path):
        raise NotFound
    return path
