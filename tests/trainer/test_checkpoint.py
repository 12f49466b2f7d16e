"""Checkpoints: killed while they are written, kept, and loaded into other models."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from trainer import checkpoint
from trainer.model import Decoder, initialize
from trainer.optim import make_optimizer
from trainer.parallel import World
from trainer.settings import RunSettings

ONE = World(0, 1, torch.device("cpu"), None)
SHAPE = {"width": 16, "depth": 1, "heads": 2, "kv_heads": 1, "ffn": 16}
RUN = RunSettings.model_validate({"mixture": "m.yaml", "model": SHAPE, "tokens": "1k"})


def _pair(seed: int) -> tuple[Decoder, torch.optim.Optimizer]:
    model = Decoder(RUN.model, 20)
    initialize(model, seed)
    optimizer = make_optimizer(model, RUN)
    tokens = torch.arange(20)[None]
    model(tokens, torch.zeros_like(tokens)).logsumexp(-1).sum().backward()
    optimizer.step()
    return model, optimizer


def _save(folder: Path, step: int, seed: int, keep: int = 2) -> Path:
    return checkpoint.save(folder, *_pair(seed), {"step": step, "data": {}}, ONE, keep=keep)


@pytest.mark.parametrize("moment", ["fsync", "replace"])
def test_killed_while_writing_the_one_before_loads(
    tmp_path: Path,
    moment: str,
    forked: Callable[..., list[int]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """KempnerForge #102: the older one was deleted before the new one was durable."""
    first = _save(tmp_path, 1, 0)
    with monkeypatch.context() as patch:
        patch.setattr(os, moment, lambda *_: os.kill(os.getpid(), signal.SIGKILL))
        assert forked(lambda: _save(tmp_path, 2, 1, keep=1)) == [-signal.SIGKILL]
    assert len(list(tmp_path.glob(".step-*.tmp"))) == 1
    assert checkpoint.newest(tmp_path) == first
    second = _save(tmp_path, 2, 1, keep=1)
    assert {path.name for path in tmp_path.iterdir()} == {"latest", "step-00000002"}
    assert checkpoint.newest(tmp_path) == second


def test_weights_and_moments_come_back_to_the_bit(tmp_path: Path) -> None:
    path = _save(tmp_path, 3, 0)
    model, optimizer = _pair(1)
    torch.manual_seed(5)
    checkpoint.load(path, model, optimizer, ONE)
    expected, moments = _pair(0)
    for name, value in expected.state_dict().items():
        assert torch.equal(model.state_dict()[name], value), name
    for ours, theirs in zip(
        optimizer.state_dict()["state"].values(),
        moments.state_dict()["state"].values(),
        strict=True,
    ):
        assert all(torch.equal(ours[key], theirs[key]) for key in theirs)
    weights = Decoder(RUN.model, 20)
    checkpoint.load_weights(path, weights)
    assert torch.equal(weights.embedding.weight, expected.embedding.weight)


def test_the_random_state_comes_back(tmp_path: Path) -> None:
    model, optimizer = _pair(0)
    torch.manual_seed(5)
    path = checkpoint.save(tmp_path, model, optimizer, {"step": 1}, ONE, keep=1)
    expected = torch.rand(3)
    checkpoint.load(path, model, optimizer, ONE)
    assert torch.equal(torch.rand(3), expected)


def test_the_newest_ones_stay(tmp_path: Path) -> None:
    for step in (1, 2, 30, 4):
        _save(tmp_path, step, 0, keep=2)
    assert sorted(p.name for p in tmp_path.glob("step-*")) == ["step-00000004", "step-00000030"]
    assert checkpoint.manifest(tmp_path / "step-00000030")["step"] == 30


def test_damage_is_named(tmp_path: Path) -> None:
    path = _save(tmp_path, 1, 0)
    assert checkpoint.damage(path) is None
    (path / ".metadata").unlink()
    assert checkpoint.damage(path) == (
        f"{path / '.metadata'}: missing, or not "
        f"{checkpoint.manifest(path)['files']['.metadata']['bytes']} bytes long"
    )
    (path / "manifest.json").unlink()
    assert checkpoint.damage(path) == (
        f"{path}: no manifest.json; the checkpoint was never completed"
    )
    assert checkpoint.newest(tmp_path) is None
