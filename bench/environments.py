"""The peers' environments: each its own, made from its pinned requirements when they are missing or changed."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
from pathlib import Path

from bench.contestants import ROOT

PEERS = ROOT / "bench" / "peers"
ENVIRONMENTS = ROOT / "bench" / ".envs"
INSTALL_SECONDS = 900


class NotInstalled(Exception):
    """A peer cannot be installed here, with the installer's last line."""


def python_of(peer: str) -> Path:
    """The Python of a peer's environment, with everything installed. Raises NotInstalled."""
    wanted = PEERS / peer / "requirements.txt"
    folder = ENVIRONMENTS / peer
    python, stamp = folder / "bin" / "python", folder / "installed"
    digest = hashlib.sha256(wanted.read_bytes()).hexdigest()
    if stamp.exists() and stamp.read_text() == digest:
        return python
    print(f"bench: installing {peer} in {folder}", file=sys.stderr)
    shutil.rmtree(folder, ignore_errors=True)
    for command in _commands(folder, python, wanted):
        _run(peer, command)
    stamp.write_text(digest)
    return python


def _commands(folder: Path, python: Path, wanted: Path) -> list[list[str]]:
    # Every package is pinned, so nothing is resolved: a list may leave out what its peer asks for in vain.
    options = ["--no-deps", "-r", str(wanted)]
    if uv := shutil.which("uv"):
        made = [uv, "venv", "--python", sys.executable, str(folder)]
        return [made, [uv, "pip", "install", "--python", str(python), *options]]
    made = [sys.executable, "-m", "venv", str(folder)]
    return [made, [str(python), "-m", "pip", "install", "--no-input", *options]]


def _run(peer: str, command: list[str]) -> None:
    try:
        done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=INSTALL_SECONDS)
    except subprocess.TimeoutExpired:
        raise NotInstalled(f"{peer} was not installed in {INSTALL_SECONDS} s") from None
    if done.returncode:
        said = (done.stderr or done.stdout).strip().splitlines()
        raise NotInstalled(f"{peer} cannot be installed: {said[-1] if said else 'the installer gave no reason'}")
