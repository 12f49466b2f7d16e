"""Processes that may die or hang, for tests: each runs one function of a test module.

They are forked from multiprocessing's fork server, which has imported the trainer, run nothing and
has one thread; each child checks that. Forked from pytest itself, a child inherits locks that
threads of pyarrow, duckdb, torch or a tokenizer held, and waits for them for ever. Started from
nothing, each would import torch for 3 seconds.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

SECONDS = 120.0  # longer than any job on a busy machine: what takes more hangs
# Libraries start threads when they are imported; with these settings they do not.
NO_THREADS = {"OPENBLAS_NUM_THREADS": "1", "JE_ARROW_MALLOC_CONF": "background_thread:false"}

Job = tuple[Callable[..., object], tuple[Any, ...]]  # function of a module, its arguments


def run(logs: Path, *jobs: Job) -> list[int]:
    """Run all jobs at the same time; exit codes, negative for a signal.

    Raises:
        AssertionError: a job took longer than SECONDS; all are ended, the message shows their logs.
    """
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["trainer.loop"])
    paths = [logs / f"job-{number}.log" for number in range(len(jobs))]
    children = [
        context.Process(target=_child, args=(path, *job))
        for path, job in zip(paths, jobs, strict=True)
    ]
    with _environment(NO_THREADS):
        for child in children:
            child.start()
    end = time.monotonic() + SECONDS
    for child in children:
        child.join(max(0.0, end - time.monotonic()))
    late = [child for child in children if child.exitcode is None]
    for child in late:
        child.kill()
        child.join()
    told = "".join(f"\n{path.name}: {path.read_text()}" for path in paths if path.exists())
    assert not late, f"{len(late)} of {len(jobs)} jobs hung for {SECONDS} seconds{told}"
    print(told)  # pytest shows it when the test fails
    return [child.exitcode for child in children if child.exitcode is not None]


def _child(log: Path, function: Callable[..., object], arguments: tuple[Any, ...]) -> None:
    output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(output, sys.stdout.fileno())
    os.dup2(output, sys.stderr.fileno())
    try:
        threads = Path(f"/proc/{os.getppid()}/task")  # not on macOS
        if threads.exists():
            names = [(thread / "comm").read_text().strip() for thread in threads.iterdir()]
            assert len(names) == 1, f"the fork server has threads: {names}"
        function(*arguments)
    except BaseException:
        traceback.print_exc()
        sys.stderr.flush()
        os._exit(1)
    os._exit(0)


@contextmanager
def _environment(changes: dict[str, str]) -> Iterator[None]:
    before = dict(os.environ)
    os.environ.update(changes)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)
