"""What a command or a call costs: CPU seconds, and the peak memory of a whole process tree.

CPU seconds and bytes written count every process that came of the command, also those that it left
behind; each once, because the system adds those of a process to its parent's when that has waited
for it. Memory is PSS (shared pages counted once over all processes), sampled ten times a second, so
a shorter peak can be missed.
"""

from __future__ import annotations

import ctypes
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
ORPHAN_SECONDS = 10.0  # that the command's own processes may take to end


@dataclass(frozen=True)
class Cost:
    wall_seconds: float
    cpu_seconds: float
    peak_bytes: int
    written_bytes: int  # by every process, pipes included; 0 where /proc does not tell
    load: float  # of the machine when the command began: above the cores, wall says little
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
    _adopt_orphans()
    load = os.getloadavg()[0]
    before, written = resource.getrusage(resource.RUSAGE_CHILDREN), _written()
    begin = time.perf_counter()
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
            peak[0] = max(peak[0], sum(map(_pss, processes(process.pid))))

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    output, _ = process.communicate()
    done.set()
    watcher.join()
    _wait_for_orphans()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if process.returncode != 0:
        raise RuntimeError(
            f"{' '.join(command)} ended with {process.returncode}:\n{output[-2000:]}"
        )
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    seconds = time.perf_counter() - begin
    return Cost(seconds, cpu, peak[0], _written() - written, load, output)


def in_turn(ways: Sequence[Callable[[], Cost]], turns: int) -> list[list[Cost]]:
    """Costs of each way; the ways take turns, so that a busy moment falls on all of them."""
    rounds = [[way() for way in ways] for _ in range(turns)]
    return [list(costs) for costs in zip(*rounds, strict=True)]


def spread(values: Sequence[float]) -> str:
    """Smallest and largest."""
    return f"{min(values):.1f} to {max(values):.1f}"


def _adopt_orphans() -> None:
    """Whoever loses its parent becomes a child of this process, which waits for it."""
    if sys.platform.startswith("linux"):
        set_child_subreaper = 36
        ctypes.CDLL(None).prctl(set_child_subreaper, 1)


def _wait_for_orphans() -> None:
    end = time.monotonic() + ORPHAN_SECONDS
    while time.monotonic() < end:
        try:
            if os.waitpid(-1, os.WNOHANG)[0] == 0:
                time.sleep(0.01)
        except ChildProcessError:
            return


def processes(root: int) -> list[int]:
    """A process and all its descendants; empty where there is no /proc."""
    if not sys.platform.startswith("linux"):
        return []
    children: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):
        if name.isdigit() and (stat := _read(f"/proc/{name}/stat")):
            parent = int(stat.rsplit(")", 1)[1].split()[1])
            children.setdefault(parent, []).append(int(name))
    found = [root]
    for process in found:
        found += children.get(process, [])
    return found


def _pss(process: int) -> int:
    return _field(f"/proc/{process}/smaps_rollup", "Pss:") * 1024


def _written() -> int:
    """By this process and all those that it has waited for."""
    return _field("/proc/self/io", "wchar:")


def _field(path: str, name: str) -> int:
    for line in _read(path).splitlines():
        if line.startswith(name):
            return int(line.split()[1])
    return 0


def _read(path: str) -> str:
    """A file of /proc; empty when the process has just ended."""
    try:
        return Path(path).read_text()
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return ""
