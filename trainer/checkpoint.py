"""Checkpoints: torch.distributed.checkpoint in a folder that is either complete or not there.

    checkpoints/step-00000120/   DCP files, manifest.json (last: size and hash of every file)
    checkpoints/latest           link to the newest, for people and other tools

Written under a temporary name, every file synced, then the manifest, then renamed; only then are
older ones deleted (KempnerForge #102: `latest` moved and old ones deleted before the write was
durable left nothing to load). Loads under any number of processes (DCP, flattened optimizer keys).
The loader's whole state is a position and the plan's fingerprint.
"""

from __future__ import annotations

import os
import shutil
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.distributed.checkpoint.api import CheckpointException
from torch.distributed.checkpoint.state_dict import (
    StateDictOptions,
    get_state_dict,
    set_state_dict,
)
from torch.distributed.checkpoint.state_dict_loader import load as read_state
from torch.distributed.checkpoint.state_dict_saver import save as write_state

from pipeline.files import file_hash, write_json
from trainer.parallel.world import World, wait_for_all
from trainer.saved import newest_first

OPTIONS = StateDictOptions(flatten_optimizer_state_dict=True)  # keys by parameter name: resharding


def save(
    folder: Path,
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    record: dict[str, Any],
    world: World,
    *,
    keep: int,
) -> Path:
    """Write `folder`/step-N with N = record["step"]; every rank calls it.

    `record` (step and the loader's state) is kept in the manifest; the `keep` newest stay.
    """
    target = folder / f"step-{record['step']:08d}"
    temporary = folder / f".{target.name}.tmp"
    if world.first:
        for stale in folder.glob(".step-*.tmp"):  # of a killed run
            shutil.rmtree(stale)
        temporary.mkdir(parents=True)
    wait_for_all(world)
    try:
        with _quiet():
            write_state(
                _state(model, optimizer), checkpoint_id=temporary, no_dist=world.mesh is None
            )
    except CheckpointException as error:
        shutil.rmtree(temporary, ignore_errors=True)  # a disk that is full has no room for it
        raise _of_disk(error) or error from None
    wait_for_all(world)
    if world.first:
        files = {}
        for path in sorted(temporary.iterdir()):
            _sync(path)
            files[path.name] = {"bytes": path.stat().st_size, "xxh3_128": file_hash(path)}
        write_json(temporary / "manifest.json", {**record, "files": files})
        _sync(temporary)
        shutil.rmtree(target, ignore_errors=True)  # there only if damaged: see saved.py
        os.replace(temporary, target)
        _sync(folder)
        _link(folder / "latest", target.name)
        for old in newest_first(folder)[keep:]:
            shutil.rmtree(old)
    wait_for_all(world)
    return target


def load(path: Path, model: nn.Module, optimizer: torch.optim.Optimizer, world: World) -> None:
    """Fill model, optimizer and random state from a checkpoint, whatever layout wrote it."""
    state = _state(model, optimizer)
    with _quiet():
        read_state(state, checkpoint_id=path, no_dist=world.mesh is None)
    set_state_dict(
        model,
        optimizer,
        model_state_dict=state["model"],
        optim_state_dict=state["optimizer"],
        options=OPTIONS,
    )
    torch.set_rng_state(state["rng"])


def load_weights(path: Path, model: nn.Module) -> None:
    """Fill the weights only, in one process."""
    state = {"model": model.state_dict()}
    with _quiet():
        read_state(state, checkpoint_id=path, no_dist=True)


def _state(model: nn.Module, optimizer: torch.optim.Optimizer) -> dict[str, Any]:
    weights, moments = get_state_dict(model, optimizer, options=OPTIONS)
    return {"model": weights, "optimizer": moments, "rng": torch.get_rng_state()}


def _of_disk(error: CheckpointException) -> OSError | None:
    """What the disk said, of the first rank that it refused: DCP wraps it, and torch's zip writer
    hides it behind an error of its own."""
    for failure, _ in error.failures.values():
        seen: BaseException | None = failure
        while seen is not None:
            if isinstance(seen, OSError):
                return seen
            seen = seen.__cause__ or seen.__context__
    return None


@contextmanager
def _quiet() -> Iterator[None]:
    """DCP warns of a single process although `no_dist` says just that."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "torch.distributed is disabled")
        yield


def _link(link: Path, target: str) -> None:
    temporary = link.with_name(f".{link.name}.tmp")
    temporary.unlink(missing_ok=True)
    temporary.symlink_to(target)
    os.replace(temporary, link)


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
