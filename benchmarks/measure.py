"""What a command or a call costs: CPU seconds, and the peak memory of a whole process tree.

CPU seconds count every process that the command waited for. Memory is PSS (shared pages counted
once over all processes), sampled ten times a second, so a shorter peak can be missed.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

PAUSE_SECONDS = 0.1


@dataclass(frozen=True)
class Cost:
    wall_seconds: float
    cpu_seconds: float
    peak_bytes: int
    output: str


def cpu_seconds(function: Callable[[], object]) -> float:
    """CPU seconds of one call in this process, all its threads."""
    begin = time.process_time()
    function()
    return time.process_time() - begin


def run(command: Sequence[str], environment: Mapping[str, str] | None = None) -> Cost:
    """Run a command to its end.

    Raises:
        RuntimeError: it failed; the message holds the end of what it printed.
    """
    before, begin = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=environment,
    )
    peak, done = [0], threading.Event()

    def watch() -> None:
        while not done.wait(PAUSE_SECONDS):
            peak[0] = max(peak[0], tree_bytes(process.pid))

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    output, _ = process.communicate()
    done.set()
    watcher.join()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if process.returncode != 0:
        raise RuntimeError(
            f"{' '.join(command)} ended with {process.returncode}:\n{output[-2000:]}"
        )
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Cost(time.perf_counter() - begin, cpu, peak[0], output)


def tree_bytes(root: int) -> int:
    """Memory of a process and all its descendants; 0 where /proc does not tell."""
    if not sys.platform.startswith("linux"):
        return 0
    children: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):
        if name.isdigit() and (stat := _read(f"/proc/{name}/stat")):
            parent = int(stat.rsplit(")", 1)[1].split()[1])
            children.setdefault(parent, []).append(int(name))
    total, todo = 0, [root]
    while todo:
        process = todo.pop()
        todo += children.get(process, [])
        for line in _read(f"/proc/{process}/smaps_rollup").splitlines():
            if line.startswith("Pss:"):
                total += int(line.split()[1]) * 1024
    return total


def _read(path: str) -> str:
    """A file of /proc; empty when the process has just ended."""
    try:
        return Path(path).read_text()
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return ""
