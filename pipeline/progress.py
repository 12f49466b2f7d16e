"""Progress of a long run: a redrawn block on a terminal, plain lines elsewhere, and a log.

`stats/log.jsonl` gets one JSON object a line: `start`, `part` for each finished part of a stage,
`stage` when nothing of it is left, then `end` or `error`, each with its UTC time. Runs follow one
another in it.
"""

from __future__ import annotations

import json
import shutil
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pipeline.clock import clock
from pipeline.stages import JOINS, Job
from pipeline.watch import Stage, Watch

TERMINAL_SECONDS = 1.0
LINE_SECONDS = 10.0
LOOKS_SHARE = 0.02  # of one core at most, whatever the number of parts
ERROR_CHARS = 2_000  # of a message, in the log


@contextmanager
def shown(job: Job, missing: Mapping[str, int]) -> Iterator[None]:
    """Show and log what is made of the `missing` parts of each stage while the block runs."""
    began = time.monotonic()
    watch, stop = Watch(job, missing), threading.Event()
    log = job.root / "stats" / "log.jsonl"
    append(log, [{"event": "start", "parts": len(job.parts), "missing": dict(missing)}])
    thread = threading.Thread(target=_show, args=(watch, log, stop), daemon=True)
    thread.start()
    last: dict[str, Any] = {"event": "end"}
    try:
        yield
    except BaseException as error:
        message = f"{type(error).__name__}: {error}"[:ERROR_CHARS]
        last = {"event": "error", "message": message}
        raise
    finally:
        stop.set()
        thread.join()
        events = _look(watch)
        append(log, [*events, last | {"seconds": round(time.monotonic() - began, 1)}])


def append(log: Path, events: list[dict[str, Any]]) -> None:
    """Add events to the log, each with the time of now."""
    now = datetime.now(UTC).isoformat(timespec="seconds")
    log.parent.mkdir(parents=True, exist_ok=True)
    with open(log, "a", encoding="utf-8") as file:
        for event in events:
            file.write(json.dumps({"time": now, **event}, ensure_ascii=False) + "\n")


def _look(watch: Watch) -> list[dict[str, Any]]:
    """Finished parts, and stages of which nothing is left with them."""
    waiting = {name for name, stage in watch.stages.items() if stage.left}
    events = watch.look()
    done = (name for name in watch.stages if name in waiting and not watch.stages[name].left)
    return events + [
        {
            "event": "stage",
            "stage": name,
            "parts": watch.stages[name].made,
            "documents": None if name in JOINS else watch.stages[name].documents,
            "cpu_seconds": round(watch.stages[name].cpu_seconds, 3),
        }
        for name in done
    ]


def _show(watch: Watch, log: Path, stop: threading.Event) -> None:
    terminal = sys.stderr.isatty()
    began, drawn, pause = time.monotonic(), 0, TERMINAL_SECONDS if terminal else LINE_SECONDS
    while not stop.wait(pause):
        looked = time.thread_time()
        append(log, _look(watch))
        spent = time.thread_time() - looked
        pause = max(TERMINAL_SECONDS if terminal else LINE_SECONDS, spent / LOOKS_SHARE)
        seconds = time.monotonic() - began
        if terminal:
            size = shutil.get_terminal_size()
            lines = block(watch.stages, seconds)[: size.lines - 1]
            text = "\n".join(f"{line[: size.columns - 1]}\033[K" for line in lines)
            print(f"{_up(drawn)}{text}", file=sys.stderr, flush=True)
            drawn = len(lines)
        else:
            print(headline(watch.stages, seconds), file=sys.stderr, flush=True)
    if drawn:
        print(f"{_up(drawn)}\033[J", end="", file=sys.stderr, flush=True)


def _up(lines: int) -> str:
    return f"\033[{lines}F" if lines else ""


def headline(stages: Mapping[str, Stage], seconds: float) -> str:
    """`1,204 documents, 3.1 MB of text, 1.55 MB/s, 98.2% kept, 14 of 58 steps, 0:02, about 0:06
    left`; what is not known yet is left out."""
    made, missing = (sum(getattr(s, key) for s in stages.values()) for key in ("made", "missing"))
    parts = []
    ingest = stages.get("ingest")
    if ingest and ingest.made:
        megabytes = ingest.text_bytes / 1e6
        parts += [f"{ingest.documents:,} documents", f"{megabytes:,.1f} MB of text"]
        if ingest.left:
            parts.append(f"{megabytes / seconds:.2f} MB/s")
        parts.append(f"{_kept(ingest)} kept")
    parts += [f"{made:,} of {missing:,} steps", clock(seconds)]
    left = seconds_left(stages, seconds)
    return ", ".join(parts + ([f"about {clock(left)} left"] if left is not None else []))


def block(stages: Mapping[str, Stage], seconds: float) -> list[str]:
    """The headline, and one line for each stage that is under way or done."""
    lines = [headline(stages, seconds)]
    for name, stage in stages.items():
        if stage.made:
            rate = stage.text_bytes / 1e6 / stage.cpu_seconds if stage.cpu_seconds else 0.0
            shown = f"{rate:8.1f} MB/s a core" if rate else " " * 20
            kept = f"  {_kept(stage)} kept" if stage.records else ""
            lines.append(f"  {name:<18}{stage.made:>8,} of {stage.missing:<8,}{shown}{kept}")
    return lines


def _kept(stage: Stage) -> str:
    return f"{stage.documents / stage.records:.1%}" if stage.records else "0.0%"


def seconds_left(stages: Mapping[str, Stage], seconds: float) -> float | None:
    """Parts that are left, each at the mean cost of its stage so far, at the rate so far.

    A stage that has not begun costs what the average part of a stage of its kind does; None while
    nothing is finished.
    """
    done = sum(stage.cpu_seconds for stage in stages.values())
    if not done:
        return None
    waiting = [s for s in stages if not stages[s].made]
    begun = [stage for name, stage in stages.items() if stage.made and name not in JOINS]
    parts = sum(stage.made for stage in begun)
    mean = sum(stage.cpu_seconds for stage in begun) / parts if parts else 0.0
    left = sum(s.left * s.cpu_seconds / s.made for s in stages.values() if s.made)
    left += sum(stages[name].left * mean for name in waiting if name not in JOINS)
    return left * seconds / done
