from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import tiny_run
import torch
from torch.utils.data import DataLoader

from mixtures.held import is_held
from mixtures.loader import Loader
from mixtures.loader_state import StateError
from mixtures.plan import Plan, plan_from_dict
from mixtures.published import open_plan, publish
from mixtures.shard_cache import ShardCache
from trainer.windows import Windows

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def plan(tmp_path_factory: pytest.TempPathFactory) -> Plan:
    folder = tmp_path_factory.mktemp("windows")
    tiny_run.make_data(folder)
    return plan_from_dict(json.loads((folder / "plan.json").read_text()))


def test_tensors_of_the_plan_in_order_and_its_state(plan: Plan) -> None:
    whole = Loader(plan).batch(0, plan.num_windows)
    windows, found = Windows(plan, 10, rank=0, ranks=1), []
    for batch in windows:
        found.append(batch["tokens"])
        assert batch["tokens"].dtype == torch.int64
        assert batch["documents"].dtype == torch.int32
        if batch["position"] == 40:
            break
    state = json.loads(json.dumps(windows.state_dict()))
    assert state["position"] == 40
    ranks = [Windows(plan, 6, rank=rank, ranks=2) for rank in range(2)]  # others go on
    for rank in ranks:
        rank.load_state_dict(state)
    found += [b["tokens"] for both in zip(*ranks, strict=True) for b in both]
    assert np.array_equal(torch.cat(found).numpy(), whole.tokens)
    other = plan_from_dict(plan.to_dict() | {"seed": 9})
    with pytest.raises(StateError, match="seed was 0, is 9"):
        Windows(other, 6, rank=0, ranks=1).load_state_dict(state)


@pytest.mark.parametrize("workers", [0, 1, 2])
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_dataloader_with_any_workers_gives_the_same_order(plan: Plan, workers: int) -> None:
    windows = Windows(plan, 10, rank=1, ranks=2, position=20)
    batches = list(DataLoader(windows, batch_size=None, num_workers=workers))
    whole = Loader(plan).batch(0, plan.num_windows).tokens
    wanted = [whole[at + 5 : at + 10] for at in range(20, 90, 10)] + [whole[93:96]]
    assert np.array_equal(torch.cat([b["tokens"] for b in batches]).numpy(), np.concatenate(wanted))
    assert [b["position"] for b in batches] == [30, 40, 50, 60, 70, 80, 90, 96]
    assert windows.state_dict(batches[2])["position"] == 50


def test_windows_let_go_of_the_cache_at_their_end_or_when_they_are_left(
    plan: Plan, tmp_path: Path
) -> None:
    """The cache has room for one part."""
    place = f"file://{tmp_path}/plan"
    list(publish(plan, place))
    part = next((tmp_path / "plan").rglob("part-*.arrow"))
    cache = ShardCache(tmp_path / "cache", part.stat().st_size)
    windows = Windows(open_plan(place), 10, rank=0, ranks=1, cache=cache)
    left = iter(windows)
    next(left)
    assert any(is_held(path) for path in cache.folder.iterdir())
    left.close()  # type: ignore[attr-defined]  # a generator
    assert not any(is_held(path) for path in cache.folder.iterdir())
    whole = Loader(plan).batch(0, plan.num_windows).tokens
    for _ in range(2):
        windows.position = 0
        assert np.array_equal(torch.cat([batch["tokens"] for batch in windows]).numpy(), whole)
        assert not any(is_held(path) for path in cache.folder.iterdir())


def test_the_example_runs(plan: Plan, tmp_path: Path) -> None:
    list(publish(plan, str(tmp_path / "plan")))
    command = [sys.executable, str(ROOT / "examples/pytorch/train.py"), str(tmp_path / "plan")]
    environ = {**os.environ, "PYTHONPATH": str(ROOT)}
    run = subprocess.run(
        command, cwd=tmp_path, env=environ, capture_output=True, text=True, check=True
    )
    lines = run.stdout.splitlines()
    assert len(lines) == plan.num_windows // 8
    losses = [float(line.split(": ")[1]) for line in lines]
    assert losses[-1] < losses[0]
    assert torch.load(tmp_path / "checkpoint.pt")["data"]["position"] == plan.num_windows
    text = (ROOT / "examples/pytorch/train.py").read_text()
    assert sum(line.endswith("# read") for line in text.splitlines()) == 10
