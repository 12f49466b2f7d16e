"""What processes of `clean_process` do to compare layouts: a few steps of a tiny model in fp64."""

from __future__ import annotations

import dataclasses
import errno
import os
import sys
import time
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import tiny_run
import torch
import torch.distributed as dist
from tiny_run_jobs import be
from torch.distributed.tensor import DTensor

from mixtures.loader import Batch
from trainer import cli, loop
from trainer.evaluate import score_rows
from trainer.items import Row
from trainer.loop import build_model
from trainer.objectives import CAUSAL, Objective
from trainer.optim import make_optimizer
from trainer.parallel.layout import Layout, check_fit, make_layout
from trainer.parallel.norm import clip_gradients
from trainer.parallel.world import World, join_world, make_mesh, share, wait_for_all
from trainer.settings import RunSettings
from trainer.step import backward, precision

LENGTH, VOCABULARY, WINDOWS, STEPS = 32, 48, 7, 3  # 7 windows: none of 2 or 4 ranks has as many
SHAPE = {"width": 32, "depth": 4, "heads": 4, "kv_heads": 4, "ffn": 64}
Case = dict[str, Any]  # changes to RUN
RUN: Case = {
    "mixture": "m.yaml", "model": SHAPE, "tokens": "1k", "precision": "fp64", "threads": 1,
    "micro_batch": 2, "grad_clip": 0.5, "learning_rate": 0.01, "z_loss": 0.01,
}  # fmt: skip


def settings(case: Case) -> RunSettings:
    model = {**SHAPE, **case.get("model", {})}
    return RunSettings.model_validate({**RUN, **case, "model": model})


def windows(step: int) -> Batch:
    """The windows of a step: 0 to 31 valid targets each, documents that go on for 3 of 4 pieces."""
    rng = np.random.default_rng(step)
    tokens = rng.integers(0, VOCABULARY, (WINDOWS, LENGTH + 1))
    documents = np.zeros((WINDOWS, LENGTH + 1), np.int32)
    documents[0] = np.arange(LENGTH + 1)  # nothing counts
    documents[1, 1:] = np.arange(LENGTH)  # one target
    for row, cuts in enumerate([(5,), (28,), (), (3, 4, 30), (11, 12)], 2):
        for cut in cuts:
            documents[row, cut:] += 1
    return Batch(tokens, lambda: (documents, ()))


def texts() -> list[Row]:
    """Held-out rows of 2 to 33 tokens, of 3 owners, some with a beginning that is not scored."""
    rng = np.random.default_rng(9)
    lengths = [2, 33, 7, 12, 30]
    return [
        Row(n % 3, rng.integers(0, VOCABULARY, length), 1 + n % 2)
        for n, length in enumerate(lengths)
    ]


def train(run: RunSettings, world: World) -> dict[str, Any]:
    """Losses, norms, and the parameters that this rank holds, whole; nats of `texts`."""
    model = build_model(run, VOCABULARY, world)
    optimizer = make_optimizer(model, run)
    losses, norms = [], []
    for step in range(STEPS):
        first, count, most = share(WINDOWS, world)
        batch = windows(step)
        part = slice(first, first + count)
        found = batch.documents[part], ()
        mine = Batch(batch.tokens[part], lambda found=found: found)
        optimizer.zero_grad()
        begin = step * WINDOWS + first
        losses += backward(model, mine, most, run, world, begin, objective_of(run))
        norms.append(clip_gradients(model, run.grad_clip, world).item())
        optimizer.step()
    with precision(run, world):
        nats = score_rows(model, texts(), 3, 2 * LENGTH, world)
    whole = {
        name: p.full_tensor() if isinstance(p, DTensor) else p
        for name, p in model.state_dict().items()
    }
    return {"losses": losses, "norms": norms, "parameters": whole, "nats": nats.tolist()}


def objective_of(run: RunSettings) -> Objective:
    shares = run.objective.prefix_lm
    return CAUSAL if shares is None else Objective(prefix=(0.2, 0.8))


def rank_of_matrix(rank: int, size: int, folder: Path, cases: Sequence[tuple[str, Case]]) -> None:
    """Train under each layout in one process group; keeps what each stage came to."""
    be(rank, size, folder)
    torch.set_num_threads(1)
    warnings.simplefilter("error")
    dist.init_process_group("gloo")
    for name, case in cases:
        run = settings(case)
        layout = make_layout(run, size)
        check_fit(run, layout, LENGTH)
        world = World(rank, size, torch.device("cpu"), make_mesh("cpu", layout), layout)
        result = train(run, world)
        if dataclasses.replace(world.place, pipeline=0) == Layout(0, 0, 0, 0, 0):
            torch.save(result, folder / f"{name}-{world.place.pipeline}.pt")
        print(name, os.times().elapsed, flush=True)
    dist.destroy_process_group()


def rank_of_failure(rank: int, size: int, folder: Path, failing: int) -> None:
    """Rank `failing` raises before a collective in which rank 0 or 1 waits; rank 2 computes."""
    be(rank, size, folder)
    with join_world(settings({})) as world:
        if rank == failing:
            (folder / "failed").write_text(str(time.monotonic()))
            raise ValueError("shard 17 is gone")
        if rank == 2:
            time.sleep(600)
        wait_for_all(world)


def failing_rank_of_run(rank: int, size: int, data: Path, path: Path) -> None:
    """Rank 1 fails at its third batch, by the command."""
    tiny_run.use(data)
    be(rank, size, path)
    made, calls = loop._batch, iter(range(100))

    def broken(*arguments: Any) -> Batch:
        if rank == 1 and next(calls) == 2:
            raise OSError(errno.EIO, "Input/output error", "part-00000.arrow")
        return made(*arguments)

    loop._batch = broken
    sys.exit(cli.main(["train", str(path)]))
