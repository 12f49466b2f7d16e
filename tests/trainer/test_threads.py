"""Threads of torch beside other programs."""

from __future__ import annotations

import os
import subprocess
import sys


def test_threads_of_torch_sleep_while_they_wait() -> None:
    # A thread that spins takes the core from the one it waits for: a run beside another program
    # took 48 s instead of 1. OpenMP says what it read when torch loads it.
    told = {**os.environ, "OMP_DISPLAY_ENV": "TRUE"}
    told.pop("OMP_WAIT_POLICY", None)
    command = [sys.executable, "-c", "import trainer.parallel.world"]
    errors = subprocess.run(command, env=told, capture_output=True, text=True).stderr
    assert [line.strip() for line in errors.splitlines() if "OMP_WAIT_POLICY" in line] == [
        "OMP_WAIT_POLICY = 'PASSIVE'"
    ]
    told["OMP_WAIT_POLICY"] = "ACTIVE"  # what the user set stands
    errors = subprocess.run(command, env=told, capture_output=True, text=True).stderr
    assert "OMP_WAIT_POLICY = 'ACTIVE'" in errors
