"""What a command writes counts once, however deep in its tree, and after its parent has gone."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SIZE = 4_000_000
WRITE = f"open('written', 'wb').write(b'0' * {SIZE})"
IN_CHILD = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {WRITE!r}])"
IN_ORPHAN = f"import os, time\nif os.fork() == 0: time.sleep(0.3); {WRITE}"
# in a process of its own, because `run` adopts and waits for whatever is left behind
MEASURE = "import sys; from benchmarks.measure import run; "
MEASURE += "print(run([sys.executable, '-c', sys.argv[1]]).written_bytes)"


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="bytes written are from /proc")
@pytest.mark.parametrize("code", [WRITE, IN_CHILD, IN_ORPHAN])
def test_bytes_written_count_once(code: str, tmp_path: Path) -> None:
    measured = subprocess.run(
        [sys.executable, "-c", MEASURE, code],
        cwd=tmp_path,
        env={"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
    )
    written = int(measured.stdout)
    assert SIZE <= written < SIZE + 10_000  # and what the interpreters say to each other
