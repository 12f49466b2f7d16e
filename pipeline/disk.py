"""What a disk refuses, said as what, where and what to do: no room, no permission, read-only.

Errors of the system keep their class, so that code can tell them apart, until they reach a border:
`explained` stands round the steps of a worker, `told` is asked by the command line.
"""

from __future__ import annotations

import errno
import os
import pwd
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_NOT_ALLOWED = (
    "{user} may not {act}: it belongs to {owner}, {mode}",
    "change that (chown, chmod), or choose another",
)
# What is said of a folder, and the remedy; {} are filled by `told`.
REFUSED = {
    errno.ENOSPC: ("its disk is full ({left})", "free some, or choose another disk"),
    errno.EDQUOT: ("your quota of its disk is used up", "free some, or choose another disk"),
    errno.EFBIG: (
        "no file may grow so large there (`ulimit -f`, or the kind of disk)",
        "raise the limit, or choose another disk",
    ),
    errno.EROFS: ("it is mounted read-only", "choose another folder, or mount it for writing"),
    errno.EACCES: _NOT_ALLOWED,
    errno.EPERM: _NOT_ALLOWED,
}
# Of these an input file is never the cause: it is the corpus that cannot be written.
OURS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS)
KEPT = "call again: what was finished is kept"
WRITTEN = 2  # bytes of a corpus for a byte of its text, about: docs/performance.md


class DiskError(ValueError):
    """A disk refuses; the message names the folder or file, why, and the remedy."""


@contextmanager
def explained(root: Path) -> Iterator[None]:
    """Errors of a disk in the block as DiskErrors; where they name no file, `root` is meant."""
    try:
        yield
    except OSError as error:
        message = told(error, root)
        if message is None:
            raise
        raise DiskError(message) from error


def told(error: OSError, root: Path | None = None) -> str | None:
    """The message for an error of a disk; None for any other error, and those of stores."""
    name = root if error.filename is None else error.filename
    if error.errno not in REFUSED or not isinstance(name, str | Path) or "://" in str(name):
        return None
    path = Path(os.path.abspath(name))
    if error.filename is None and REFUSED[error.errno] is _NOT_ALLOWED and os.access(path, os.W_OK):
        return None  # a process, a connection, or a file below that the message itself names
    read = path.is_file() and not os.access(path, os.R_OK)  # else a file is to appear beside it
    place = path if read else next(above for above in (path, *path.parents) if above.is_dir())
    said, remedy = REFUSED[error.errno]
    facts = {"left": _left(place), "act": "read it" if read else "write there"}
    state = place.stat()
    facts |= {"mode": stat.filemode(state.st_mode), "owner": _name(state.st_uid)}
    facts |= {"user": _name(os.geteuid())}
    return f"{place}: {said.format(**facts)}; {remedy}, and {KEPT}"


def shortage(root: Path, text_bytes: int) -> str | None:
    """What to say before a corpus of so much text is made, if its disk may be too small."""
    states = (path.stat() for path in root.rglob("*") if path.is_file())
    there = {state.st_ino: state.st_size for state in states}  # readers have a link to each
    needed, left = WRITTEN * text_bytes - sum(there.values()), shutil.disk_usage(root).free
    if needed <= left:
        return None
    return (
        f"{root} may fill its disk: about {needed / 1e6:,.0f} MB are to be written, "
        f"{left / 1e6:,.0f} MB are left; what is finished by then is kept"
    )


def _left(folder: Path) -> str:
    disk = os.statvfs(folder)
    if disk.f_files and not disk.f_favail:
        return "no more files fit: it has no inode left"
    return f"{disk.f_bavail * disk.f_frsize / 1e6:,.1f} MB left"


def _name(user: int) -> str:
    try:
        return pwd.getpwuid(user).pw_name
    except KeyError:
        return f"user {user}"


def cache_folder() -> Path:
    """$ASSAY_CACHE: what can be fetched or made again, of all processes of this machine."""
    return Path(os.environ.get("ASSAY_CACHE") or Path.home() / ".cache" / "assay")
