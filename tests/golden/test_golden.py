"""Assembled requests, whole: a change of what is sent shows in the file of its scene."""

from __future__ import annotations

import pytest

from tests.golden import scenes


@pytest.mark.parametrize(("scene", "model"), scenes.names())
async def test_the_request_of_a_scene(scene: str, model: str) -> None:
    """The body is the kept one, value for value and in its order; `python -m tests.golden` writes the files anew."""
    body = await scenes.body_of(scene, model)

    assert scenes.written(body) == scenes.path_of(scene, model).read_text(encoding="utf-8")


def test_every_file_is_of_a_scene() -> None:
    """No file is left of a scene that is gone."""
    assert sorted(scenes.FOLDER.iterdir()) == sorted(scenes.path_of(*name) for name in scenes.names())
