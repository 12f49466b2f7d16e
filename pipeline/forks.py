"""Forks of this process: when they are safe, and work that leaves no memory behind."""

from __future__ import annotations

import itertools
import os
import signal
import sys
import traceback
from collections.abc import Callable
from pathlib import Path

STANDARD = 3  # descriptors: input, output, errors


def can_fork() -> bool:
    """Does no other thread run, that could hold a lock for which a fork would wait for ever?"""
    tasks = Path("/proc/self/task")
    return tasks.exists() and len(list(tasks.iterdir())) == 1


def close_all_but(*kept: int) -> None:
    """In a fork: let go of what the other process has open, its locks above all."""
    borders = [STANDARD - 1, *sorted(kept), os.sysconf("SC_OPEN_MAX")]
    for before, after in itertools.pairwise(borders):
        os.closerange(before + 1, after)


def apart(function: Callable[[], str]) -> str:
    """What `function` returns, worked out by a process that ends with it, where that is safe: what
    it loads and makes is never in the memory of this one.

    Raises:
        RuntimeError: it failed; it printed why.
    """
    if not can_fork():
        return function()
    answer, ask = os.pipe()
    sys.stderr.flush()
    child = os.fork()
    if child == 0:
        try:
            close_all_but(ask)
            signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent answers both, and if it ends,
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # so does this
            os.write(ask, function().encode())
            os._exit(0)
        except BaseException:
            traceback.print_exc()
        os._exit(1)
    os.close(ask)
    with open(answer, encoding="utf-8") as file:
        found = file.read()
    if os.waitpid(child, 0)[1] != 0:
        raise RuntimeError(f"{function} failed in a process of its own; what it printed says why")
    return found
