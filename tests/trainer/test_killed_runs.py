"""Runs that are killed at any moment, or asked to end, and go on to the very same losses."""

from __future__ import annotations

import json
import os
import random
import signal
from collections.abc import Callable
from pathlib import Path

import clean_process
import pytest
import tiny_run_jobs as jobs
from tiny_run import losses, train

from trainer import saved

Write = Callable[..., Path]
SOAK = os.environ.get("ASSAY_SOAK") == "1"
KILLS = 20 if SOAK else 3


@pytest.mark.slow
def test_killed_at_random_moments_the_losses_are_the_same_bits(
    data: Path, run_yaml: Write, tmp_path: Path
) -> None:
    """The mirror and the thread that writes are killed too, in the middle of what they do."""
    rng = random.Random(5)
    keys = {"every": 2 * 4 * 32, "keep": 1, "mirror": "copies", "async": True}
    whole = train(run_yaml("whole"))
    moments = [rng.uniform(0, 1.5) for _ in range(KILLS)]
    for number, seconds in enumerate(moments):
        path = run_yaml(f"killed-{number}", checkpoint=keys)
        for _ in range(2):  # killed, and killed again on its way
            [code] = clean_process.run(
                tmp_path, (jobs.train_killed_at_moment, (seconds, data, path))
            )
            assert code in (-signal.SIGKILL, 0)
        folder = tmp_path / "runs" / f"killed-{number}"
        resumed = train(path)
        assert losses(folder) == losses(whole.folder)
        assert resumed.bits_per_byte == whole.bits_per_byte
        assert resumed.loss == whole.loss


def test_killed_in_a_background_write_the_one_before_loads(
    data: Path, run_yaml: Write, tmp_path: Path
) -> None:
    """KempnerForge #102 and speculators #739: what is not durable must not be found."""

    whole = train(run_yaml("whole"))
    path = run_yaml("killed", checkpoint={"every": 8 * 4 * 32, "async": True})
    [code] = clean_process.run(tmp_path, (jobs.train_killed_while_writing, (20, data, path)))
    assert code == -signal.SIGKILL
    checkpoints = tmp_path / "runs" / "killed" / "checkpoints"
    assert [path.name for path in checkpoints.glob(".step-*")] == [".step-00000020.tmp"]
    newest = saved.newest(checkpoints)
    assert newest is None or newest.name in ("step-00000008", "step-00000016")
    train(path)
    assert losses(checkpoints.parent) == losses(whole.folder)
    assert list(checkpoints.glob(".step-*")) == []


@pytest.mark.parametrize("background", [False, True])
def test_sigterm_saves_and_ends_with_143(
    data: Path, run_yaml: Write, tmp_path: Path, background: bool
) -> None:
    whole = train(run_yaml("whole"))
    path = run_yaml("ended", checkpoint={"every": "final", "async": background})
    assert clean_process.run(tmp_path, (jobs.train_terminated_after, (7, data, path))) == [0]
    assert (tmp_path / "code.txt").read_text() == "143"
    folder = tmp_path / "runs" / "ended"
    assert len(losses(folder)) == 7
    assert json.loads((folder / "run.json").read_text())["status"] == "running"
    assert saved.newest(folder / "checkpoints") == folder / "checkpoints" / "step-00000007"
    train(path)
    assert losses(folder) == losses(whole.folder)
