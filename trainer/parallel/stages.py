"""Layers divided over the processes of `pipeline`: each holds one run of them, or two.

The schedules are torch's. What they pass along is the residual stream; all else of a micro-batch
each process reads for itself, so a schedule is given nothing but its number. A tied embedding is
held by the first and the last stage, and its gradients are added before the step.

Shapes: B windows of a micro-batch, t positions of this rank, D width.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.pipelining import (
    PipelineStage,
    Schedule1F1B,
    ScheduleGPipe,
    ScheduleInterleaved1F1B,
)

from trainer.model import Decoder
from trainer.objectives import Example
from trainer.parallel.layout import stages_per_rank
from trainer.parallel.norm import local, settled
from trainer.parallel.world import World
from trainer.settings import RunSettings

LossOf = Callable[[nn.Module, Example], Tensor]  # (last stage, micro-batch) -> what is summed
Forward = Callable[[nn.Module, Example], Tensor]  # (stage, micro-batch) -> stream, or that sum
SCHEDULES = {"gpipe": ScheduleGPipe, "1f1b": Schedule1F1B, "interleaved": ScheduleInterleaved1F1B}


class Parts(nn.Module):
    """Two stages of one process under the names that their parameters have in the whole model."""

    def __init__(self, parts: Sequence[Decoder]) -> None:
        super().__init__()
        self.parts = tuple(parts)  # no ModuleList: it would register them under other names
        layers = {name: layer for part in parts for name, layer in part.layers.items()}
        self.layers = nn.ModuleDict(layers)
        for part in parts:
            for name, module in part.named_children():
                if name != "layers":
                    self.add_module(name, module)


def parts_of(model: nn.Module) -> tuple[Decoder, ...]:
    """The stages that this process holds."""
    if isinstance(model, Parts):
        return model.parts
    assert isinstance(model, Decoder)
    return (model,)


def held_layers(run: RunSettings, depth: int, world: World) -> list[range]:
    """The layers of each stage of this rank: stage s is held by rank s modulo `pipeline`."""
    ranks, each = world.layout.pipeline, stages_per_rank(run)
    size = depth // (ranks * each)
    stages = [world.place.pipeline + ranks * turn for turn in range(each)]
    return [range(stage * size, (stage + 1) * size) for stage in stages]


class _Numbered(nn.Module):
    """A stage that looks up its micro-batch by number; the last one returns the summed loss."""

    def __init__(self, part: Decoder, examples: Sequence[Example], run: Forward) -> None:
        super().__init__()
        self.part, self.examples, self.run = part, examples, run

    def forward(self, *received: Tensor, number: Tensor) -> Tensor:
        example = self.examples[int(number)]
        if received:
            example = replace(example, inputs_BT=received[0])
        return self.run(self.part, example)


def backward(
    model: nn.Module, examples: Sequence[Example], run: Forward, schedule: str, world: World
) -> Tensor:
    """Add the gradients of all micro-batches, which are of one size; returns their summed loss,
    which is 0 but on the last stage."""
    parts, axis = parts_of(model), world.axis("pipeline")
    between = _stream(parts[0], examples[0], world).requires_grad_()
    loss = torch.zeros((), dtype=between.dtype, device=world.device, requires_grad=True)
    stages = [
        PipelineStage(
            _Numbered(part, examples, run),
            world.place.pipeline + world.layout.pipeline * turn,
            world.layout.pipeline * len(parts),
            world.device,
            input_args=() if part.first else between,
            output_args=loss if part.last else between,
            group=axis.get_group(),
        )
        for turn, part in enumerate(parts)
    ]
    numbers, losses = torch.arange(len(examples)), list[Tensor]()
    SCHEDULES[schedule](
        stages if isinstance(model, Parts) else stages[0],
        n_microbatches=len(examples),
        loss_fn=lambda output, _: output,
        scale_grads=False,
    ).step(number=numbers, target=numbers, losses=losses, return_outputs=False)
    if parts[0].shape.tied:
        _add_tied(model, world)
    return torch.stack(losses).detach().sum() if losses else torch.zeros_like(loss)


def _add_tied(model: nn.Module, world: World) -> None:
    """The gradient of a tied embedding on both of its stages: the sum of what each has."""
    axis, place = world.axis("pipeline"), world.place.pipeline
    if place not in (0, axis.size() - 1):
        return
    grad = local(settled(model.get_parameter("embedding.weight")))
    other = torch.empty_like(grad)
    peer = axis.size() - 1 - place
    group = axis.get_group()
    for work in dist.batch_isend_irecv(
        [
            dist.P2POp(dist.isend, grad, group=group, group_peer=peer),
            dist.P2POp(dist.irecv, other, group=group, group_peer=peer),
        ]
    ):
        work.wait()
    grad += other  # two numbers: the same sum on both


@torch.no_grad()
def forward(model: nn.Module, example: Example, loss_of: LossOf, world: World) -> Tensor:
    """What `loss_of` gives on the last stage, zeros elsewhere; of one micro-batch."""
    parts, axis = parts_of(model), world.axis("pipeline")
    ranks, group = axis.size(), axis.get_group()
    losses = torch.zeros(example.labels_BT.shape, device=world.device)
    for part in parts:
        if not part.first:
            received = _stream(part, example, world)
            dist.recv(received, group=group, group_src=(world.place.pipeline - 1) % ranks)
            mine = replace(example, inputs_BT=received)
        else:
            mine = example
        if part.last:
            losses = local(loss_of(part, mine))
        else:
            output = part(mine.inputs_BT, mine.scope).contiguous()
            dist.send(output, group=group, group_dst=(world.place.pipeline + 1) % ranks)
    return losses


def _stream(part: Decoder, example: Example, world: World) -> Tensor:
    """An empty residual stream [B, t, D], as one stage gives it to the next."""
    windows, length = example.labels_BT.shape
    weight = next(part.parameters())
    size = (windows, length // world.layout.tensor, part.shape.width)
    return torch.empty(size, dtype=weight.dtype, device=world.device)
