"""The table of models: rows from the general to the particular, an override file on top, faults named."""

from __future__ import annotations

from pathlib import Path

import pytest

from hango.chain.models import ModelRow, Models
from hango.config import WrongSetting
from hango.errors import Invalid

UNKNOWN_CLAUDE = ModelRow(
    window=200_000,
    output_limit=64_000,
    factor=1.2,
    prefill=False,
    cache_min_tokens=1024,
    tools_required_for_tool_blocks=True,
    system_in_history=False,
    sampling=True,
)


def test_an_unknown_model_gets_its_providers_default_row() -> None:
    """An unknown model gets the provider's default row."""
    assert Models.load().row("anthropic/claude-x") == UNKNOWN_CLAUDE


def test_the_longest_name_that_fits_decides() -> None:
    """A dated name has the row of its family; a row says only what differs from the shorter names."""
    models = Models.load()

    assert models.row("anthropic/claude-opus-5-5-20261001") == ModelRow(
        window=1_000_000,
        output_limit=128_000,
        factor=1.55,
        prefill=False,
        cache_min_tokens=512,
        tools_required_for_tool_blocks=False,
        system_in_history=True,
        sampling=False,
    )
    assert models.row("openai/gpt-5.4-mini").window == 400_000
    assert models.row("openai/gpt-5.4").window == 1_050_000


def test_an_override_file_lays_its_rows_over_the_table(tmp_path: Path) -> None:
    """HANGO_MODELS replaces single fields of a row and adds rows; all else stays."""
    file = tmp_path / "models.toml"
    file.write_text('["anthropic/"]\nprefill = true\n["openai/qwen"]\nwindow = 32_768\nfactor = 1.1\n')

    models = Models.load(file)

    assert models.row("anthropic/claude-x") == ModelRow(
        **{field: getattr(UNKNOWN_CLAUDE, field) for field in UNKNOWN_CLAUDE.__struct_fields__} | {"prefill": True}
    )
    assert (models.row("openai/qwen3-8b").window, models.row("openai/qwen3-8b").factor) == (32_768, 1.1)
    assert models.row("openai/other") == Models.load().row("openai/other")


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("window = ", "cannot be read as TOML"),
        ("window = 1", "'window'"),
        ('["openai/x"]\nwindows = 1', "'openai/x'"),
        ('["openai/x"]\nwindow = "big"', "'openai/x'"),
        ('["new/x"]\nwindow = 1', "'new/x'"),
    ],
)
def test_a_wrong_override_file_stops_the_process_and_names_the_row(tmp_path: Path, text: str, wrong: str) -> None:
    """A wrong value stops the process and names itself."""
    file = tmp_path / "models.toml"
    file.write_text(text)

    with pytest.raises(WrongSetting, match="HANGO_MODELS") as failure:
        Models.load(file)

    assert wrong in str(failure.value)


@pytest.mark.parametrize("model", ["", "claude-opus-5", "google/gemini", "Anthropic/claude"])
def test_a_model_of_no_provider_is_refused(model: str) -> None:
    """A model is written <provider>/<model>; other names are `bad_model`."""
    with pytest.raises(Invalid) as failure:
        Models.load().row(model)

    assert failure.value.closed_code == "bad_model"
