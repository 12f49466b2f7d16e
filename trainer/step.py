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

from mixtures.loader import Batch
from trainer.model import targets, token_losses
from trainer.parallel import World, sum_over_ranks
from trainer.settings import RunSettings


def precision(run: RunSettings, world: World) -> AbstractContextManager[None]:
    """bf16 by autocast: one arithmetic for every layout; weights are gathered in fp32."""
    if run.precision == "fp32":
        return nullcontext()
    return torch.autocast(world.device.type, torch.bfloat16)


def micro_batches(
    batch: Batch, most: int, size: int, device: torch.device
) -> Iterator[tuple[Tensor, Tensor]]:
    """This rank's windows, `size` at a time: tokens and documents, [B, S] each.

    A rank with fewer windows than `most` gets blank ones, in which no target counts, so that all
    ranks take part in the same collectives.
    """
    tokens_BS, documents_BS = torch.from_numpy(batch.tokens), torch.from_numpy(batch.documents)
    blank = most - len(tokens_BS)
    if blank:
        alone_S = torch.arange(tokens_BS.shape[1], dtype=documents_BS.dtype)  # a document each
        tokens_BS = torch.cat([tokens_BS, tokens_BS.new_zeros(blank, tokens_BS.shape[1])])
        documents_BS = torch.cat([documents_BS, alone_S.expand(blank, -1)])
    for at in range(0, most, size):
        chunk = slice(at, at + size)
        yield tokens_BS[chunk].to(device), documents_BS[chunk].to(device)


def backward(model: nn.Module, batch: Batch, most: int, run: RunSettings, world: World) -> float:
    """Add the gradient of the global batch; returns its loss in nats per target.

    `batch` holds this rank's windows, `most` is the largest number that any rank has.
    """
    chunks = list(micro_batches(batch, most, run.micro_batch, world.device))
    valid = sum(targets(tokens, documents)[1].sum() for tokens, documents in chunks)
    assert isinstance(valid, Tensor), "a batch has at least one window"
    num_targets = sum_over_ranks(valid, world).clamp(min=1)
    total = torch.zeros((), device=world.device)
    for tokens_BS, documents_BS in chunks:
        with precision(run, world):
            loss = token_losses(model, tokens_BS, documents_BS).sum()
        # FSDP takes the mean of gradients over ranks; what is wanted is their sum
        torch.autograd.backward(loss * world.size / num_targets)
        total += loss.detach()
    return (sum_over_ranks(total, world) / num_targets).item()
