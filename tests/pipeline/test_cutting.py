"""Files cut by several processes: the bytes, errors and locks of one process alone."""

from __future__ import annotations

import gzip
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from pipeline import corpus, cutting
from pipeline.config import ConfigError
from pipeline.files import file_hash

pytestmark = pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="never forked there")

CALL = """
import sys, time, os, signal
from pathlib import Path
from pipeline import heap
heap.settle()  # no thread of numpy's
from pipeline import corpus, cutting, forks
from pipeline.planning import plan_shards
from pipeline.readers.files import list_files
forks.os.sched_getaffinity = lambda _: {0, 1, 2}
root, inputs, workers, allowed = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
files = {(s, f): p for s in ("a", "b") for p, f in list_files(inputs + "/*")}
"""
PLAN = """
with corpus.locked(root):
    shards = plan_shards(root, files, 5_000, max_bad_files=allowed, workers=workers)
time.sleep(0.1)  # a thread that was joined may be seen for some microseconds
print(len(shards), forks.can_fork())
"""


def write(folder: Path, broken: str = "") -> Path:
    """Streams of 1 to 10 shards and small files; a link `broken` leads nowhere."""
    folder.mkdir()
    for n in range(8):
        lines = b"".join(b'{"text":"%d of %d"}\n' % (i, n) for i in range(100 + 300 * n))
        (folder / f"{n}.jsonl.gz").write_bytes(gzip.compress(lines))
        (folder / f"{n}-small.jsonl").write_bytes(lines[:1_500].rpartition(b"\n")[0] + b"\n")
    if broken:
        (folder / broken).symlink_to("nowhere")
    return folder


def call(program: str, *arguments: object) -> subprocess.Popen[str]:
    """In a process that has one thread."""
    command = [sys.executable, "-c", CALL + program, *map(str, arguments)]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True)


def told(program: str, *arguments: object) -> tuple[str, str]:
    return call(program, *arguments).communicate(timeout=60)


def files_of(root: Path) -> dict[str, str]:
    paths = (path for path in root.rglob("*") if path.is_file() and path.name != ".lock")
    return {str(path.relative_to(root)): file_hash(path) for path in paths}


def lives(pid: int) -> bool:
    """Not as a zombie, whose command line is empty."""
    path = Path(f"/proc/{pid}/cmdline")
    return path.exists() and path.read_bytes() != b""


def test_the_bytes_of_one_process_and_one_thread_after(tmp_path: Path) -> None:
    inputs = write(tmp_path / "in", "3.txt")
    for workers in (1, 3):
        out, errors = told(PLAN, tmp_path / str(workers), inputs, workers, 2)
        assert out.split()[1:] == ["True"], errors
    wanted = files_of(tmp_path / "1")
    assert len(wanted) > 80
    assert files_of(tmp_path / "3") == wanted


def test_beside_a_thread_processes_that_begin_with_nothing_cut(tmp_path: Path) -> None:
    """The lease of a store is kept by a thread."""
    inputs = write(tmp_path / "in")
    beside = (
        "import threading\nthreading.Thread(target=time.sleep, args=(60,), daemon=True).start()\n"
        "made = forks.multiprocessing.get_context\n"
        "forks.multiprocessing.get_context = lambda how: print(how) or made(how)\n"
    )
    for worth, wanted in ((1 << 30, ["80", "False"]), (0, ["spawn", "80", "False"])):
        program = f"{beside}cutting.WORTH_BYTES = {worth}\n{PLAN}"
        out, errors = told(program, tmp_path / str(worth), inputs, 2, 0)
        assert out.split() == wanted, errors
    assert files_of(tmp_path / "0") == files_of(tmp_path / str(1 << 30))


def test_the_first_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    inputs = write(tmp_path / "in", "3.txt")
    wanted = (
        f"pipeline.config.ConfigError: {inputs}/3.txt (source a) cannot be read: No such file or "
        "directory; mend it, take it out of `files`, or let some fail with `max_bad_files`"
    )
    for workers in (1, 3):
        _, errors = told(PLAN, tmp_path / str(workers), inputs, workers, 0)
        assert errors.splitlines()[-1] == wanted


def test_behind_such_a_file_nothing_is_cut_any_more(tmp_path: Path) -> None:
    """With 100,000 files 400 go to a process together."""
    inputs = write(tmp_path / "in")
    (inputs / "0.jsonl.gz").unlink()
    (inputs / "0.jsonl.gz").symlink_to("nowhere")
    hand = [
        (("a", name), str(inputs / name)) for name in ("7.jsonl.gz", "0.jsonl.gz", "6.jsonl.gz")
    ]
    first, second = cutting._cut_hand(tmp_path / "r", 5_000, True, hand)
    assert isinstance(first, cutting.Cut)
    assert isinstance(second, ConfigError)
    assert len(list((tmp_path / "r/cut").iterdir())) == 1


def test_a_process_that_is_killed_is_told(tmp_path: Path) -> None:
    kill = "cutting.content_hash = lambda path: os.kill(os.getpid(), signal.SIGKILL)"
    _, errors = told(kill + PLAN, tmp_path / "r", write(tmp_path / "in"), 2, 0)
    assert (
        "a process that cut input files was killed; finished shards are kept: call again"
        in (errors.splitlines()[-1])
    )


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_whatever_ends_the_parent_ends_them_and_frees_the_lock(tmp_path: Path, how: int) -> None:
    """Each process says its number, and is at its file for a minute."""
    slow = (
        "def hashed(path):\n    (root / str(os.getpid())).touch()\n    time.sleep(60)\n"
        "cutting.content_hash = hashed\nsignal.signal(signal.SIGINT, signal.default_int_handler)\n"
    )
    root = tmp_path / "r"
    parent = call(slow + PLAN, root, write(tmp_path / "in"), 2, 0)
    end = time.monotonic() + 20
    found: list[int] = []
    while len(found) < 2 and parent.poll() is None and time.monotonic() < end:
        found = [int(path.name) for path in root.glob("[0-9]*")]
        time.sleep(0.02)
    os.kill(parent.pid, how)
    parent.communicate(timeout=20)
    with corpus.locked(root):
        pass
    while any(map(lives, found)) and time.monotonic() < end:
        time.sleep(0.02)
    assert (len(found), parent.pid in found, list(filter(lives, found))) == (2, False, [])
