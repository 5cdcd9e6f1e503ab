"""Writes into README.md what `hango context show` prints for the demo's session. Needs `./dev up` running."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

from hango.config import Settings

README = Path(__file__).resolve().parent.parent / "README.md"
COMMAND = "./dev context show --session {session}"
SHOWN_SESSION = "01a22dfd-b204-7685-9ad3-9b0d8b2170bd"  # an id of each run's own would change the page every time
COLUMNS = 100
BLOCK = re.compile(r"(?P<head><!-- recorded -->\n\n```\n)(?P<text>.*?)(?P<foot>```\n)", re.DOTALL)


def record(url: str, api_key: str, session_id: str) -> str:
    """The command and all that it prints, with the shown id in place of the session's."""
    done = subprocess.run(
        [sys.executable, "-m", "hango", "context", "show", "--session", session_id],
        env={**os.environ, "HANGO_API_URL": url, "HANGO_API_KEY": api_key, "COLUMNS": str(COLUMNS)},
        capture_output=True,
        text=True,
        check=True,
    )
    return f"$ {COMMAND.format(session=session_id)}\n{done.stdout}".replace(session_id, SHOWN_SESSION)


def main() -> None:
    settings = Settings.from_env()
    up = json.loads(settings.up_file.read_text(encoding="utf-8"))
    demo = json.loads((settings.home / "demo.json").read_text(encoding="utf-8"))
    made = record(up["url"], up["api_key"], demo["session_id"])
    page = README.read_text(encoding="utf-8")
    README.write_text(BLOCK.sub(lambda block: block["head"] + made + block["foot"], page), encoding="utf-8")


if __name__ == "__main__":
    main()
