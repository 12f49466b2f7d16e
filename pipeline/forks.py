"""Forks of this process: when they are safe, and work that leaves no memory behind."""

from __future__ import annotations

import itertools
import multiprocessing
import os
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing.connection import wait
from pathlib import Path
from typing import TypeVar

A = TypeVar("A")
B = TypeVar("B")

STANDARD = 3  # descriptors: input, output, errors


class Killed(Exception):
    """A fork died before it had done its work."""


def can_fork() -> bool:
    """Does no other thread run, that could hold a lock for which a fork would wait for ever?"""
    tasks = Path("/proc/self/task")
    return tasks.exists() and len(list(tasks.iterdir())) == 1


def close_all_but(*kept: int) -> None:
    """In a fork: let go of what the other process has open, its locks above all."""
    limit = os.sysconf("SC_OPEN_MAX")  # -1: without one
    borders = [STANDARD - 1, *sorted(kept), limit if limit > 0 else 1 << 20]
    for before, after in itertools.pairwise(borders):
        os.closerange(before + 1, after)


@contextmanager
def not_inherited(descriptor: int) -> Iterator[None]:
    """Within the block every fork closes this: a lock that a fork held would outlive its owner."""
    _own.add(descriptor)
    try:
        yield
    finally:
        _own.discard(descriptor)


_own: set[int] = set()


def _let_go() -> None:
    while _own:
        os.close(_own.pop())


os.register_at_fork(after_in_child=_let_go)


def apart(function: Callable[[], str]) -> Callable[[], str]:
    """Begin to work out what `function` returns, in a process that ends with it, where that is
    safe: what it loads and makes is never in the memory of this one. Call the result for it.

    Raises:
        RuntimeError: from the call: it failed; it printed why.
    """
    if not can_fork():
        return function
    answer, ask = os.pipe()
    sys.stderr.flush()
    child = os.fork()
    if child == 0:
        try:
            close_all_but(ask)
            _leave_signals_to_parent()
            signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # it ends with the parent
            os.write(ask, function().encode())
            os._exit(0)
        except BaseException:
            traceback.print_exc()
        os._exit(1)
    os.close(ask)

    def collect() -> str:
        with open(answer, encoding="utf-8") as file:
            found = file.read()
        if os.waitpid(child, 0)[1] != 0:
            raise RuntimeError(f"{function} failed in a process of its own; it printed why")
        return found

    return collect


@contextmanager
def each(
    function: Callable[[A], B], items: Sequence[A], workers: int, afresh: bool = False
) -> Iterator[Iterator[B]]:
    """Yields the results in order, worked out by so many forks where that is safe, else here. The
    processes are gone when the block ends, however it ends: this one has one thread again.

    Args:
        function: can be pickled, as can items and results. Beside forks an exception of its own
            comes back with frames of this library: let it return what is meant for users.
        afresh: where forks are not safe, by processes that begin with nothing (a lease of a store
            is kept by a thread).

    Raises:
        Killed: one died.
    """
    start = "fork" if can_fork() else "spawn"
    workers = min(workers, len(os.sched_getaffinity(0)), len(items))
    if workers < 2 or not (start == "fork" or afresh):
        yield map(function, items)
        return
    others = multiprocessing.active_children()
    context = multiprocessing.get_context(start)
    sys.stderr.flush()
    with ProcessPoolExecutor(workers, context, _settle) as pool:  # forks all before its own thread
        try:
            yield pool.map(function, items)
        except BaseException as error:  # an interrupt, too: nobody waits for what they are at
            for child in multiprocessing.active_children():
                if child not in others:
                    child.kill()
            if isinstance(error, BrokenProcessPool):
                raise Killed from None
            raise


def _settle() -> None:
    _leave_signals_to_parent()
    threading.Thread(target=end_with_parent, daemon=True).start()


def _leave_signals_to_parent() -> None:
    """Ctrl-C reaches all processes of a terminal; the parent answers it, and ends its forks."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)


def end_with_parent() -> None:
    """In a process of `multiprocessing`: wait for the end of its parent, and end."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    wait([parent.sentinel])
    os._exit(1)
