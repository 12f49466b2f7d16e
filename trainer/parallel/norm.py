"""The norm of the gradient of all parameters, wherever their parts lie, and clipping by it.

torch's own clip_grad_norm_ refuses parameters of several meshes and knows of no pipeline.
"""

from __future__ import annotations

from collections import defaultdict

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor import DTensor

from trainer.parallel.world import World


def clip_gradients(model: nn.Module, largest: float, world: World) -> Tensor:
    """Scale gradients to a norm of at most `largest`; returns the norm before, over all ranks."""
    norm = gradient_norm(model, world)
    scale = (largest / (norm + 1e-6)).clamp(max=1.0)  # as torch does, so that it can be compared
    grads = [local(p.grad) for p in model.parameters() if p.grad is not None]
    torch._foreach_mul_(grads, scale.to(grads[0].dtype))
    return norm


def gradient_norm(model: nn.Module, world: World) -> Tensor:
    """Euclidean norm over all parameters of all ranks, each counted once."""
    grads = [
        settled(parameter)
        for name, parameter in model.named_parameters()
        if parameter.grad is not None and not is_copy(name, world)
    ]
    if world.mesh is None:
        return nn.utils.get_total_norm(grads)
    parts: dict[tuple[DeviceMesh, tuple[int, ...]] | None, list[Tensor]] = defaultdict(list)
    for grad in grads:  # by what they are divided over
        parts[_divided_over(grad)].append(local(grad))
    total = torch.zeros((), device=world.device, dtype=torch.float64)
    for divided, mine in parts.items():
        squares = nn.utils.get_total_norm(mine).double() ** 2
        if divided is not None:
            mesh, dimensions = divided
            for dimension in dimensions:
                dist.all_reduce(squares, group=mesh.get_group(dimension))
        total += squares
    if world.layout.pipeline > 1:
        dist.all_reduce(total, group=world.axis("pipeline").get_group())
    return total.sqrt()


def is_copy(name: str, world: World) -> bool:
    """Whether it is the embedding that the last stage of a pipeline holds as output layer."""
    stages = world.layout.pipeline
    return name == "embedding.weight" and stages > 1 and world.place.pipeline == stages - 1


def settled(parameter: nn.Parameter) -> Tensor:
    """Its gradient, laid out as it is itself: DTensor leaves sums over a mesh undone."""
    grad, data = parameter.grad, parameter.data
    assert grad is not None
    if isinstance(grad, DTensor):
        assert isinstance(data, DTensor)
        if grad.placements != data.placements:
            grad = parameter.grad = grad.redistribute(placements=data.placements)
    return grad


def _divided_over(grad: Tensor) -> tuple[DeviceMesh, tuple[int, ...]] | None:
    if not isinstance(grad, DTensor):
        return None
    divided = [d for d, placement in enumerate(grad.placements) if not placement.is_replicate()]
    return grad.device_mesh, tuple(divided)


def local(tensor: Tensor) -> Tensor:
    return tensor.to_local() if isinstance(tensor, DTensor) else tensor
