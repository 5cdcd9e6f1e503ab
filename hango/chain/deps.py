"""What the chain needs from outside, built once per process."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from hango.agent_definition import AgentDefinition
from hango.chain.frames import MAX_FRAMES, Frame
from hango.chain.kept import Kept
from hango.chain.kept_bases import MAX_BASES, KeptBase
from hango.chain.kept_histories import KeptHistories
from hango.chain.models import Models
from hango.chain.providers.registry import Providers
from hango.config import Settings
from hango.domain import AgentVersionID, BaseID, FileVersion, FileVersionID, TenantID
from hango.errors import NotFound
from hango.store import agents
from hango.store import files as file_versions
from hango.store.connection import Scope, Store
from hango.store.context_bases import BaseFile

# Definitions and texts of files are read at every inspect and never change: the last used ones stay in memory.
MAX_DEFINITIONS = 256
MAX_FILES = 512
MAX_KEPT_CHARS = 17_408  # a longer text is read anew
MAX_COUNTS = 4096

# What a part may have of a file; what is longer is cut and marked so.
MAX_FILE_CHARS = 262_144
# Of a skill only the front matter is looked at: its bound and the fences.
MAX_HEAD_CHARS = 17_408


@dataclass(frozen=True, slots=True)
class Deps:
    settings: Settings
    store: Store
    providers: Providers
    models: Models
    counts: Kept[str, int] = field(default_factory=lambda: Kept(MAX_COUNTS))  # by request hash
    frames: Kept[tuple[Any, ...], Frame] = field(default_factory=lambda: Kept(MAX_FRAMES))
    bases: Kept[tuple[TenantID, BaseID], KeptBase] = field(default_factory=lambda: Kept(MAX_BASES))
    histories: KeptHistories = field(default_factory=KeptHistories)
    _definitions: Kept[AgentVersionID, AgentDefinition] = field(default_factory=lambda: Kept(MAX_DEFINITIONS))
    _files: Kept[tuple[FileVersionID, int], FileVersion] = field(default_factory=lambda: Kept(MAX_FILES))

    async def definition(self, scope: Scope, version: AgentVersionID) -> AgentDefinition:
        """The definition of an agent's version. The id comes from a scoped look-up, so it is the caller's to see."""
        known = self._definitions.get(version)
        if known is None:
            known = await agents.definition(scope, version)
            if known is None:
                raise NotFound
            self._definitions.put(version, known)
        return known

    async def with_texts(
        self, scope: Scope, files: Sequence[BaseFile], *, most_chars: int = MAX_FILE_CHARS
    ) -> list[FileVersion]:
        """The files with their texts, each cut. The ids come from a scoped look-up, so they are the caller's to see."""
        found = {file.version_id: self._files.get((file.version_id, most_chars)) for file in files}
        unknown = [id for id, known in found.items() if known is None]
        texts = await file_versions.texts(scope, unknown, most_chars=most_chars) if unknown else {}
        return [found[file.version_id] or self._take(file, texts[file.version_id], most_chars) for file in files]

    def _take(self, file: BaseFile, text: str, most_chars: int) -> FileVersion:
        made = FileVersion(
            file.version_id, file.path, text, file.version, file.chars, file.updated_at, cut=file.chars > len(text)
        )
        if len(text) <= MAX_KEPT_CHARS:
            self._files.put((made.version_id, most_chars), made)
        return made
