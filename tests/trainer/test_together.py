"""What fails on one rank ends all ranks, with its message."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import clean_process
import layout_jobs as jobs
import pytest
from clean_process import Job


@pytest.mark.parametrize("failing", [0, 1])
def test_one_rank_raises_and_all_end_with_its_message(tmp_path: Path, failing: int) -> None:
    """nccl #1324: peers waited for the timeout of a collective. Rank 0 holds the store."""
    ranks: list[Job] = [(jobs.rank_of_failure, (r, 3, tmp_path, failing)) for r in range(3)]
    assert clean_process.run(tmp_path, *ranks) == [1, 1, 1]
    seconds = time.monotonic() - float((tmp_path / "failed").read_text())
    assert seconds < 30  # 6 on a quiet machine: looking each second, and five of grace
    waiting = (tmp_path / f"job-{1 - failing}.log").read_text()
    assert f"PeerError: rank {failing}: ValueError: shard 17 is gone" in waiting
    computing = (tmp_path / "job-2.log").read_text()
    expected = f"assay: rank 2 ends, because of rank {failing}: ValueError: shard 17 is gone"
    assert computing.splitlines()[-1] == expected


def test_a_run_tells_on_every_rank_what_failed(
    data: Path, tmp_path: Path, run_yaml: Callable[..., Path]
) -> None:
    path = run_yaml("broken")
    ranks: list[Job] = [(jobs.failing_rank_of_run, (r, 2, data, path)) for r in range(2)]
    clean_process.run(tmp_path, *ranks)
    logs = [(tmp_path / f"job-{rank}.log").read_text() for rank in range(2)]
    assert all("part-00000.arrow" in log for log in logs)
    assert "assay train: rank 1: OSError" in logs[0]
