"""A layout applied to a model from outside: parameters keep their names, modules their forward.

In this order, as torchtitan does: tensor parallel, context, recomputation, compile, FSDP2 or DDP.
Each layer is one unit of FSDP2; the rest (embedding, last norm, output) belongs to the root.
"""

from __future__ import annotations

import functools
from typing import Any

from torch import nn
from torch.distributed._composable.replicate_with_fsdp import replicate
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.fsdp import FSDPModule, fully_shard
from torch.distributed.tensor import Replicate, Shard
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    ParallelStyle,
    PrepareModuleInput,
    RowwiseParallel,
    SequenceParallel,
    parallelize_module,
)
from torch.utils.checkpoint import checkpoint

from trainer.model import Decoder, Layer
from trainer.parallel import context
from trainer.parallel.world import World
from trainer.settings import RunSettings


def apply_layout(model: Decoder, run: RunSettings, world: World) -> None:
    """Divide a model, or the layers of one stage of it, over the mesh; in place."""
    layers = [layer for layer in model.layers.values() if isinstance(layer, Layer)]
    if world.layout.tensor > 1:
        divide_layers(model, layers, world.axis("tensor"))
    if world.layout.context > 1:
        context.divide_windows(layers, world.axis("context").get_group())
    for layer in layers:
        if run.parallel.recompute:
            again = functools.partial(checkpoint, layer.forward, use_reentrant=False)
            setattr(layer, "forward", again)  # noqa: B010
        if run.compile:
            layer.compile()
    if world.mesh is not None:
        divide_weights(model, layers, world)


def divide_layers(model: Decoder, layers: list[Layer], mesh: DeviceMesh) -> None:
    """Tensor parallel (Megatron-LM 1909.08053) with norms by positions (2205.05198).

    Between layers each rank holds a stretch of the positions; a layer gathers it, computes its
    share of heads and of the inner width, and scatters the sum. So norms are on the mesh too,
    without which their gradients would have another mesh than the rest.
    """
    plan: dict[str, ParallelStyle] = {
        "attention_norm": SequenceParallel(),
        "attention": PrepareModuleInput(
            input_layouts=(Shard(1), None, None),
            desired_input_layouts=(Replicate(), None, None),
        ),
        "attention.query": ColwiseParallel(),
        "attention.key": ColwiseParallel(),
        "attention.value": ColwiseParallel(),
        "attention.output": RowwiseParallel(output_layouts=Shard(1)),
        "ffn_norm": SequenceParallel(),
        "ffn": PrepareModuleInput(input_layouts=(Shard(1),), desired_input_layouts=(Replicate(),)),
        "ffn.gate": ColwiseParallel(),
        "ffn.up": ColwiseParallel(),
        "ffn.output": RowwiseParallel(output_layouts=Shard(1)),
    }
    if model.shape.qk_norm:  # [B, H, T, K], by heads: the gradient of its weight is of all heads
        by_heads = SequenceParallel(sequence_dim=1, use_local_output=True)
        plan |= {"attention.query_norm": by_heads, "attention.key_norm": by_heads}
    for layer in layers:
        parallelize_module(layer, mesh, plan)
    if not model.last:
        ends: dict[str, ParallelStyle] = {}
    else:  # the output layer is a product in `forward`: whole positions, a share of the logits
        ends = {"norm": _WholePositions()}
    if hasattr(model, "embedding"):
        ends["embedding"] = RowwiseParallel(input_layouts=Replicate(), output_layouts=Shard(1))
    if hasattr(model, "output"):
        ends["output"] = ColwiseParallel()
    parallelize_module(model, mesh, ends)


class _WholePositions(SequenceParallel):
    """A norm by positions whose result is gathered."""

    @staticmethod
    def _prepare_output_fn(use_local_output: bool, mod: nn.Module, outputs: Any, mesh: Any) -> Any:
        return outputs.redistribute(mesh, [Replicate()])


def divide_weights(model: Decoder, layers: list[Layer], world: World) -> None:
    """FSDP2 over `fsdp` and `context`, whole copies over `replicate` (HSDP; alone: DDP).

    Processes of `context` compute parts of the same windows with the same weights, so what is said
    of data parallel ranks holds for them too. Weights are gathered in fp32 and rounded by autocast:
    in bf16 it would be half of the traffic, and RMSNorm would leave its fast path (fp32 input,
    bf16 weight).
    """
    layout, axis = world.layout, world.axis
    if layout.fsdp * layout.context == 1 and layout.replicate == 1:
        return
    if layout.fsdp * layout.context == 1:
        for layer in layers:
            replicate(layer, mesh=axis("replicate"))
        replicate(model, mesh=axis("replicate"))
        return
    shard = axis("fsdp")
    if layout.context > 1:
        assert world.mesh is not None
        shard = world.mesh["fsdp", "context"]._flatten("shard")
    mesh = DeviceMesh._concatenate([axis("replicate"), shard]) if layout.replicate > 1 else shard
    for layer in layers:
        fully_shard(layer, mesh=mesh)
    fully_shard(model, mesh=mesh)


def exchange_gradients(model: nn.Module, last: bool, world: World) -> None:
    """Before a micro-batch: whole copies add up their gradients once a step, after the last one.

    What `fsdp` divides is scattered after each, for otherwise each rank would hold all of it.
    """
    if not isinstance(model, FSDPModule):
        return
    if world.layout.fsdp * world.layout.context == 1:
        model.set_requires_gradient_sync(last)
    else:
        model.set_requires_all_reduce(last)
