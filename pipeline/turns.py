"""Whose turn: numbers handed out one at a time to the processes and threads of one machine.

A worker takes the next part when it is free, so all are busy to the end, whatever a part costs.
"""

from __future__ import annotations

import fcntl
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

FOLDER = "turns"


@contextmanager
def fresh(root: Path) -> Iterator[None]:
    """All queues of a corpus begin at 0, and are gone afterwards."""
    shutil.rmtree(root / FOLDER, ignore_errors=True)
    (root / FOLDER).mkdir(parents=True)
    try:
        yield
    finally:
        shutil.rmtree(root / FOLDER, ignore_errors=True)


def take(root: Path, queue: str, count: int) -> Iterator[int]:
    """Numbers below `count` that nobody else took from this queue, each when it is asked for."""
    while (number := _next(root / FOLDER / queue)) < count:
        yield number


def _next(path: Path) -> int:
    with open(path, "a+") as file:  # closing it gives the lock back
        fcntl.flock(file, fcntl.LOCK_EX)
        file.seek(0)
        number = int(file.read() or 0)
        file.truncate(0)
        file.write(str(number + 1))
    return number
