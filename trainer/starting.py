"""From settings to a run that can make its next step: plan, model, state."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import torch
import torch.distributed as dist
from torch import nn

from mixtures.loader import Loader
from mixtures.packed import require_whole
from mixtures.plan import Plan
from pipeline.amounts import counted
from pipeline.objects import is_url
from trainer import checkpoint, resuming, saved
from trainer.batches import most_windows
from trainer.data import planned
from trainer.encoder_decoder import make_model
from trainer.interchange.weights import load_into
from trainer.metrics import Progress
from trainer.model import initialize, num_parameters
from trainer.parallel.apply import apply_layout
from trainer.parallel.norm import local
from trainer.parallel.stages import Parts, held_layers
from trainer.parallel.world import World, wait_for_all
from trainer.record import plan_of
from trainer.settings import RunSettings

T = TypeVar("T")


def plan_for(run: RunSettings, world: World) -> Plan:
    """The plan of the mixture; the first rank packs, the others find it packed.

    The first rank hashes all windows too: a flipped bit in one is another token, which no loss
    would tell of. It costs one more reading of them, of which a run makes at least one. Those of a
    store are hashed by the cache, when a process first reads them.
    """
    if not world.first:
        wait_for_all(world)
    plan = planned(run)
    if world.first:
        if run.on_damage == "fail":  # else each rank looks at what it reads
            for source in plan.sources:
                if not is_url(source.folder):
                    require_whole(Path(source.folder))
        wait_for_all(world)
    return plan


def build_model(run: RunSettings, vocab_size: int, world: World) -> nn.Module:
    """The model with its initial weights, on the device, as far as this rank holds it."""
    shape = run.model.shape
    parts = []
    for held in held_layers(run, shape.depth, world):
        part = make_model(shape, vocab_size, held)
        if run.initial is None:
            initialize(part, run.seed)
        else:
            load_into(part, Path(run.initial))
        part.to(world.device, torch.float64 if run.precision == "fp64" else torch.float32)
        apply_layout(part, run, world)
        parts.append(part)
    return parts[0] if len(parts) == 1 else Parts(parts)


def parameters_of(run: RunSettings, vocab_size: int) -> int:
    """Of the whole model, whatever this rank holds of it."""
    with torch.device("meta"):
        return num_parameters(make_model(run.model.shape, vocab_size))


def told_layout(run: RunSettings, model: nn.Module, length: int, world: World) -> str:
    """`mesh: fsdp 4 x tensor 2; a rank holds 1,234,567 parameters and computes ...`"""
    here = sum(local(parameter).numel() for parameter in model.parameters())
    windows = -(-most_windows(run.batch_tokens, length) // world.layout.data)
    return (
        f"mesh: {world.layout} on {world.device.type}; rank 0 holds {here:,} parameters and "
        f"computes up to {counted(windows, 'window')} of a batch, {run.micro_batch} at a time"
    )


def resume(
    run: RunSettings,
    folder: Path,
    loader: Loader,
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    world: World,
    progress: Progress,
) -> tuple[int, bool]:
    """Load the newest good checkpoint, if any; returns the number of steps that are done, and
    whether this run made the last of them (a branch begins with its parent's)."""
    path = by_first(world, lambda: resuming.find(run, folder, progress.line))
    if path is None:
        if world.first and (folder / "metrics.jsonl").exists():
            progress.line(
                f"{folder}: begins anew, no checkpoint was saved; for longer runs set "
                "`checkpoint: {every: 100M}` or so"
            )
        return 0, False
    manifest, own = saved.manifest(path), path.parent.parent == folder
    state = manifest["data"]
    before = plan_of(path.parent.parent, state["fingerprint"])
    position = loader.resume(state, before)
    checkpoint.load(path, model, optimizer, world)
    if world.first:
        progress.line(
            f"{folder}: {'goes on' if own else 'begins'} from {path if not own else path.name}"
        )
        if before is not None and before.fingerprint != loader.plan.fingerprint and own:
            tokens = position * loader.plan.sequence_length
            progress.line(
                f"the mixture changed: from window {position:,} on ({tokens:,} tokens) plan "
                f"{loader.plan.fingerprint}, before it {before.fingerprint}"
            )
    return int(manifest["step"]), own


def by_first(world: World, ask: Callable[[], T]) -> T:
    """What the first rank finds, on all ranks; what it raises is raised on all."""
    if world.mesh is None:
        return ask()
    answer: list[T | Exception] = [RuntimeError("the first rank says nothing")]
    if world.first:
        try:
            answer = [ask()]
        except Exception as error:
            answer = [error]
    dist.broadcast_object_list(answer, src=0, device=world.device)
    found = answer[0]
    if isinstance(found, Exception):
        raise found
    return found
