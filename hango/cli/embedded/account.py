"""Who runs the embedded services, and a folder that this account can reach. Starts nothing.

PostgreSQL refuses to run as root, so root hands the services to an ordinary account. That account must be
able to walk to its files: a home below /root or below a private temporary folder gets a room under /var/lib
instead, and a link to it.
"""

from __future__ import annotations

import os
import pwd
import secrets
import shutil
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import TypedDict

from hango.errors import Unavailable

# In this order: one made for hango, the one of a system's own PostgreSQL, the one that is always there.
CANDIDATES = ("hango", "postgres", "nobody")
ROOMS = Path("/var/lib/hango/rooms")
OWNER_FILE = "home"  # in a room: the home it belongs to


class RunAs(TypedDict, total=False):
    """The arguments of `subprocess.Popen` that hand a process to an account."""

    user: int
    group: int
    extra_groups: list[int]


@dataclass(frozen=True, slots=True)
class Account:
    """Whom the services run as: the caller, or for root an ordinary account."""

    name: str
    uid: int
    gid: int
    other: bool  # not the caller

    def popen(self) -> RunAs:
        return RunAs(user=self.uid, group=self.gid, extra_groups=[]) if self.other else RunAs()

    def own(self, folder: Path) -> Path:
        """A folder of the account's alone. Refuses one that somebody else made first."""
        folder.mkdir(parents=True, exist_ok=True)
        found = folder.lstat()
        if not stat.S_ISDIR(found.st_mode) or found.st_uid not in {os.geteuid(), self.uid}:
            raise Unavailable(f"{folder} belongs to another account; remove it, or set HANGO_HOME to another folder.")
        os.chown(folder, self.uid, self.gid)
        folder.chmod(0o700)
        return folder


def unusable(error: OSError) -> Unavailable:
    """What to say of a home that cannot be made or written."""
    return Unavailable(f"{error.filename} cannot be used ({error.strerror}); set HANGO_HOME to a folder of your own.")


def service_account(folder: Path) -> Account:
    """Whoever has the folder already, so that a new account on the machine changes nothing.

    Raises Unavailable for a root without an ordinary account beside it.
    """
    if os.geteuid() != 0:
        return Account("", os.geteuid(), os.getegid(), other=False)
    users = {entry.pw_uid: entry for entry in reversed(pwd.getpwall()) if entry.pw_uid != 0}
    names = {entry.pw_name: entry for entry in users.values()}
    settled = users.get(folder.stat().st_uid) if folder.exists() else None
    for entry in (settled, *(names.get(name) for name in CANDIDATES)):
        if entry is not None:
            return Account(entry.pw_name, entry.pw_uid, entry.pw_gid, other=True)
    raise Unavailable(
        "PostgreSQL does not run as root and there is no ordinary account; make one named hango, "
        "or set HANGO_DATABASE_URL and HANGO_REDIS_URL."
    )


def room(home: Path) -> Path:
    """Where the services of a home keep their files: the home itself if their account can walk to it."""
    home.mkdir(parents=True, exist_ok=True)
    if os.geteuid() != 0:
        return home
    # The home is ours to open, its parents are not. Walking through shows nothing: what is in it is private.
    home.chmod(stat.S_IMODE(home.stat().st_mode) | 0o711)
    if walkable(home):
        return home
    link = home / "room"
    if link.is_symlink() and (link / OWNER_FILE).exists():
        return link.resolve()
    sweep_rooms()
    made = ROOMS / secrets.token_hex(6)
    made.mkdir(parents=True)
    (made / OWNER_FILE).write_text(str(home))
    link.unlink(missing_ok=True)
    link.symlink_to(made)
    return made


def sweep_rooms() -> None:
    """Removes the rooms whose home is gone, or has another room by now."""
    for found in ROOMS.glob("*"):
        owner = found / OWNER_FILE
        if owner.exists() and (Path(owner.read_text()) / "room").resolve() != found:
            shutil.rmtree(found, ignore_errors=True)


def walkable(path: Path) -> bool:
    """Every folder down to the path may be entered by anybody."""
    path = path.resolve()
    return all(step.stat().st_mode & stat.S_IXOTH for step in (path, *path.parents) if step.is_dir())


def reachable_copy(package: Path, room_of_copies: Path, version: str, account: Account) -> Path:
    """The folder of an installed package, or a copy of it when the account cannot walk to it.

    The libraries that a wheel puts beside its package keep their place: binaries find them by relative path.
    """
    if not account.other or walkable(package):
        return package
    copies = room_of_copies / f"{package.name}-{version}"
    done = copies / "complete"
    if not done.exists():
        shutil.rmtree(copies, ignore_errors=True)
        skip = shutil.ignore_patterns("include", "pgxs", "pkgconfig", "*.a", "doc", "__pycache__")
        for folder in (package, package.with_name(f"{package.name}.libs")):
            if folder.is_dir():
                shutil.copytree(folder, copies / folder.name, symlinks=True, ignore=skip)
        done.touch()
    return copies / package.name
