"""Files that processes hold with flock: who reads one holds it shared, who writes one alone.

The kernel lets go of what a killed process held.
"""

from __future__ import annotations

import fcntl
import os
import weakref
from pathlib import Path


class Held:
    """A file of the cache, which stays there until it is let go, or this object is dropped."""

    def __init__(self, path: Path, descriptor: int) -> None:
        self.path, self.descriptor = path, descriptor
        self._finalizer = weakref.finalize(self, let_go, descriptor, os.getpid())
        self._finalizer.atexit = False  # the kernel does it

    def release(self) -> None:
        self._finalizer()


def let_go(descriptor: int, process: int | None = None) -> None:
    """Unlock and close a file; a fork of the `process` that locked it only closes its copy.

    Closing alone would leave it locked while a forked process has the same description open.
    """
    if process in (None, os.getpid()):
        fcntl.flock(descriptor, fcntl.LOCK_UN)
    os.close(descriptor)


def is_at(descriptor: int, path: Path) -> bool:
    """Whether an open file still has this name."""
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False


def is_held(path: Path) -> bool:
    """Whether a process holds it, shared or alone; pipeline.files.is_held asks for the latter."""
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        let_go(descriptor)
    return False


def removed(path: Path) -> bool:
    """Remove a shard that nobody holds; whether it is gone."""
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        return True
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        path.unlink(missing_ok=True)
    except BlockingIOError:
        return False
    finally:
        let_go(descriptor)
    return True
