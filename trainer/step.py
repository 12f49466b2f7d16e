"""One step of training over a global batch: the same loss and gradient for every layout.

The loss is the sum over all targets of all ranks and micro-batches, divided by their number; a mean
of means weights a rank with few targets too much (torchtitan #1842, #2206).

Shapes: B windows, S = T + 1 tokens of a whole window, t positions of this rank.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.distributed.tensor.parallel import loss_parallel

from mixtures.batch import Batch
from trainer.model import token_losses
from trainer.objectives import CAUSAL, Example, Objective, make_example
from trainer.parallel import stages
from trainer.parallel.apply import exchange_gradients
from trainer.parallel.context import my_part
from trainer.parallel.norm import local
from trainer.parallel.stages import Forward
from trainer.parallel.world import World, sum_over_ranks
from trainer.settings import RunSettings


class Loss(NamedTuple):
    """Of a global batch; the gradient is that of the sum."""

    nats: float  # per target
    z_loss: float  # likewise; see losses.py


def precision(run: RunSettings, world: World) -> AbstractContextManager[None]:
    """bf16 by autocast: one arithmetic for every layout."""
    if run.precision != "bf16":
        return nullcontext()
    return torch.autocast(world.device.type, torch.bfloat16)


def micro_batches(
    batch: Batch,
    most: int,
    run: RunSettings,
    device: torch.device,
    position: int,
    objective: Objective = CAUSAL,
    sources: Sequence[str] = (),
) -> Iterator[Example]:
    """This rank's windows, which begin at `position` of the run, `run.micro_batch` at a time.

    A rank with fewer windows than `most` gets blank ones, in which no target counts, so that all
    ranks take part in the same collectives.
    """
    tokens_BS, documents_BS = torch.from_numpy(batch.tokens), torch.from_numpy(batch.documents)
    blank = most - len(tokens_BS)
    if blank:
        alone_S = torch.arange(tokens_BS.shape[1], dtype=documents_BS.dtype)  # a document each
        tokens_BS = torch.cat([tokens_BS, tokens_BS.new_zeros(blank, tokens_BS.shape[1])])
        documents_BS = torch.cat([documents_BS, alone_S.expand(blank, -1)])
    if sources:
        sources = [*sources, *[""] * blank]
    for at in range(0, most, run.micro_batch):
        chunk = slice(at, at + run.micro_batch)
        windows = tokens_BS[chunk], documents_BS[chunk]
        example = make_example(objective, *windows, position + at, run.seed, sources[chunk])
        yield example.to(device)


def backward(
    model: nn.Module,
    batch: Batch,
    most: int,
    run: RunSettings,
    world: World,
    position: int,
    objective: Objective = CAUSAL,
    sources: Sequence[str] = (),
) -> Loss:
    """Add the gradient of the global batch; returns its loss.

    `batch` holds this rank's windows, from `position` of the run on; `most` is the largest number
    that any rank has; `sources`: of each window its own, where the objective asks.
    """
    if world.layout.pipeline > 1:  # stages agree on one size of micro-batches
        most = -(-most // run.micro_batch) * run.micro_batch
    how = world.device, position, objective, sources
    chunks = [my_part(example, world) for example in micro_batches(batch, most, run, *how)]
    valid = sum(example.num_targets() for example in chunks)
    assert isinstance(valid, Tensor), "a batch has at least one window"
    num_targets = sum_over_ranks(valid, world).clamp(min=1)
    # FSDP and DDP take the mean of gradients over ranks; what is wanted is their sum
    ranks = world.layout.data * world.layout.context

    drift = torch.zeros((), device=world.device, dtype=torch.float64)  # z-loss, as part of the loss

    def forward(part: nn.Module, example: Example) -> Tensor:
        with precision(run, world):
            if not part.last:
                stream: Tensor = part(example.inputs_BT, example.scope)
                return stream
            losses = local(token_losses(part, example, run.z_loss))
            if run.z_loss:
                drift.add_(losses[1].detach().sum())
            return losses.sum() * ranks / num_targets

    with divided_logits(world):
        total = _backward(model, chunks, forward, run, world)
    total = sum_over_ranks(total, world) / ranks
    z_loss = sum_over_ranks(drift, world) / num_targets
    return Loss((total - z_loss).item(), z_loss.item())


def _backward(
    model: nn.Module, chunks: list[Example], forward: Forward, run: RunSettings, world: World
) -> Tensor:
    """Add the gradients of this rank's micro-batches; returns what their losses sum to."""
    if world.layout.pipeline > 1:
        return stages.backward(model, chunks, forward, run.parallel.schedule, world)
    total = torch.zeros((), device=world.device, dtype=torch.float64)
    for number, example in enumerate(chunks, 1):
        exchange_gradients(model, number == len(chunks), world)
        loss = forward(model, example)
        torch.autograd.backward(loss)
        total += loss.detach()
    return total


def divided_logits(world: World) -> AbstractContextManager[None]:
    """Each rank of `tensor` has the logits of some tokens: the loss needs sums, not all of them."""
    return loss_parallel() if world.layout.tensor > 1 else nullcontext()


@torch.no_grad()
def losses_of(model: nn.Module, example: Example, world: World) -> Tensor:
    """Nats of this rank's targets [B, t], for evaluation; zeros on all stages but the last."""
    example = my_part(example, world)
    with divided_logits(world):
        if world.layout.pipeline > 1:
            return stages.forward(model, example, token_losses, world)
        return local(token_losses(model, example))
