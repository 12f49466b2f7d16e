"""The reshard matrix: what any layout saved, every other loads to the bit, and saves the same."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import clean_process
import torch
import torch.distributed as dist
from tiny_run_jobs import ONE, be, saved_by
from torch.distributed.tensor import DTensor

from trainer import checkpoint, saved
from trainer.optim import make_optimizer
from trainer.parallel.layout import make_layout
from trainer.parallel.world import World, join_world, make_mesh
from trainer.settings import RunSettings
from trainer.starting import build_model

VOCABULARY = 21  # divides by no number of processes, nor does ffn by 4
LAYOUTS: dict[str, tuple[int, dict[str, int]]] = {
    "one": (1, {}),
    "fsdp2": (2, {"fsdp": 2}),
    "ddp2": (2, {"fsdp": 1, "replicate": 2}),
    "tp2": (2, {"fsdp": 1, "tensor": 2}),
    "pp2": (2, {"fsdp": 1, "pipeline": 2}),
    "cp2": (2, {"fsdp": 1, "context": 2}),
    "fsdp4": (4, {"fsdp": 4}),
    "hsdp2x2": (4, {"fsdp": 2, "replicate": 2}),
    "tp2xfsdp2": (4, {"fsdp": 2, "tensor": 2}),
    "pp2xfsdp2": (4, {"fsdp": 2, "pipeline": 2}),
}


def run_of(name: str, kind: str) -> RunSettings:
    size, axes = LAYOUTS[name]
    shape = {"width": 16, "depth": 2, "heads": 4, "kv_heads": 2, "ffn": 26}
    return RunSettings.model_validate(
        {
            "mixture": "m.yaml",
            "model": shape,
            "tokens": "1k",
            "threads": 1,
            "device": "cpu",
            "optimizer": kind,
            "parallel": {"fsdp": 1, **axes} if size > 1 else {},
        }
    )


def built(name: str, kind: str, world: World) -> tuple[Any, Any]:
    run = run_of(name, kind)
    model = build_model(run, VOCABULARY, world)
    return model, make_optimizer(model, run)


def test_every_layout_loads_what_every_layout_saved(tmp_path: Path) -> None:
    """torchtitan #811, pytorch #91205, nanotron #221: weights, moments and their step counts."""
    for kind in ("adamw", "muon"):
        folder = tmp_path / kind
        model, optimizer = built("one", kind, ONE)
        for parameter in model.parameters():
            parameter.grad = torch.randn_like(parameter)
        optimizer.step()
        saved_by(ONE, folder / "first", (model, optimizer), {"step": 1})
    for phase in (save_all, load_all):
        for size in (1, 2, 4):
            ranks = [(phase, (rank, size, tmp_path)) for rank in range(size)]
            assert clean_process.run(tmp_path, *ranks) == [0] * size


def save_all(rank: int, size: int, folder: Path) -> None:
    """Load the first checkpoint at each layout of this size, and save it there."""
    for name, kind, world in worlds(rank, size, folder):
        model, optimizer = built(name, kind, world)
        checkpoint.load(folder / kind / "first" / saved.name(1), model, optimizer, world)
        saved_by(world, folder / kind / name, (model, optimizer), {"step": 1})


def load_all(rank: int, size: int, folder: Path) -> None:
    """Load what each layout saved at each layout of this size."""
    for name, kind, world in worlds(rank, size, folder):
        expected = plain(folder / kind / "first" / saved.name(1))
        for origin in LAYOUTS:
            path = folder / kind / origin / saved.name(1)
            assert checkpoint.tensors_in(path) == {k: v.shape for k, v in expected.items()}
            model, optimizer = built(name, kind, world)
            checkpoint.load(path, model, optimizer, world)
            state = checkpoint.state_of(model, optimizer)
            for part in ("model", "optimizer"):
                for key, value in state[part].items():
                    if isinstance(value, torch.Tensor):
                        whole = value.full_tensor() if isinstance(value, DTensor) else value
                        assert torch.equal(whole, expected[f"{part}.{key}"]), (origin, name, key)


def worlds(rank: int, size: int, folder: Path) -> Any:
    """Each layout of this size with each optimizer, over one process group."""
    names = [name for name, (number, _) in LAYOUTS.items() if number == size]
    if size == 1:
        yield from ((name, kind, ONE) for name, kind in product(names, ("adamw", "muon")))
        return
    be(rank, size, folder)
    with join_world(run_of(names[0], "adamw")):
        for name, kind in product(names, ("adamw", "muon")):
            layout = make_layout(run_of(name, kind), size)
            mesh = make_mesh("cpu", layout)
            yield name, kind, World(rank, size, torch.device("cpu"), mesh, layout)
            dist.barrier()


def plain(path: Path) -> dict[str, torch.Tensor]:
    """All tensors of a checkpoint, whole."""
    from torch.distributed.checkpoint.filesystem import FileSystemReader
    from torch.distributed.checkpoint.metadata import TensorStorageMetadata

    found = FileSystemReader(path).read_metadata().state_dict_metadata
    tensors: dict[str, Any] = {
        key: torch.empty(entry.size, dtype=entry.properties.dtype)
        for key, entry in found.items()
        if isinstance(entry, TensorStorageMetadata)
    }
    checkpoint._read(path, tensors)
    return tensors
