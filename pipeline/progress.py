"""Progress of a long run, read from the commit records: the same for every runner."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from pipeline.files import read_json
from pipeline.stages import Job

TERMINAL_SECONDS = 1.0
LOG_SECONDS = 15.0


@contextmanager
def shown(job: Job, missing: int) -> Iterator[None]:
    """Show parts made of those `missing`, documents and time left while the block runs."""
    stop = threading.Event()
    thread = threading.Thread(target=_show, args=(job, missing, stop), daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def _show(job: Job, missing: int, stop: threading.Event) -> None:
    terminal = sys.stderr.isatty()
    began = time.monotonic()
    started = time.time()
    while not stop.wait(TERMINAL_SECONDS if terminal else LOG_SECONDS):
        made = _made_since(job, started)
        seconds = time.monotonic() - began
        left = (missing - made) * seconds / made if made else None
        line = f"{_state(job)}, {made} of {missing} steps, {seconds:.0f} s"
        line += f", about {left:.0f} s left" if left is not None else ""
        print(
            f"\r{line}\033[K" if terminal else line, end="" if terminal else "\n", file=sys.stderr
        )
    if terminal:
        print("\r\033[K", end="", file=sys.stderr)


def _made_since(job: Job, started: float) -> int:
    records = (job.root / "stats").rglob("part-*.json")
    return sum(path.stat().st_mtime >= started for path in records)


def _state(job: Job) -> str:
    counters = [
        read_json(path)["counters"] for path in sorted((job.root / "stats/ingest").glob("part-*"))
    ]
    documents = sum(c["documents"] for c in counters)
    megabytes = sum(c["bytes"] for c in counters) / 1e6
    return f"{documents:,} documents, {megabytes:,.1f} MB of text read"
