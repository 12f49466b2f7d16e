"""Checkpoints: killed while they are written, kept, and loaded into other models."""

from __future__ import annotations

import os
import resource
import signal
from pathlib import Path
from typing import Any

import clean_process
import pytest
import tiny_run_jobs as jobs
import torch
from tiny_run_jobs import ONE, RUN, pair, save, saved_by, whole_state

from trainer import checkpoint, saved
from trainer.checkpoint import LoadError
from trainer.model import Decoder
from trainer.optim import make_optimizer
from trainer.saving import SaveError
from trainer.starting import build_model


@pytest.mark.parametrize("moment", ["fsync", "replace"])
def test_killed_while_writing_the_one_before_loads(tmp_path: Path, moment: str) -> None:
    """KempnerForge #102: the older one was deleted before the new one was durable."""
    folder = tmp_path / "checkpoints"
    first = save(folder, 1, 0)
    codes = clean_process.run(tmp_path, (jobs.save_killed_at, (moment, folder)))
    assert codes == [-signal.SIGKILL]
    assert len(list(folder.glob(".step-*.tmp"))) == 1
    assert saved.newest(folder) == first
    second = save(folder, 2, 1, keep=1)
    assert {path.name for path in folder.iterdir()} == {"latest", "step-00000002"}
    assert saved.newest(folder) == second


@pytest.mark.parametrize("limit", [500, 5_000])
def test_a_disk_without_room_says_so_and_is_given_back(tmp_path: Path, limit: int) -> None:
    """torch tells of it as "unexpected pos 704 vs 598", and left half a checkpoint there."""
    folder = tmp_path / "checkpoints"
    first = save(folder, 1, 0)
    hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, hard))
    try:
        with pytest.raises(SaveError, match="File too large"):
            save(folder, 2, 1)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
    assert {path.name for path in folder.iterdir()} == {"latest", first.name}
    assert saved.newest(folder) == first


@pytest.mark.parametrize("cut", [None, 100])
def test_a_folder_that_lacks_files_of_other_machines_is_not_published(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cut: int | None
) -> None:
    """Each wrote to its own disk, and the first would vouch for the files that it sees."""
    publish = checkpoint._publish

    def elsewhere(temporary: Path, *others: Any) -> None:
        (file,) = temporary.glob("*.distcp")
        if cut is None:
            file.unlink()
        else:
            os.truncate(file, cut)
        publish(temporary, *others)

    monkeypatch.setattr(checkpoint, "_publish", elsewhere)
    with pytest.raises(SaveError, match=r"must be one folder for all machines.*distcp"):
        save(tmp_path, 1, 0)
    assert list(tmp_path.iterdir()) == []


def test_one_that_does_not_fit_is_an_error_with_a_remedy(tmp_path: Path) -> None:
    """torch raises a BaseException, which passes by whoever tells errors."""
    path = save(tmp_path, 1, 0)
    wider = RUN.model_copy(update={"model": RUN.model.model_copy(update={"ffn": 32})})
    model = build_model(wider, 20, ONE)
    with pytest.raises(LoadError, match=r"step-00000001 cannot be loaded: .*--fresh starts over"):
        checkpoint.load(path, model, make_optimizer(model, wider), ONE)


def test_any_number_of_processes_loads_it(tmp_path: Path) -> None:
    """pytorch #91205, Lightning #16815: moments kept the shapes of the ranks that wrote them.
    Written by 2, loaded by 3 and by 1, what the 3 wrote loaded by 2; widths do not divide by 3."""
    two, three, again = (tmp_path / name for name in ("two", "three", "again"))
    name = "step-00000001"
    for ranks in (
        [(jobs.save_rank, (rank, 2, two)) for rank in range(2)],
        [(jobs.reload_rank, (rank, 3, two / name, three)) for rank in range(3)],
        [(jobs.reload_rank, (rank, 2, three / name, again)) for rank in range(2)],
    ):
        assert clean_process.run(tmp_path, *ranks) == [0] * len(ranks)
    alone = pair(99)
    checkpoint.load(two / name, *alone, ONE)
    expected = torch.load(two / "state.pt")
    assert sum("exp_avg" in key for key in expected) == 2 * len(list(alone[0].parameters()))
    for state in (
        torch.load(three / "state.pt"),
        torch.load(again / "state.pt"),
        whole_state(*alone),
    ):
        assert state.keys() == expected.keys()
        for key, value in expected.items():
            equal = (
                torch.equal(state[key], value) if torch.is_tensor(value) else state[key] == value
            )
            assert equal, key


def test_weights_and_moments_come_back_to_the_bit(tmp_path: Path) -> None:
    path = save(tmp_path, 3, 0)
    model, optimizer = pair(1)
    torch.manual_seed(5)
    checkpoint.load(path, model, optimizer, ONE)
    expected, moments = pair(0)
    for name, value in expected.state_dict().items():
        assert torch.equal(model.state_dict()[name], value), name
    for ours, theirs in zip(
        optimizer.state_dict()["state"].values(),
        moments.state_dict()["state"].values(),
        strict=True,
    ):
        assert all(torch.equal(ours[key], theirs[key]) for key in theirs)
    weights = Decoder(RUN.model.shape, 20)
    checkpoint.load_weights(path, weights)
    assert torch.equal(weights.embedding.weight, expected.embedding.weight)


def test_the_random_state_comes_back(tmp_path: Path) -> None:
    model, optimizer = pair(0)
    torch.manual_seed(5)
    path = saved_by(ONE, tmp_path, (model, optimizer), {"step": 1})
    expected = torch.rand(3)
    checkpoint.load(path, model, optimizer, ONE)
    assert torch.equal(torch.rand(3), expected)


def test_the_newest_ones_stay(tmp_path: Path) -> None:
    for step in (1, 2, 30, 4):
        save(tmp_path, step, 0, keep=2)
    assert sorted(p.name for p in tmp_path.glob("step-*")) == ["step-00000004", "step-00000030"]
    assert saved.manifest(tmp_path / "step-00000030")["step"] == 30


def test_damage_is_named(tmp_path: Path) -> None:
    path = save(tmp_path, 1, 0)
    assert saved.damage(path) is None
    (path / ".metadata").unlink()
    assert saved.damage(path) == (
        f"{path / '.metadata'}: missing, or not "
        f"{saved.manifest(path)['files']['.metadata']['bytes']} bytes long"
    )
    (path / "manifest.json").unlink()
    assert saved.damage(path) == (f"{path}: no manifest.json; the checkpoint was never completed")
    assert saved.newest(tmp_path) is None
