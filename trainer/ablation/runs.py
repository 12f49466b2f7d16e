"""The runs of a study, several at a time, each as its own process `assay train run.yaml`.

A process per run costs 3 s of imports; it buys that one crash or one run out of memory ends one
run, that torch stays out of the study (a finished study answers in a second), and that CPU threads
can be divided. `run.key` is written before a run starts and `finished.json` after it ended; a run
whose two agree is skipped, one without the second goes on from its checkpoint, and one whose key
changed is made anew.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import yaml

from pipeline.amounts import counted
from pipeline.clock import clock
from pipeline.files import read_json, replacing, write_json
from trainer.ablation.study import Run, Study
from trainer.metrics import Progress

TRAIN = (sys.executable, "-m", "trainer.cli", "train")
LOG_LINES = 12  # of a failed run, shown in the error
REFUSED = "assay train: "  # how the message of a refused run begins, with exit code 2: cli.py
POLL_SECONDS = 1.0


class RunError(ValueError):
    """A run of a study ended without result; the message names it and shows the end of its log."""


def finished(run: Run) -> bool:
    """Whether the run stands complete, under its present key."""
    record = run.folder / "finished.json"
    return (
        record.exists()
        and read_json(record)["key"] == run.key
        and (run.folder / "evaluations.parquet").exists()
    )


def outdated(study: Study) -> list[Run]:
    """Runs that stand complete, but under another key than their present one."""
    return [
        run for run in study.runs if (run.folder / "finished.json").exists() and not finished(run)
    ]


def run_all(study: Study, progress: Progress, command: Sequence[str] = TRAIN) -> None:
    """Run what is not finished, `workers` at a time.

    Raises:
        RunError: a run failed. Runs under way are ended; what they did is kept.
    """
    waiting = [run for run in study.runs if not finished(run)]
    skipped = len(study.runs) - len(waiting)
    if not waiting:
        return
    workers = min(study.settings.workers, len(waiting))
    threads = max(1, (os.cpu_count() or 1) // workers)
    living: list[subprocess.Popen[bytes]] = []
    stop = threading.Event()  # a run failed: no other starts
    with ThreadPoolExecutor(workers) as pool:
        futures = [pool.submit(_execute, run, threads, command, living, stop) for run in waiting]
        try:
            _watch(waiting, futures, progress)
        except BaseException:  # also Ctrl-C: no process outlives the study
            stop.set()
            for process in living:
                process.terminate()
            raise
    progress.line(f"{counted(len(waiting), 'run')} trained, {skipped} had finished before")


def _execute(
    run: Run,
    threads: int,
    command: Sequence[str],
    living: list[subprocess.Popen[bytes]],
    stop: threading.Event,
) -> None:
    run.folder.mkdir(parents=True, exist_ok=True)
    with _held(run.folder) as lock:
        if stop.is_set() or finished(run):  # by the process that held it before
            return
        _settle(run, threads)
        began = time.time()
        with open(run.folder / "log.txt", "ab") as log:
            process = subprocess.Popen(
                [*command, str(run.folder / "run.yaml")],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                pass_fds=[lock.fileno()],
            )
            living.append(process)
            _, status, usage = os.wait4(process.pid, 0)  # wait() does not tell CPU seconds
            process.returncode = os.waitstatus_to_exitcode(status)
            living.remove(process)
        if process.returncode != 0:
            stop.set()
            raise RunError(_failure(run, process.returncode))
        write_json(
            run.folder / "finished.json",
            {
                "key": run.key,
                "wall_seconds": round(time.time() - began, 1),  # of the last attempt
                "cpu_seconds": round(usage.ru_utime + usage.ru_stime, 1),
            },
        )


@contextmanager
def _held(folder: Path) -> Iterator[IO[bytes]]:
    """Hold a run's folder; waits while another process, or a run left by a killed study, has it.

    The training process inherits the lock: killed alone, a study leaves a run that trains on, and
    the next study waits for it instead of training into the same folder.
    """
    with open(folder / ".study.lock", "ab") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield lock


def _settle(run: Run, threads: int) -> None:
    """Write the run's settings; what other settings made is removed first."""
    key = run.folder / "run.key"
    if key.exists() and key.read_text() != run.key:
        for path in run.folder.iterdir():
            if path.is_dir():
                shutil.rmtree(path)
            elif path.name not in (".lock", ".study.lock"):
                path.unlink()
    settings = {**run.run, "threads": run.run["threads"] or threads}
    for name, content in (("mixture.yaml", run.mixture), ("run.yaml", settings)):
        with replacing(run.folder / name) as temporary:
            temporary.write_text(yaml.safe_dump(content, allow_unicode=True, sort_keys=False))
    with replacing(key) as temporary:
        temporary.write_text(run.key)


def _failure(run: Run, code: int) -> str:
    """What the process said: its one message for users, or the end of its log."""
    log = run.folder / "log.txt"
    lines = log.read_text("utf-8", errors="replace").splitlines()
    remedy = "mend the cause and call again: finished runs are kept, this one goes on"
    place = f"arm `{run.arm}`, seed {run.seed}"
    said = [at for at, line in enumerate(lines) if line.startswith(REFUSED)]
    if code == 2 and said:
        message = "\n".join(lines[said[-1] :]).removeprefix(REFUSED)
        return f"{place}: {message}\n(the log: {log}) {remedy}"
    how = f"was killed by signal {-code}" if code < 0 else f"ended with exit code {code}"
    tail = [f"  {line}" for line in lines[-LOG_LINES:]]
    return "\n".join([f"{place}: training {how}; the end of {log}:", *tail, remedy])


def _watch(runs: list[Run], futures: list[Future[None]], progress: Progress) -> None:
    """Report progress until all are done; the first failure is raised at once."""
    began, at_start = time.perf_counter(), sum(map(tokens_done, runs))
    while True:
        done, pending = wait(futures, timeout=POLL_SECONDS, return_when=FIRST_EXCEPTION)
        for future in done:
            future.result()
        if not pending:
            return
        tokens = sum(map(tokens_done, runs))
        rate = (tokens - at_start) / (time.perf_counter() - began)
        progress.update(status(runs, len(done), rate))


def status(runs: Sequence[Run], num_done: int, rate: float) -> str:
    """`2 of 6 runs done; 1 scoring; 58% of 600,000 tokens; 20,000 tokens/s; 0:13 left`."""
    seen, wanted = [tokens_done(run) for run in runs], [run.run["tokens"] for run in runs]
    trained = sum(has >= asked for has, asked in zip(seen, wanted, strict=True))
    tokens, total = sum(map(min, seen, wanted)), sum(wanted)
    parts = [f"{num_done} of {counted(len(runs), 'run')} done"]
    if trained > num_done:
        parts.append(f"{trained - num_done} scoring")
    parts.append(f"{tokens / total:.0%} of {total:,} tokens")
    if tokens < total:
        parts.append(
            f"{rate:,.0f} tokens/s; {clock((total - tokens) / rate)} left" if rate else "starting"
        )
    return "; ".join(parts)


def tokens_done(run: Run) -> int:
    """Tokens that a run has seen, by the last whole line of its metrics."""
    path, key = run.folder / "metrics.jsonl", run.folder / "run.key"
    try:
        if key.read_text() != run.key:
            return 0
        with open(path, "rb") as file:
            file.seek(max(0, path.stat().st_size - 4096))
            lines = file.read().split(b"\n")[:-1]  # behind the last line end it is being written
    except FileNotFoundError:  # not begun, or what was there before is being deleted
        return 0
    return int(json.loads(lines[-1])["tokens"]) if lines else 0
