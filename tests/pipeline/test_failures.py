"""What a user reads when a step fails: one line; all else stands in the log."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import small_corpus

from pipeline.corpus import CorpusError
from pipeline.failures import StepError, explained
from pipeline.progress import LOG

ROOT = Path("runs/web")
BEAM = "Traceback (most recent call last):\n  File 'x'\n{} [while running 'Ingest']\n\n"
PROGRESS = re.compile(r"reading |kernels are compiled|begins: |\d+ of \d+ steps, ")
SYSTEM = "mend it and call again: what was finished is kept; details: runs/web/stats/log.jsonl"
MEMORY = (
    "fewer --workers, or smaller shard_bytes, and call again: what was finished is kept; "
    "details: runs/web/stats/log.jsonl"
)


def line(error: Exception, *lost: str) -> tuple[type[Exception], str]:
    with pytest.raises((ValueError, RuntimeError)) as caught, explained(ROOT, lost):
        raise error
    assert caught.value is error or caught.value.__cause__ is error
    return caught.type, str(caught.value)


@pytest.mark.parametrize(
    ("raised", "expected"),
    [
        (
            "pipeline.transforms.ingest.UnreadableError: a.jsonl cannot be read; mend it",
            "a.jsonl cannot be read; mend it; details: runs/web/stats/log.jsonl",
        ),
        (
            "pipeline.disk.DiskError: a: its disk is full; free some",
            "a: its disk is full; free some; details: runs/web/stats/log.jsonl",
        ),
        ("OSError: [Errno 5] I/O: error", f"[Errno 5] I/O: error; {SYSTEM}"),
        ("NotADirectoryError: [Errno 20] 'a'", f"[Errno 20] 'a'; {SYSTEM}"),
        (
            "pyarrow.lib.ArrowMemoryError: malloc of size 64 failed",
            f"pyarrow.lib.ArrowMemoryError: malloc of size 64 failed; {MEMORY}",
        ),
        ("RuntimeError: MemoryError", f"RuntimeError: MemoryError; {MEMORY}"),
        ("RuntimeError: PermissionError: [Errno 13] 'a'", f"[Errno 13] 'a'; {SYSTEM}"),
        (
            "pipeline.config.ConfigError: two\nlines",
            "two\nlines; details: runs/web/stats/log.jsonl",
        ),
    ],
)
def test_what_the_user_can_mend(raised: str, expected: str) -> None:
    wanted = CorpusError, f"runs/web: step 'Ingest' failed: {expected}"
    assert line(RuntimeError(BEAM.format(raised))) == wanted


def test_an_error_that_crossed_no_process() -> None:
    error = CorpusError("part 3 is gone; call again [while running 'Sweep']")
    assert line(error) == (
        CorpusError,
        "runs/web: step 'Sweep' failed: part 3 is gone; call again; "
        "details: runs/web/stats/log.jsonl",
    )


@pytest.mark.parametrize(
    ("raised", "expected"),
    [
        ("KeyError: \"x [while running 'Ingest']\"\n", "KeyError: x"),
        ("RuntimeError: KeyError: 'x' [while running 'Ingest']\n\n", "KeyError: 'x'"),
        ("ValueError: 'x' or 'y' [while running 'Ingest']\n", "ValueError: 'x' or 'y'"),
        (
            "pyarrow.lib.ArrowInvalid: a: b [while running 'Ingest']",
            "pyarrow.lib.ArrowInvalid: a: b",
        ),
    ],
)
def test_a_fault_of_ours(raised: str, expected: str) -> None:
    assert line(RuntimeError(f"Traceback ...\n  File 'x'\n{raised}")) == (
        StepError,
        f"runs/web: step 'Ingest' failed: {expected}; a fault of assay or of a library, please "
        "report it; what was finished is kept; traceback: runs/web/stats/log.jsonl",
    )


def test_a_worker_that_died_explains_whatever_beam_says() -> None:
    wanted = CorpusError, "runs/web: a worker died; details: runs/web/stats/log.jsonl"
    assert line(RuntimeError("Channel closed prematurely."), "a worker died") == wanted


def test_what_no_step_raised_stays_as_it_is() -> None:
    assert line(ValueError("no such job service")) == (ValueError, "no such job service")


# --- the command ----------------------------------------------------------------------------------

FAILING = """
import errno, os, signal, sys, time
from dataclasses import replace
from pathlib import Path
from pipeline import heap
heap.settle()
from pipeline import prepare
from pipeline.stages import PART_STAGES
from trainer import cli
settings, how, *more = sys.argv[1:]
folder, run = Path(settings).parent, prepare._run

def work(job, shard):
    if how == "full":
        raise OSError(errno.ENOSPC, "No space left on device", str(job.root / "documents" / "a"))
    if how == "killed":
        (folder / f"pid-{shard.part}").write_text(str(os.getpid()))
        time.sleep(600)
    raise KeyError("a decoder")

def failing(*arguments):
    if how == "gone":
        (folder / "zh.jsonl").unlink()
    elif how == "served":
        from pipeline import workers
        began = workers._start_fork_server
        def killed():
            ours = began()
            os.kill(workers.forkserver._forkserver._forkserver_pid, signal.SIGKILL)
            return ours
        workers._start_fork_server = killed
    else:
        PART_STAGES["ingest"] = replace(PART_STAGES["ingest"], work=work)
    run(*arguments)

prepare._run = failing
sys.exit(cli.main(["prepare", settings, "--workers", "2", *more]))
"""


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("failures")
    path = small_corpus.write_inputs(folder, documents=20)
    tokenizer = ["--vocab-size", "400", "--output", str(folder / "tokenizer.json")]
    small_corpus.assay("tokenizer", "train", path, *tokenizer)
    return folder


def start(inputs: Path, folder: Path, how: str, *more: str) -> subprocess.Popen[str]:
    shutil.copytree(inputs, folder, dirs_exist_ok=True)
    command = [sys.executable, "-c", FAILING, str(folder / "corpus.yaml"), how, *more]
    return subprocess.Popen(command, stderr=subprocess.PIPE, text=True)


def end(process: subprocess.Popen[str], folder: Path) -> tuple[int, str, dict[str, Any]]:
    """Exit code, the one line that tells of the failure, the last event of the log."""
    err = process.communicate(timeout=120)[1]
    lines = [line for line in err.splitlines() if not PROGRESS.match(line)]
    assert len(lines) == 1, err
    last = (folder / "corpus" / LOG).read_text("utf-8").splitlines()[-1]
    return process.returncode, lines[0], json.loads(last)


@pytest.mark.parametrize("runner", ["processes", "threads", "inline", "portable"])
def test_an_input_that_vanishes(inputs: Path, tmp_path: Path, runner: str) -> None:
    process = start(inputs, tmp_path, "gone", "--runner", runner)
    code, line, last = end(process, tmp_path)
    gone, log = tmp_path / "zh.jsonl", tmp_path / "corpus" / LOG
    assert code == 2
    assert line == (
        f"assay prepare: {tmp_path}/corpus: step 'Ingest' failed: {gone} cannot be read: "
        f"FileNotFoundError: [Errno 2] No such file or directory: '{gone}'; mend it, take it out "
        "of `files`, or let some fail with `max_bad_files` in corpus.yaml, and call again: what "
        f"was finished is kept; details: {log}"
    )
    assert line == f"assay prepare: {last['message'].removeprefix('CorpusError: ')}"
    assert "ranges.py" in last["traceback"], "where the file was opened, in a worker"
    assert "\nFileNotFoundError: [Errno 2]" in last["traceback"]


def test_a_full_disk(inputs: Path, tmp_path: Path) -> None:
    code, line, last = end(start(inputs, tmp_path, "full"), tmp_path)
    assert code == 2
    began = (
        f"assay prepare: {tmp_path}/corpus: step 'Ingest' failed: {tmp_path}/corpus: its disk is"
    )
    assert line.startswith(began)
    assert line.endswith(
        "MB left); free some, or choose another disk, and call again: what was finished is kept; "
        f"details: {tmp_path}/corpus/{LOG}"
    )
    assert "\nOSError: [Errno 28] No space left on device: " in last["traceback"]


def test_a_fault(inputs: Path, tmp_path: Path) -> None:
    code, line, last = end(start(inputs, tmp_path, "fault"), tmp_path)
    assert code == 1
    assert line == (
        f"assay prepare: {tmp_path}/corpus: step 'Ingest' failed: KeyError: a decoder; a fault "
        "of assay or of a library, please report it; what was finished is kept; traceback: "
        f"{tmp_path}/corpus/{LOG}"
    )
    assert ", in work\nKeyError: " in last["traceback"]


def test_a_job_service_that_is_not_there(inputs: Path, tmp_path: Path) -> None:
    """Beam waits for minutes."""
    more = ("--runner", "portable", "--", "--job_endpoint=127.0.0.1:1")
    code, line, last = end(start(inputs, tmp_path, "fault", *more), tmp_path)
    assert (code, last["event"]) == (2, "error")
    assert line == (
        "assay prepare: --job_endpoint 127.0.0.1:1: no job service answers there ([Errno 111] "
        "Connection refused); start one, or leave the option out: assay starts its own"
    )


def test_a_fork_server_that_is_killed_is_started_again(inputs: Path, tmp_path: Path) -> None:
    process = start(inputs, tmp_path, "served")
    err = process.communicate(timeout=120)[1]
    assert process.returncode == 0, err
    assert "Traceback" not in err


def test_a_worker_that_is_killed_in_a_part(inputs: Path, tmp_path: Path) -> None:
    """Beam sees its streams break, mostly before the watch sees it dead."""
    process = start(inputs, tmp_path, "killed")
    ends = time.monotonic() + 60
    while sum(p.stat().st_size > 0 for p in tmp_path.glob("pid-*")) < 2:
        assert time.monotonic() < ends
        time.sleep(0.05)
    victim = int((tmp_path / "pid-1").read_text())
    os.kill(victim, signal.SIGKILL)
    code, line, _ = end(process, tmp_path)
    assert code == 2
    assert line == (
        f"assay prepare: {tmp_path}/corpus: a worker process died (pid {victim}, SIGKILL); "
        "call again: what was finished is kept. SIGKILL is most often a lack of memory: fewer "
        f"--workers, or smaller shard_bytes; details: {tmp_path}/corpus/{LOG}"
    )
