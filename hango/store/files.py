"""An agent's text files: memory, skills, workspace. A write makes a version, versions never change."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from hango.domain import FileEntry, FileVersion, FileVersionID
from hango.errors import NotFound
from hango.store.connection import Scope, one
from hango.store.db import files as rows
from hango.store.ids import new_id
from hango.store.pages import DEFAULT_LIMIT, Page, page, text_of


async def read(scope: Scope, agent_id: UUID, path: str) -> FileVersion | None:
    """The current version of a file that is not deleted."""
    row = await rows.get_file(scope.conn, tenant_id=scope.tenant_id, agent_id=agent_id, path=path)
    if row is None:
        return None
    return FileVersion(FileVersionID(row.version_id), row.path, row.content, row.number, row.chars, row.updated_at)


async def texts(scope: Scope, versions: Sequence[FileVersionID], *, most_chars: int) -> dict[FileVersionID, str]:
    """The texts of file versions, each cut at `most_chars`."""
    found = await rows.list_texts(scope.conn, tenant_id=scope.tenant_id, ids=versions, most_chars=most_chars)
    return {FileVersionID(row.id): row.content for row in found}


async def list_under(
    scope: Scope, agent_id: UUID, prefix: str, limit: int = DEFAULT_LIMIT, cursor: str | None = None
) -> Page[FileEntry]:
    """Files whose path begins with `prefix`, by path."""
    found = await rows.list_files(
        scope.conn,
        tenant_id=scope.tenant_id,
        agent_id=agent_id,
        prefix=prefix,
        after=text_of(cursor),
        most=limit + 1,
    )
    return page(found, limit, _entry, lambda entry: entry.path)


async def holding(scope: Scope, agent_id: UUID, paths: Sequence[str], text: str) -> dict[str, str]:
    """Of the files of these paths those whose text holds `text`: their texts, by path."""
    found = await rows.list_holding(scope.conn, tenant_id=scope.tenant_id, agent_id=agent_id, paths=paths, text=text)
    return {row.path: row.content for row in found}


async def hold(scope: Scope, agent_id: UUID) -> None:
    """Nobody else writes a file of the agent until the transaction ends."""
    await rows.hold_files(scope.conn, tenant_id=scope.tenant_id, agent_id=agent_id)


async def write(scope: Scope, agent_id: UUID, path: str, content: str) -> FileVersion:
    """The file's version from now on; writing what is there already makes none. Raises NotFound (no such agent).

    Holds the agent's files: two that write several never stand in each other's way.
    """
    await hold(scope, agent_id)
    there = await read(scope, agent_id, path)
    if there is not None and there.content == content:
        return there
    version_id = FileVersionID(new_id())
    number = await rows.put_file(
        scope.conn, tenant_id=scope.tenant_id, agent_id=agent_id, path=path, version_id=version_id
    )
    if number is None:
        raise NotFound
    created_at = one(
        await rows.create_file_version(
            scope.conn,
            tenant_id=scope.tenant_id,
            id=version_id,
            agent_id=agent_id,
            path=path,
            number=number,
            content=content,
            chars=len(content),
            user_id=scope.user_id,
        )
    )
    return FileVersion(version_id, path, content, number, len(content), created_at)


async def delete(scope: Scope, agent_id: UUID, path: str) -> bool:
    """Hide the file; its versions stay. False when there is no such file."""
    deleted = await rows.delete_file(scope.conn, tenant_id=scope.tenant_id, agent_id=agent_id, path=path)
    return deleted == 1


def _entry(row: rows.ListFilesRow) -> FileEntry:
    return FileEntry(row.path, row.version, row.chars, row.updated_at)
