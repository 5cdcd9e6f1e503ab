"""The table of models: how much one holds, how it counts, what it takes. The data is in models.toml."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import msgspec

from hango.config import WrongSetting
from hango.errors import Invalid, Reason

TABLE = Path(__file__).with_name("models.toml")


class ModelRow(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One model; models.toml says what each field means."""

    window: int
    output_limit: int
    factor: float
    prefill: bool
    cache_min_tokens: int
    tools_required_for_tool_blocks: bool
    system_in_history: bool
    sampling: bool


class Models:
    """Rows by `<provider>/<model>`. Immutable; one per process."""

    def __init__(self, rows: Mapping[str, Mapping[str, Any]]) -> None:
        self._rows = dict(sorted(rows.items(), key=lambda item: len(item[0])))
        # Names come from agents: a bound keeps odd ones from piling up.
        self._found = lru_cache(maxsize=1024)(self._find)

    @classmethod
    def load(cls, path: Path | str | None = None) -> Models:
        """hango's own table, with the rows of an override file laid over it.

        Raises WrongSetting for a file that cannot be read, and names the row at fault.
        """
        rows = _read(TABLE)
        if path is not None:
            for name, changes in _read(Path(path)).items():
                rows[name] = rows.get(name, {}) | changes
        models = cls(rows)
        for name in rows:
            try:
                models.row(name)
            except (Invalid, msgspec.ValidationError) as error:
                raise WrongSetting(f"HANGO_MODELS: the row '{name}' of {path or TABLE} is wrong: {error}.") from None
        return models

    def row(self, model: str) -> ModelRow:
        """The row of a model; an unknown model has its provider's default row.

        Raises Invalid (`bad_model`) when the provider is unknown too.
        """
        return self._found(model)

    def _find(self, model: str) -> ModelRow:
        fields: dict[str, Any] = {}
        for name, row in self._rows.items():
            if model.startswith(name):
                fields |= row
        if not fields:
            raise Invalid.because(
                Reason.BAD_MODEL,
                f"The model '{model}' has no row: write it as <provider>/<model>, with one of the providers "
                f"{', '.join(name[:-1] for name in self._rows if name.endswith('/'))}.",
            )
        return msgspec.convert(fields, ModelRow)


def _read(path: Path) -> dict[str, dict[str, Any]]:
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise WrongSetting(f"HANGO_MODELS: {path} cannot be read as TOML ({error}).") from None
    if wrong := [name for name, row in table.items() if not isinstance(row, dict)]:
        raise WrongSetting(f"HANGO_MODELS: '{wrong[0]}' in {path} is no row: write [\"<provider>/<model>\"].")
    return table
