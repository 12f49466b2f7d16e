"""The state of a run on disk: DCP's files in a folder that is either complete or not there.

    checkpoints/step-00000120/   DCP files, manifest.json (last: size and hash of every file)
    checkpoints/latest           link to the newest, for people and other tools

Written under a temporary name, every file synced, then the manifest, then renamed (KempnerForge
#102: `latest` moved and older ones deleted before the write was durable left nothing to load).
Names are those of the model, optimizer state is flat (`state.<parameter>.exp_avg`), tensors are
whole: so any number of processes in any layout loads it. The schedule is a function of the tokens
and the loader's whole state is a position, both in the manifest; the random state is that of rank
0, for nothing in a step draws from it (examples are functions of their window number).
"""

from __future__ import annotations

import errno
import os
import shutil
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.checkpoint.api import CheckpointException
from torch.distributed.checkpoint.filesystem import FileSystemReader
from torch.distributed.checkpoint.metadata import TensorStorageMetadata
from torch.distributed.checkpoint.staging import DefaultStager, StagingOptions
from torch.distributed.checkpoint.state_dict import (
    StateDictOptions,
    get_state_dict,
    set_state_dict,
)
from torch.distributed.checkpoint.state_dict_loader import load as read_state
from torch.distributed.checkpoint.state_dict_saver import save as write_state

from pipeline.files import file_hash, write_json
from trainer import saved
from trainer.parallel.world import World

OPTIONS = StateDictOptions(flatten_optimizer_state_dict=True)  # keys by parameter name: resharding
PROOF_BYTES = 1 << 28  # of tensors that `prove` holds at once
State = dict[str, Any]


class LoadError(ValueError):
    """A checkpoint cannot be loaded; the message says why."""


def state_of(model: nn.Module, optimizer: torch.optim.Optimizer) -> State:
    """All that a checkpoint holds; the tensors are those of the run, not copies."""
    weights, moments = get_state_dict(model, optimizer, options=OPTIONS)
    return {"model": weights, "optimizer": moments, "rng": torch.get_rng_state()}


def stager(world: World) -> DefaultStager:
    """Copies a state into memory of the host, the same memory each time."""
    cuda = world.device.type == "cuda"
    return DefaultStager(
        StagingOptions(
            use_pinned_memory=cuda,
            use_shared_memory=False,
            use_async_staging=False,
            use_non_blocking_copy=cuda,
        )
    )


def write(
    folder: Path,
    state: State,
    record: dict[str, Any],
    world: World,
    group: dist.ProcessGroup | None = None,
) -> Path:
    """Write `folder`/step-N with N = record["step"]; every rank calls it.

    `record` (step, tokens and the loader's state) is kept in the manifest. `group`: through which
    ranks agree; one of their own where they write while the run goes on.

    Raises:
        OSError: a disk refuses, on any rank; nothing is left of the checkpoint.
        RuntimeError: torch cannot write it; likewise.
    """
    target = folder / saved.name(record["step"])
    temporary = folder / f".{target.name}.tmp"
    try:
        with _quiet():
            write_state(
                state,
                checkpoint_id=temporary,
                process_group=group,
                no_dist=world.mesh is None,
            )
        if world.first:
            _publish(temporary, target, record)
    except (CheckpointException, OSError) as error:
        shutil.rmtree(temporary, ignore_errors=True)  # a disk that is full has no room for it
        if isinstance(error, OSError):
            raise
        # no Exception, so it would pass by those who may go on without a checkpoint
        raise _of_disk(error) or RuntimeError(told(error)) from None
    return target


def _publish(temporary: Path, target: Path, record: dict[str, Any]) -> None:
    """Make what all ranks wrote durable, then complete, then visible."""
    _require_all(temporary)
    files = {}
    for path in sorted(temporary.iterdir()):
        _sync(path)
        files[path.name] = {"bytes": path.stat().st_size, "xxh3_128": file_hash(path)}
    write_json(temporary / saved.MANIFEST, {**record, "files": files})
    _sync(temporary)
    shutil.rmtree(target, ignore_errors=True)  # there only if damaged: see saved.py
    os.replace(temporary, target)
    _sync(target.parent)
    _link(target.parent / saved.LATEST, target.name)


def _require_all(folder: Path) -> None:
    """Refuse a folder that lacks what the metadata speaks of: each machine wrote to its own disk,
    where the first rank sees its own files only."""
    written: dict[str, int] = {}
    for place in (FileSystemReader(folder).read_metadata().storage_data or {}).values():
        name = place.relative_path
        written[name] = max(written.get(name, 0), place.offset + place.length)
    for name, num_bytes in written.items():
        path = folder / name
        if not path.exists() or path.stat().st_size < num_bytes:
            raise OSError(
                errno.ENOENT,
                f"of {num_bytes:,} bytes that a process wrote the first one does not see all; "
                "`output` must be one folder for all machines",
                str(path),
            )


def load(path: Path, model: nn.Module, optimizer: torch.optim.Optimizer, world: World) -> None:
    """Fill model, optimizer and random state from a checkpoint, whatever layout wrote it.

    Raises:
        LoadError: it does not fit them, or cannot be read; on every rank.
    """
    state = state_of(model, optimizer)
    try:
        with _quiet():
            read_state(state, checkpoint_id=path, no_dist=world.mesh is None)
    except CheckpointException as error:
        raise LoadError(
            f"{path} cannot be loaded: {told(error)}; `assay checkpoint verify` says whether it is "
            "whole, --fresh starts over"
        ) from None
    chosen = [{k: v for k, v in g.items() if k != "params"} for g in optimizer.param_groups]
    set_state_dict(
        model,
        optimizer,
        model_state_dict=state["model"],
        optim_state_dict=state["optimizer"],
        options=OPTIONS,
    )
    for group, settings in zip(optimizer.param_groups, chosen, strict=True):
        group.update(settings)  # those of this run: a branch may have others than its parent
    torch.set_rng_state(state["rng"])


def load_weights(path: Path, model: nn.Module) -> None:
    """Fill the weights only, in one process."""
    state = {"model": model.state_dict()}
    with _quiet():
        read_state(state, checkpoint_id=path, no_dist=True)


def tensors_in(path: Path) -> dict[str, torch.Size]:
    """Names and shapes of the tensors of a checkpoint."""
    found = FileSystemReader(path).read_metadata().state_dict_metadata
    return {n: entry.size for n, entry in found.items() if isinstance(entry, TensorStorageMetadata)}


def prove(path: Path) -> int:
    """Read every tensor of a checkpoint in one process, some at a time; returns their bytes.

    Raises:
        RuntimeError: one cannot be read.
    """
    found = FileSystemReader(path).read_metadata().state_dict_metadata
    some: State = {}
    num_bytes = total = 0
    for name, entry in found.items():
        if isinstance(entry, TensorStorageMetadata):
            some[name] = torch.empty(entry.size, dtype=entry.properties.dtype)
            num_bytes += some[name].nbytes
        if num_bytes >= PROOF_BYTES:
            total += _read(path, some)
            some, num_bytes = {}, 0
    return total + (_read(path, some) if some else 0)


def _read(path: Path, tensors: State) -> int:
    try:
        with _quiet():
            read_state(tensors, checkpoint_id=path, no_dist=True)
    except CheckpointException as error:
        raise RuntimeError(told(error)) from None
    return sum(tensor.nbytes for tensor in tensors.values())


def told(error: CheckpointException) -> str:
    """What went wrong, by rank, without the tracebacks."""
    return "; ".join(f"rank {rank}: {failure[0]}" for rank, failure in error.failures.items())


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
