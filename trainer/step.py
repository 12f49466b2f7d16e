"""One step of training over a global batch: the same loss and gradient for every layout.

The loss is the sum over all targets of all ranks and micro-batches, divided by their number; a mean
of means weights a rank with few targets too much (torchtitan #1842, #2206).

Shapes: B windows, S = T + 1 tokens of a whole window.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext

import torch
from torch import Tensor, nn

from mixtures.batch import Batch
from trainer.model import token_losses
from trainer.objectives import CAUSAL, Example, make_example
from trainer.parallel import World, sum_over_ranks
from trainer.settings import RunSettings


def precision(run: RunSettings, world: World) -> AbstractContextManager[None]:
    """bf16 by autocast: one arithmetic for every layout; weights are gathered in fp32."""
    if run.precision == "fp32":
        return nullcontext()
    return torch.autocast(world.device.type, torch.bfloat16)


def micro_batches(
    batch: Batch, most: int, run: RunSettings, device: torch.device, position: int
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
    for at in range(0, most, run.micro_batch):
        chunk = slice(at, at + run.micro_batch)
        example = make_example(
            CAUSAL, tokens_BS[chunk], documents_BS[chunk], position + at, run.seed
        )
        yield example.to(device)


def backward(
    model: nn.Module, batch: Batch, most: int, run: RunSettings, world: World, position: int
) -> float:
    """Add the gradient of the global batch; returns its loss in nats per target.

    `batch` holds this rank's windows, from `position` of the run on; `most` is the largest number
    that any rank has.
    """
    chunks = list(micro_batches(batch, most, run, world.device, position))
    valid = sum(example.num_targets() for example in chunks)
    assert isinstance(valid, Tensor), "a batch has at least one window"
    num_targets = sum_over_ranks(valid, world).clamp(min=1)
    total = torch.zeros((), device=world.device)
    for example in chunks:
        with precision(run, world):
            loss = token_losses(model, example).sum()
        # FSDP takes the mean of gradients over ranks; what is wanted is their sum
        torch.autograd.backward(loss * world.size / num_targets)
        total += loss.detach()
    return (sum_over_ranks(total, world) / num_targets).item()
