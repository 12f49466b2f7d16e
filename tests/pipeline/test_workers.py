"""Forked worker processes: none is left behind, none is waited for in vain."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

SOAK = os.environ.get("ASSAY_SOAK") == "1"
SECONDS = 240  # a hang, on a busy machine where kernels are compiled first
PROGRAM = """
import faulthandler, os, signal, sys, time
faulthandler.register(signal.SIGUSR1)
from pathlib import Path
from pipeline import heap
if "threads" not in sys.argv:
    heap.settle()  # as `assay` does: no thread runs, so the fork server is a fork of this process
from pipeline import workers
import apache_beam as beam
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.runners.portability.fn_api_runner import FnApiRunner

folder = Path(sys.argv[1])

def note(n):
    (folder / f"threads-{n}").write_text(str(len(os.listdir(f"/proc/{os.getppid()}/task"))))
    (folder / f"pid-{n}").write_text(str(os.getpid()))
    return n

def run(step, runs=1):
    for _ in range(runs):
        with workers.watched() as environment:
            options = PipelineOptions([], direct_num_workers=2)
            with beam.Pipeline(runner=FnApiRunner(environment), options=options) as pipeline:
                numbers = pipeline | beam.Create([0]) | beam.FlatMap(lambda _: range(2))
                _ = numbers | beam.Reshuffle() | beam.Map(note) | beam.Map(step)
"""


def start(folder: Path, last: str, *more: str, **environment: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM + last, str(folder), *more],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env={**os.environ, **environment},
    )


def end(process: subprocess.Popen[str]) -> str:
    """What the process said; where it hangs, if it does."""
    try:
        return process.communicate(timeout=SECONDS)[1]
    except subprocess.TimeoutExpired:
        os.kill(process.pid, signal.SIGUSR1)
        time.sleep(1)
        os.killpg(process.pid, signal.SIGKILL)
        raise AssertionError(process.communicate()[1]) from None


def pids(folder: Path) -> list[int]:
    """Worker processes, once both are at work."""
    deadline = time.monotonic() + SECONDS
    while True:
        found = [path.read_text() for path in sorted(folder.glob("pid-*"))]
        if len(found) == 2 and all(found):
            return [int(pid) for pid in found]
        assert time.monotonic() < deadline, "no worker began"
        time.sleep(0.05)


def gone(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):
        return True


def all_gone(workers: list[int]) -> bool:
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        if all(map(gone, workers)):
            return True
        time.sleep(0.05)
    return False


@pytest.fixture(scope="module", autouse=True)
def compiled(tmp_path_factory: pytest.TempPathFactory) -> None:
    """On a machine that has no kernels yet the first run says that it compiles them."""
    start(tmp_path_factory.mktemp("first"), "run(lambda n: n)").communicate(timeout=SECONDS)


@pytest.mark.parametrize("server", ["forked", "threads"])
def test_elements_go_to_both_workers_and_runs_follow_each_other(
    tmp_path: Path, server: str
) -> None:
    """Many times: a fork that inherits a lock hangs only now and then. It cannot happen where the
    process that forks has one thread."""
    process = start(tmp_path, f"run(lambda n: n, {50 if SOAK else 4}); print('done')", server)
    out, err = process.communicate(timeout=SECONDS * (10 if SOAK else 1))
    assert (out, err) == ("done\n", "")
    assert len(set(pids(tmp_path))) == 2
    assert [path.read_text() for path in sorted(tmp_path.glob("threads-*"))] == ["1", "1"]


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="never forked elsewhere")
def test_the_fork_server_is_a_fork_that_holds_nothing_of_this_process(tmp_path: Path) -> None:
    last = """
import fcntl
from multiprocessing import forkserver
with open(folder / "lock", "w") as lock:
    fcntl.flock(lock, fcntl.LOCK_EX)
    with workers.watched():
        server = Path(f"/proc/{forkserver._forkserver._forkserver_pid}")
        print((server / "cmdline").read_bytes() == Path("/proc/self/cmdline").read_bytes())
        while any(fd.resolve().name == "lock" for fd in (server / "fd").iterdir()):
            time.sleep(0.05)
"""
    out, err = start(tmp_path, last).communicate(timeout=SECONDS)
    assert (out, err) == ("True\n", "")


def test_a_worker_that_nobody_closed_is_not_waited_for(tmp_path: Path) -> None:
    """The runner was interrupted while it started or closed it; a second run begins anew."""
    last = """
from multiprocessing import forkserver
from pipeline import forks
for _ in range(2):
    try:
        with workers.watched():
            left = workers.FORKS.Process(target=forks.end_with_parent, daemon=True)
            left.start()
            print(left.pid, forkserver._forkserver._forkserver_pid)
            raise KeyboardInterrupt
    except KeyboardInterrupt:
        assert forkserver._forkserver._forkserver_pid is None
"""
    process = start(tmp_path, last)
    out, err = process.communicate(timeout=SECONDS)
    assert err == ""
    assert len(set(out.split())) == 4
    assert all_gone([int(pid) for pid in out.split()])


def test_a_killed_worker_ends_the_run(tmp_path: Path) -> None:
    process = start(tmp_path, "run(lambda n: time.sleep(600))")
    workers = pids(tmp_path)
    os.kill(workers[1], signal.SIGKILL)
    err = end(process)
    last = err.strip().splitlines()[-1]
    assert last.startswith(f"RuntimeError: a worker process died (pid {workers[1]}, SIGKILL)")
    assert "fewer --workers" in last
    assert all_gone(workers)


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_workers_end_with_the_process_that_started_them(
    tmp_path: Path, how: signal.Signals
) -> None:
    """Without a word, and without a trace but for what SIGINT leaves to Python."""
    with tempfile.TemporaryDirectory(prefix="t-") as temporary:  # tmp_path is long for a socket
        process = start(tmp_path, "run(lambda n: time.sleep(600))", TMPDIR=temporary)
        workers = pids(tmp_path)
        assert [path.name for path in Path(temporary).glob("assay-*/*")] == ["fork-server"]
        os.kill(process.pid, how)
        err = end(process)
        assert all_gone(workers)
        if how == signal.SIGINT:
            assert err.strip().endswith("KeyboardInterrupt")
        else:
            assert err == ""
        assert list(Path(temporary).glob("assay-*")) == []


def test_two_runs_at_once_beside_what_a_killed_one_left(tmp_path: Path) -> None:
    """A socket of another's name, in a folder that is too long for any."""
    far = tmp_path / ("far" * 30)
    (far / "pymp-killed").mkdir(parents=True)
    (far / "pymp-killed" / "fork-server").touch()
    last = """
import multiprocessing
def child(name):
    global folder
    folder = folder / name
    folder.mkdir()
    run(lambda n: n)
fork = multiprocessing.get_context("fork")
children = [fork.Process(target=child, args=(name,)) for name in "ab"]
for child in children: child.start()
for child in children: child.join()
print([child.exitcode for child in children])
"""
    out, err = start(tmp_path, last, TMPDIR=str(far)).communicate(timeout=SECONDS)
    assert (out, err) == ("[0, 0]\n", "")


def test_ctrl_c_while_workers_are_loaded_is_told_once(tmp_path: Path) -> None:
    process = start(tmp_path, "run(lambda n: n)")
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    ends = time.monotonic() + SECONDS
    while len(children.read_text().split()) < 2 and time.monotonic() < ends:  # tracker, fork server
        time.sleep(0.05)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does
    assert end(process).count("KeyboardInterrupt") == 1


def test_an_error_of_a_step_comes_back(tmp_path: Path) -> None:
    process = start(tmp_path, "run(lambda n: 1 // n)")
    err = end(process)
    assert "ZeroDivisionError: integer division or modulo by zero [while running" in err
