"""What work takes, without compiling kernels: that is done once a machine, and what is measured by
it would look slow where it came first.
"""

from __future__ import annotations

import time

Spent = tuple[float, float]  # seconds, CPU seconds

_compiling = [0.0, 0.0]


def spent() -> Spent:
    """Up to now, by this process, compilations left out. Only differences mean anything."""
    return time.perf_counter() - _compiling[0], time.process_time() - _compiling[1]


def since(before: Spent) -> Spent:
    seconds, cpu_seconds = spent()
    return seconds - before[0], cpu_seconds - before[1]


def of_thread() -> Spent:
    """By this thread alone: others may work while it compiles."""
    return time.perf_counter(), time.thread_time()


def leave_out(began: Spent) -> None:
    """Do not count what this thread did since it `began` to compile."""
    for i, (before, now) in enumerate(zip(began, of_thread(), strict=True)):
        _compiling[i] += now - before
