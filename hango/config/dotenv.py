"""A `.env` file: `NAME=value` lines. `hango up` reads the one in its working folder; nothing else does."""

from __future__ import annotations

import re
from pathlib import Path

from hango.config import WrongSetting

LINE = re.compile(
    r"""(?:export\s+)?(?P<name>[A-Za-z_][A-Za-z0-9_]*)\s*=\s*
        (?:'(?P<single>[^']*)'|"(?P<double>[^"]*)"|(?P<plain>[^'"\s#][^#]*?)?)\s*(?:\#.*)?""",
    re.VERBOSE,
)


def read(path: Path) -> dict[str, str]:
    """The file's variables; none without a file. Raises WrongSetting with the line's number, not its text."""
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError) as error:
        raise WrongSetting(f"{path} cannot be read ({type(error).__name__}): mend it or move it away.") from None
    found = {}
    for number, line in enumerate(lines, start=1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        parts = LINE.fullmatch(line.strip())
        if parts is None:
            raise WrongSetting(f"{path} line {number} is no setting: write NAME=value.")
        found[parts["name"]] = parts["single"] or parts["double"] or parts["plain"] or ""
    return found
