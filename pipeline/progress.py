"""Progress of a long run: a redrawn block on a terminal, plain lines elsewhere, and a log.

A block fits its terminal: what matters most stands first, what does not fit is left out, a number
is never cut. Plain lines say which stages begin when they do, and every 10 s how far all is.

The log gets one JSON object a line: `start`, `part` for each finished part of a stage, `stage` when
nothing of it is left, then `end`, or `error` with its traceback, each with its UTC time. Runs
follow one another in it.
"""

from __future__ import annotations

import contextlib
import json
import shutil
import sys
import threading
import time
import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pipeline.amounts import counted
from pipeline.clock import clock
from pipeline.corpus import CorpusError
from pipeline.stages import JOINS, Job
from pipeline.time_left import Mark, pace, seconds_left
from pipeline.watch import Stage, Watch

LOOK_SECONDS = 1.0
LINE_SECONDS = 10.0  # between plain lines
LOOKS_SHARE = 0.02  # of one core at most, whatever the number of parts
LOG = "stats/log.jsonl"  # of a corpus


@contextmanager
def shown(job: Job, missing: Mapping[str, int]) -> Iterator[None]:
    """Show and log what is made of the `missing` parts of each stage while the block runs."""
    began = time.monotonic()
    watch, stop = Watch(job, missing), threading.Event()
    log, unlogged = job.root / LOG, list[dict[str, Any]]()
    append(log, [{"event": "start", "parts": len(job.parts), "missing": dict(missing)}])
    thread = threading.Thread(target=_show, args=(watch, log, unlogged, stop), daemon=True)
    thread.start()
    failed: BaseException | None = None
    try:
        yield
    except BaseException as error:
        failed = error
        raise
    finally:
        stop.set()
        thread.join()
        last = {**_end(failed), "seconds": round(time.monotonic() - began, 1)}
        try:
            append(log, [*unlogged, *_look(watch), last])
        except OSError as error:
            if failed is None:
                raise
            said = isinstance(failed, CorpusError)  # what it was, and what to do
            trace = "" if said else f"; so here is the traceback\n{last['traceback']}"
            failed.add_note(f"{log}: {error}{trace}")


def _end(failed: BaseException | None) -> dict[str, Any]:
    if failed is None:
        return {"event": "end"}
    return {
        "event": "error",
        "message": f"{type(failed).__name__}: {failed}",
        "traceback": "".join(traceback.format_exception(failed)),
    }


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


def _show(watch: Watch, log: Path, unlogged: list[dict[str, Any]], stop: threading.Event) -> None:
    """Until `stop`; `unlogged` are the events that a full disk did not take: the run itself fails
    of it, and tells."""
    terminal = sys.stderr.isatty()
    began, drawn, told, begun = time.monotonic(), 0, 0.0, set[str]()
    marks: list[Mark] = []
    pause = 0.0
    while not stop.wait(pause):
        looked = time.thread_time()
        found = _look(watch)
        unlogged += found
        with contextlib.suppress(OSError):
            append(log, unlogged)
            unlogged.clear()
        pause = max(LOOK_SECONDS, (time.thread_time() - looked) / LOOKS_SHARE)
        seconds = time.monotonic() - began
        if found:
            done = sum(stage.cpu_seconds for stage in watch.stages.values())
            marks.append(Mark(seconds, done))
        if terminal:
            size = shutil.get_terminal_size()
            lines = block(watch.stages, seconds, marks, size.columns - 1, size.lines - 1)
            text = "\n".join(f"{line}\033[K" for line in lines)
            print(f"{_up(drawn)}{text}\033[J", file=sys.stderr, flush=True)
            drawn = len(lines)
            continue
        begins = [name for name in under_way(watch.stages) if name not in begun]
        if begins:
            begun.update(begins)
            print(f"begins: {', '.join(begins)}", file=sys.stderr, flush=True)
        if seconds - told >= LINE_SECONDS:
            told = seconds
            print(", ".join(headline(watch.stages, seconds, marks)), file=sys.stderr, flush=True)
    if drawn:
        print(f"{_up(drawn)}\033[J", end="", file=sys.stderr, flush=True)


def _up(lines: int) -> str:
    return f"\033[{lines}F" if lines else ""


def headline(stages: Mapping[str, Stage], seconds: float, marks: Sequence[Mark]) -> list[str]:
    """`14 of 58 steps`, `about 0:06 left`, `0:02`, `1.55 MB/s`, `98.2% kept`, `1,204 documents`,
    `3.1 MB of text`: what is known of them, the most important first."""
    made, missing = (sum(getattr(s, key) for s in stages.values()) for key in ("made", "missing"))
    left = seconds_left(stages, pace(marks))
    parts = [f"{made:,} of {missing:,} steps"]
    parts += [f"about {clock(left)} left"] if left is not None else []
    parts.append(clock(seconds))
    ingest = stages.get("ingest")
    if ingest and ingest.made:
        megabytes = ingest.text_bytes / 1e6
        parts += [f"{megabytes / seconds:.2f} MB/s"] if ingest.left else []
        parts += [f"{_kept(ingest)} kept", counted(ingest.documents, "document")]
        parts.append(f"{megabytes:,.1f} MB of text")
    return parts


def block(
    stages: Mapping[str, Stage],
    seconds: float,
    marks: Sequence[Mark],
    columns: int = 200,
    lines: int = 100,
) -> list[str]:
    """The headline, and one line for each stage that is under way or done.

    Args:
        columns, lines: how many there are. Of a line the last cells that do not fit are left out;
            of the stages those that are done, if not all fit.
    """
    now = under_way(stages)
    shown = [name for name, stage in stages.items() if stage.made or name in now]
    if len(shown) >= lines:
        shown = [name for name in shown if name in now]
    rows = [_cells(name, stages[name]) for name in shown[: max(0, lines - 1)]]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    aligned = [[row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])] for row in rows]
    head = _fitted(headline(stages, seconds, marks), ", ", columns)
    return [head, *(_fitted(["", *row], "  ", columns).rstrip() for row in aligned)]


def _cells(name: str, stage: Stage) -> list[str]:
    rate = stage.text_bytes / 1e6 / stage.cpu_seconds if stage.cpu_seconds else 0.0
    return [
        name,
        f"{stage.made:,} of {stage.missing:,}",
        f"{rate:,.1f} MB/s a core" if rate else "",
        f"{_kept(stage)} kept" if stage.records else "",
    ]


def _fitted(cells: Sequence[str], between: str, columns: int) -> str:
    """As many of the cells as fit; the first one always."""
    line, *others = cells
    for cell in others:
        if len(line) + len(between) + len(cell) > columns:
            break
        line += between + cell
    return line


def under_way(stages: Mapping[str, Stage]) -> list[str]:
    """Stages of which something is left, and which have begun or are the next to begin."""
    waiting = [name for name, stage in stages.items() if stage.left]
    return [name for name in waiting if stages[name].made or name == waiting[0]]


def _kept(stage: Stage) -> str:
    return f"{stage.documents / stage.records:.1%}" if stage.records else "0.0%"
