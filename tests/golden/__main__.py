"""Write the files anew: `python -m tests.golden`. The difference is what every user's request changes by: read it."""

from __future__ import annotations

import asyncio

from tests.golden import scenes

if __name__ == "__main__":
    for scene, model in scenes.names():
        body = asyncio.run(scenes.body_of(scene, model))
        scenes.path_of(scene, model).write_text(scenes.written(body), encoding="utf-8")
