"""Processes of tests: exit codes, and a message instead of a hang."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import clean_process
import pytest


def test_exit_codes_and_output(tmp_path: Path) -> None:
    jobs = ((os.mkdir, (tmp_path / "made",)), (sys.exit, ("no",)))
    assert clean_process.run(tmp_path, *jobs) == [0, 1]
    assert (tmp_path / "made").is_dir()
    assert (tmp_path / "job-1.log").read_text().endswith("SystemExit: no\n")


def test_a_job_that_hangs_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clean_process, "SECONDS", 1.0)
    with pytest.raises(AssertionError, match=r"1 of 1 jobs hung for 1\.0 seconds"):
        clean_process.run(tmp_path, (time.sleep, (60,)))
