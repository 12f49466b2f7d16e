"""A window divided over the processes of `context`: each has its queries, all keys and values.

A rank computes two pieces of a window, one from the front and one from the back, so that under a
causal mask all have the same work (Llama 3, 2407.21783, section 3.3.2). Keys and values are
gathered in each layer, and their gradients scattered back; with them whole, any mask holds, for a
rank takes rows of it. It costs memory for keys and values of a whole window, in one layer at a
time, and replaced torch's `context_parallel`, which has no rule for attention on CPUs.

Shapes: as in attention.py; t positions of this rank.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from trainer.attention import Mask
from trainer.model import Layer
from trainer.objectives import Example
from trainer.parallel.layout import ZIGZAG
from trainer.parallel.world import World

Attend = Callable[[Tensor, Tensor, Tensor, Mask], Tensor]


def places(length: int, rank: int, ranks: int) -> Tensor:
    """The positions of a window that a rank has, [length / ranks]."""
    piece = length // (ZIGZAG * ranks)
    front, back = rank * piece, (ZIGZAG * ranks - 1 - rank) * piece
    return torch.cat([torch.arange(front, front + piece), torch.arange(back, back + piece)])


def my_part(example: Example, world: World) -> Example:
    """The positions of this rank; what they may look at is the whole window."""
    if world.layout.context == 1:
        return example
    length = example.inputs_BT.shape[1]
    mine_T = places(length, world.place.context, world.layout.context).to(example.inputs_BT.device)
    return replace(
        example,
        inputs_BT=example.inputs_BT[:, mine_T],
        labels_BT=example.labels_BT[:, mine_T],
        scope=replace(example.scope, queries_T=mine_T),
    )


def divide_windows(layers: list[Layer], group: dist.ProcessGroup) -> None:
    """Let the attention of each layer gather keys and values from all ranks of `group`."""

    def attend_all(
        attend: Attend, q_BHTK: Tensor, k_BGTK: Tensor, v_BGTK: Tensor, mask: Mask
    ) -> Tensor:
        gather: Any = _Gather.apply
        k_BGTK, v_BGTK = gather(torch.stack([k_BGTK, v_BGTK]), group)
        return attend(q_BHTK, k_BGTK, v_BGTK, mask)

    for layer in layers:
        layer.attention.attend = functools.partial(attend_all, layer.attention.attend)


class _Gather(torch.autograd.Function):
    """[2, B, G, t, K] of each rank -> [2, B, G, T, K], in the order of the window."""

    @staticmethod
    def forward(ctx: Any, mine: Tensor, group: dist.ProcessGroup) -> Tensor:
        ranks, length = dist.get_world_size(group), mine.shape[3] * dist.get_world_size(group)
        order_T = torch.cat([places(length, rank, ranks) for rank in range(ranks)])
        ctx.group, ctx.order_T = group, order_T.to(mine.device)
        flat = mine.movedim(3, 0).contiguous()
        every = flat.new_empty(length, *flat.shape[1:])
        dist.all_gather_single(every, flat, group=group)
        return every[ctx.order_T.argsort()].movedim(0, 3)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        (gradient,) = gradients
        flat = gradient.movedim(3, 0)[ctx.order_T]
        mine = flat.new_empty(flat.shape[0] // dist.get_world_size(ctx.group), *flat.shape[1:])
        dist.reduce_scatter_single(mine, flat, group=ctx.group)
        return mine.movedim(0, 3), None
