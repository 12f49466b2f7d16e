"""Memory and traffic of a layout, without its processes: `assay train run.yaml --dry-run`.

One process plays the first and the last rank of the layout in a process group that only pretends
(torch's fake one), with tensors that have sizes and no contents. So what is measured is the code
that a run executes: weights as they are divided, collectives as they are called. Of a rank:

    weights, gradients, optimizer   fp32, two moments of AdamW; counted on the divided model
    gathered                        a layer's whole weights and their gradient, two layers at a time
    activations                     what autograd keeps of one micro-batch, times the micro-batches
                                    that a pipeline holds at once; attention as FlexAttention has it
    working                         twice the largest of these tensors, which is the logits mostly

Not counted: what CUDA, cuBLAS and NCCL take, and fragments: HEADROOM is left for them. Traffic is
what a rank sends in a step where collectives go round in rings: (n - 1) / n of the bytes of an
all-gather or reduce-scatter over n ranks, twice that of an all-reduce.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.distributed import distributed_c10d
from torch.distributed.tensor import DTensor
from torch.testing._internal.distributed.fake_pg import FakeStore
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from pipeline.config import ConfigError
from trainer.attention import Mask, Scope
from trainer.batches import most_windows
from trainer.losses import losses_of
from trainer.model import Decoder, Layer
from trainer.objectives import Example
from trainer.parallel.apply import apply_layout, exchange_gradients
from trainer.parallel.context import my_part
from trainer.parallel.layout import AXES, Layout, check_fit, make_layout
from trainer.parallel.norm import local
from trainer.parallel.stages import held_layers
from trainer.parallel.world import World, make_mesh
from trainer.settings import RunSettings
from trainer.step import divided_logits, precision

HEADROOM = 0.1  # of a device
FP32 = 4
WHOLE = ("replicate",)  # axes on which gradients are exchanged once a step


@dataclass(frozen=True)
class Use:
    """What one rank of a layout needs; bytes, but for `parameters`."""

    rank: int
    parameters: int
    weights: int
    gradients: int
    optimizer: int
    gathered: int
    activations: int
    working: int
    traffic: dict[str, int]  # of a step, by axis

    @property
    def memory(self) -> int:
        states = self.weights + self.gradients + self.optimizer
        return states + self.gathered + self.activations + self.working

    def rows(self) -> list[tuple[str, str]]:
        """What people read: memory by kind, traffic by axis."""
        named = ("weights", "gradients", "optimizer", "gathered", "activations", "working")
        sizes = [(name, getattr(self, name)) for name in named]
        sizes += [("memory", self.memory)]
        sizes += [(f"sent in a step over {axis}", n) for axis, n in self.traffic.items()]
        held = (f"rank {self.rank}: parameters", f"{self.parameters:,}")
        return [held, *((f"  {name}", f"{n / 1e9:,.3f} GB") for name, n in sizes)]


def dry_run(run: RunSettings, ranks: int, length: int, vocabulary: int) -> list[Use]:
    """What the first rank needs, and the last one where they are of different stages.

    Raises:
        ConfigError: the layout does not fit the number of ranks or the model.
    """
    if run.model.shape.encoder_depth:
        raise ConfigError(
            "key `model.encoder_depth`: the dry run knows decoders only; take a decoder of "
            "encoder_depth + depth layers as a bound"
        )
    layout = make_layout(run, ranks)
    check_fit(run, layout, length)
    with _pretended(layout) as worlds:
        return [_use(run, world, length, vocabulary) for world in worlds]


def _use(run: RunSettings, world: World, length: int, vocabulary: int) -> Use:
    layout, depth, fake = world.layout, run.model.shape.depth, FakeTensorMode()
    windows = -(-most_windows(run.batch_tokens, length) // layout.data)
    size = min(run.micro_batch, windows)
    rounds = -(-windows // size)
    parts = [_part(run, held, vocabulary, world, fake) for held in held_layers(run, depth, world)]
    parameters = sum(local(p).numel() for part in parts for p in part.parameters())
    kept, traffic = _Kept(parts), _Traffic(world)
    for part in parts:
        with fake:
            _micro_batch(part, _example(size, length, world), run, world, kept, traffic)
    step = Counter({a: n if a in WHOLE else n * rounds for a, n in traffic.sent.items()})
    if layout.pipeline > 1:
        stream = size * length // (layout.context * layout.tensor) * run.model.shape.width
        ends = sum(part.first + part.last for part in parts)
        step["pipeline"] = FP32 * stream * rounds * (2 * len(parts) - ends)
    [layer, *_] = parts[0].layers.values()
    whole = sum(p.numel() for p in layer.parameters()) // layout.tensor
    return Use(
        rank=world.rank,
        parameters=parameters,
        weights=FP32 * parameters,
        gradients=FP32 * parameters,
        optimizer=2 * FP32 * parameters,
        gathered=2 * 2 * FP32 * whole if layout.fsdp * layout.context > 1 else 0,
        activations=kept.bytes // len(parts) * _held_at_once(run, layout, world, rounds),
        working=2 * kept.largest,
        traffic={axis: n for axis, n in sorted(step.items()) if n},
    )


def _held_at_once(run: RunSettings, layout: Layout, world: World, rounds: int) -> int:
    """Micro-batches of a stage whose activations wait for their backward."""
    behind = layout.pipeline - 1 - world.place.pipeline
    if layout.pipeline == 1:
        return 1
    if run.parallel.schedule == "gpipe":
        return rounds
    if run.parallel.schedule == "1f1b":
        return min(rounds, behind + 1)
    return min(2 * rounds, layout.pipeline + 2 * behind + 1)  # interleaved: two stages a rank


@contextmanager
def _pretended(layout: Layout) -> Iterator[list[World]]:
    """The first rank, and that at the same place of the last stage: parts are alike otherwise."""
    cpu = torch.device("cpu")
    if layout.size == 1:
        yield [World(0, 1, cpu, None)]
        return
    propagator: Any = DTensor._op_dispatcher.sharding_propagator
    propagator.propagate_op_sharding.cache_clear()  # of groups that are no more
    dist.init_process_group("fake", rank=0, world_size=layout.size, store=FakeStore())
    last = layout.size - layout.size // layout.pipeline
    try:
        mesh = make_mesh("cpu", layout)
        yield [World(rank, layout.size, cpu, mesh, layout) for rank in sorted({0, last})]
    finally:
        dist.destroy_process_group()


def _part(
    run: RunSettings, held: range, vocabulary: int, world: World, fake: FakeTensorMode
) -> Decoder:
    with fake:  # the mesh itself is of real numbers
        part = Decoder(run.model.shape, vocabulary, held)
    for layer in part.layers.values():
        assert isinstance(layer, Layer)
        layer.attention.attend = _attend
    apply_layout(part, run.model_copy(update={"compile": False}), world)
    return part


def _attend(q_BHTK: Tensor, k_BGTK: Tensor, v_BGTK: Tensor, mask: Mask) -> Tensor:
    like_flex: Any = _LikeFlex.apply
    y_BHTK: Tensor = like_flex(q_BHTK, k_BGTK, v_BGTK)
    return y_BHTK


class _LikeFlex(torch.autograd.Function):
    """Keeps for backward what FlexAttention keeps: its inputs, its output, a sum a query."""

    @staticmethod
    def forward(ctx: Any, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        y = torch.empty_like(q)
        ctx.save_for_backward(q, k, v, y, q.new_empty(q.shape[:-1], dtype=torch.float32))
        return y

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, ...]:
        return tuple(torch.empty_like(x) for x in ctx.saved_tensors[:3])


def _example(size: int, length: int, world: World) -> Example:
    tokens_BT = torch.zeros(size, length, dtype=torch.int64)
    return my_part(
        Example(tokens_BT, tokens_BT, Scope(tokens_BT.int(), prefix_BT=tokens_BT.bool())), world
    )


def _micro_batch(
    part: Decoder,
    example: Example,
    run: RunSettings,
    world: World,
    kept: _Kept,
    traffic: _Traffic,
) -> None:
    """Forward and backward of one micro-batch, the last one of a step."""
    exchange_gradients(part, True, world)
    inputs = example.inputs_BT
    if not part.first:
        size = (inputs.shape[0], inputs.shape[1] // world.layout.tensor, part.shape.width)
        inputs = torch.empty(size, requires_grad=True)
    with traffic, divided_logits(world):
        with kept.watching(), precision(run, world):
            if part.last:
                logits_BTV = part(inputs, example.scope)  # whole, as on a GPU
                result = local(losses_of(logits_BTV, example.labels_BT, 0.0)).sum()
            else:
                result = part(inputs, example.scope).sum()
        torch.autograd.backward(result)


class _Kept:
    """Bytes of the tensors that autograd keeps, each storage once, weights not at all."""

    def __init__(self, parts: list[Decoder]) -> None:
        self.bytes = self.largest = 0
        self._seen: set[int] = set()
        self._alive: list[Any] = []  # so that no address is given twice
        for part in parts:
            for module in (part, *part.layers.values()):
                module.register_forward_pre_hook(self._weights)  # whole ones, as they are gathered

    def _weights(self, module: nn.Module, _: Any) -> None:
        for parameter in module.parameters():
            self._is_new(local(parameter))

    def _is_new(self, tensor: Tensor) -> bool:
        storage = tensor.untyped_storage()
        if storage._cdata in self._seen:
            return False
        self._seen.add(storage._cdata)
        self._alive.append(storage)
        return True

    @contextmanager
    def watching(self) -> Iterator[None]:
        def keep(tensor: Tensor) -> Tensor:
            mine = local(tensor)
            if self._is_new(mine):
                self.bytes += mine.untyped_storage().nbytes()
                self.largest = max(self.largest, mine.untyped_storage().nbytes())
            return tensor

        with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
            yield


class _Traffic(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Bytes that collectives send, by the axes of their group."""

    def __init__(self, world: World) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.sent: Counter[str] = Counter()
        self._axes = (
            {} if world.mesh is None else {world.axis(a).get_group().group_name: a for a in AXES}
        )

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        if func.namespace in ("c10d", "_c10d_functional", "_c10d_functional_autograd"):
            name = func.__name__
            rings = 2 if "reduce" in name and "scatter" not in name else 1
            if "gather" in name or "reduce" in name:
                group = _group(args)
                tensors = [x for x in tree_leaves((args, result)) if isinstance(x, Tensor)]
                whole = max(x.numel() * x.element_size() for x in tensors)
                n = group.size()
                axis = self._axes.get(group.group_name, "fsdp x context")
                self.sent[axis] += rings * whole * (n - 1) // n
        return result


def _group(args: Any) -> Any:
    resolve: Any = getattr(distributed_c10d, "_resolve_process_group")  # noqa: B009
    for value in args:
        if isinstance(value, str) and value not in ("sum", "avg", "max", "min"):
            return resolve(value)
        if isinstance(value, torch.ScriptObject) and "ProcessGroup" in str(value._type()):
            return dist.ProcessGroup.unbox(value)
    raise AssertionError("a collective without a group")
