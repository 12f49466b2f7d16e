"""Work in a fork: what it loads stays there, what is open here is closed there."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

import pytest

from pipeline import forks

linux = pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="never forked elsewhere")


def run(program: str) -> tuple[str, str]:
    """What a process that has one thread prints."""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    return done.stdout, done.stderr


@linux
def test_what_a_fork_works_out_comes_back_and_nothing_stays() -> None:
    out, err = run(
        "import os, sys\nfrom pipeline import forks\nhere = os.getpid()\n"
        "lock = open(os.devnull)\n"
        "def work():\n"
        "    import colorsys\n"
        "    try:\n        os.fstat(lock.fileno())\n"
        "    except OSError:\n        return f'{os.getpid() != here} 河'\n"
        "    return 'open'\n"
        "print(forks.apart(work)(), 'colorsys' in sys.modules)\n"
    )
    assert (out, err) == ("True 河 False\n", "")


@linux
def test_what_fails_in_a_fork_is_told() -> None:
    out, err = run("from pipeline import forks\nforks.apart(lambda: str(1 // 0))()")
    assert out == ""
    assert "ZeroDivisionError" in err
    assert "failed in a process of its own" in err.splitlines()[-1]


def test_beside_another_thread_nothing_is_forked() -> None:
    done = threading.Event()
    thread = threading.Thread(target=done.wait)
    thread.start()
    found: list[int] = []
    assert not forks.can_fork()
    assert forks.apart(lambda: found.append(1) or "here")() == "here"
    assert found == [1]
    done.set()
    thread.join()
