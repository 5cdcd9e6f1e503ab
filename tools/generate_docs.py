"""Writes docs/openapi.json and the generated blocks of docs/: between `<!-- made: NAME -->` and `<!-- end -->`.

With --check: fails when one differs from what the code says.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from hango import config
from hango.telemetry.names import COUNTERS, GAUGES, HISTOGRAMS, Counter, Gauge, Histogram, Metric
from tools import cli_help, http_docs

ROOT = Path(__file__).resolve().parent.parent
UNITS = {
    "s": "seconds",
    "{override}": "overrides",
    "{try}": "tries",
    "{preview}": "previews",
    "{job}": "jobs",
    "{run}": "runs",
    "{token}": "tokens",
    "{USD}": "US dollars",
    "1": "a share",
    "{message}": "messages",
    "{thing}": "months or tries",
}
BLOCK = re.compile(r"(<!-- made: (?P<name>[a-z-]+) -->\n).*?(<!-- end -->)", re.DOTALL)


def settings() -> str:
    rows = [
        f"| `{row.name}` | {row.takes} | {_code(row.default)} | {row.meaning}{' Secret.' if row.secret else ''} |"
        for row in config.table()
    ]
    return "\n".join(["| variable | takes | default | meaning |", "|---|---|---|---|", *rows, ""])


def metrics() -> str:
    kinds: Mapping[str, Mapping[Metric, Histogram] | Mapping[Metric, Gauge] | Mapping[Metric, Counter]] = {
        "histogram": HISTOGRAMS,
        "gauge": GAUGES,
        "counter": COUNTERS,
    }
    rows = [
        f"| `{name}` | {kind} | {UNITS[table[name].unit]} | {table[name].meaning} |"
        for name in Metric
        for kind, table in kinds.items()
        if name in table
    ]
    return "\n".join(["| metric | kind | unit | meaning |", "|---|---|---|---|", *rows, ""])


BLOCKS: Mapping[str, Callable[[], str]] = {
    "settings": settings,
    "metrics": metrics,
    "commands": cli_help.commands,
    "context-table": cli_help.context_table,
    "compare-table": cli_help.compare_table,
    "exit-codes": cli_help.exit_codes,
    "routes": http_docs.routes,
    "accesses": http_docs.accesses,
    "route-access": http_docs.route_access,
}


def _code(default: str) -> str:
    """A default that could be typed is shown as code; one that is described is not."""
    return default if " " in default or "`" in default or default in {"none", "off"} else f"`{default}`"


def pages() -> dict[Path, str]:
    """The API's document and every page that holds a generated block, as they should be."""
    found = {ROOT / "docs" / "openapi.json": http_docs.openapi()}
    for path in sorted(ROOT.glob("docs/*.md")):
        written = path.read_text(encoding="utf-8")
        if BLOCK.search(written):
            found[path] = BLOCK.sub(lambda block: block[1] + "\n" + BLOCKS[block["name"]]() + "\n" + block[3], written)
    return found


def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8") if path.exists() else ""


def main(words: list[str]) -> int:
    stale = {path: wanted for path, wanted in pages().items() if _read(path) != wanted}
    if words == ["--check"]:
        for path in stale:
            sys.stderr.write(f"{path.relative_to(ROOT)} is stale: run tools/generate_docs and commit.\n")
        return 1 if stale else 0
    for path, wanted in stale.items():
        path.write_text(wanted, encoding="utf-8")
        sys.stderr.write(f"wrote {path.relative_to(ROOT)}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
