"""The data loader of examples/torchtitan, built as torchtitan's trainer builds it."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import tiny_run

from mixtures.loader_state import StateError
from mixtures.plan import Plan, plan_from_dict
from pipeline.files import read_json, write_sealed

pytest.importorskip("torchtitan", reason="torchtitan is not installed: `pip install torchtitan`")
sys.path.insert(0, str(Path(__file__).parents[2] / "examples" / "torchtitan"))

import torch
from windows import IGNORED, WindowsLoader

LENGTH, BATCH = tiny_run.LENGTH, 8


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A plan as it is published."""
    folder = tmp_path_factory.mktemp("plan")
    tiny_run.make_data(folder)
    plan = plan_from_dict(read_json(folder / "plan.json"))
    publish(folder, plan)
    return folder


def publish(folder: Path, plan: Plan) -> None:
    sources = tuple(replace(source, folder="packed") for source in plan.sources)
    moved = replace(plan, sources=sources, tokenizer_file="tokenizer.json")
    write_sealed(folder / "plan.json", moved.to_dict())


def built(folder: Path, rank: int = 0, ranks: int = 1, seq_len: int = LENGTH) -> Any:
    """As torchtitan.trainer.Trainer does it."""
    return WindowsLoader.Config(plan=str(folder)).build(
        dp_world_size=ranks, dp_rank=rank, tokenizer=None, seq_len=seq_len,
        local_batch_size=BATCH // ranks, snapshot_every_n_steps=None,
    )  # fmt: skip


def test_batches_are_what_the_model_and_the_loss_are_given(folder: Path) -> None:
    loader = built(folder)
    theirs = list(loader)
    assert len(theirs) == tiny_run.WINDOWS // BATCH
    for ours, (inputs, labels) in zip(loader.windows.__class__(folder, BATCH), theirs, strict=True):
        assert torch.equal(inputs["input"], ours["tokens"][:, :-1])
        same = ours["documents"][:, 1:] == ours["documents"][:, :-1]
        assert torch.equal(labels[same], ours["tokens"][:, 1:][same])
        assert (labels[~same] == IGNORED).all()
        for row, documents in zip(inputs["positions"].tolist(), ours["documents"], strict=True):
            names = documents[:-1].tolist()
            assert row == [at - names.index(name) for at, name in enumerate(names)]
    assert any((labels == IGNORED).any() for _, labels in theirs)


@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_a_run_goes_on_with_any_number_of_ranks(folder: Path, ranks: int) -> None:
    whole = [inputs["input"] for inputs, _ in built(folder)]
    before = built(folder)
    batches = iter(before)
    for _ in range(5):
        next(batches)
    state = before.state_dict()
    torch.save(state, folder / "state.pt")
    shares = []
    for rank in range(ranks):
        after = built(folder, rank, ranks)
        after.load_state_dict({})  # what torchtitan has where there is no checkpoint
        after.load_state_dict(torch.load(folder / "state.pt"))
        shares.append([inputs["input"] for inputs, _ in after])
    for wanted, *found in zip(whole[5:], *shares, strict=True):
        assert torch.equal(torch.cat(found), wanted)


def test_other_data_and_another_length_are_refused(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=f"have {LENGTH} tokens; pass --training.seq_len {LENGTH}"):
        built(folder, seq_len=64)
    state = json.loads(built(folder).state_dict()["windows"])
    other = json.dumps(state | {"fingerprint": "0" * 32})
    with pytest.raises(StateError):
        built(folder).load_state_dict({"windows": other})
