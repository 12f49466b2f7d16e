"""The sizes of the axes of a layout, and whether a model fits them. Imports no torch.

Ranks count through the axes of AXES, the last one fastest: processes of one `tensor` group are
neighbours, so that on machines of 8 GPUs the axis that talks most stays inside of one.
"""

from __future__ import annotations

import math
from dataclasses import astuple, dataclass

from pipeline.config import ConfigError
from trainer.settings import RunSettings

AXES = ("pipeline", "replicate", "fsdp", "context", "tensor")
ZIGZAG = 2  # pieces of a window that each process of `context` holds: see context.py


@dataclass(frozen=True)
class Layout:
    """Processes along each axis, in the order of AXES."""

    pipeline: int = 1
    replicate: int = 1
    fsdp: int = 1
    context: int = 1
    tensor: int = 1

    @property
    def size(self) -> int:
        return math.prod(astuple(self))

    @property
    def data(self) -> int:
        """Parts that a global batch is divided into."""
        return self.replicate * self.fsdp

    @property
    def window_multiple(self) -> int:
        """The positions of a window have to be a multiple of it."""
        of_context = ZIGZAG * self.context if self.context > 1 else 1
        return math.lcm(of_context, self.context * self.tensor)

    def place(self, rank: int) -> Layout:
        """Where a rank stands along each axis, from 0."""
        places = []
        for size in reversed(astuple(self)):
            rank, place = divmod(rank, size)
            places.append(place)
        return Layout(*reversed(places))

    def __str__(self) -> str:
        named = zip(AXES, astuple(self), strict=True)
        return " x ".join(f"{axis} {size}" for axis, size in named if size > 1) or "one process"


ONE = Layout()


def make_layout(run: RunSettings, num_processes: int) -> Layout:
    """The layout that `parallel` asks for, `auto` filled in.

    Raises:
        ConfigError: the sizes do not multiply to the number of processes.
    """
    wanted = run.parallel
    fixed = wanted.pipeline * wanted.replicate * wanted.context * wanted.tensor
    fsdp = max(1, num_processes // fixed) if wanted.fsdp == "auto" else wanted.fsdp
    layout = Layout(wanted.pipeline, wanted.replicate, fsdp, wanted.context, wanted.tensor)
    if layout.size != num_processes:
        named = " x ".join(f"{axis} {getattr(wanted, axis)}" for axis in AXES)
        raise ConfigError(
            f"key `parallel`: {named} is for {layout.size} processes, {num_processes} started; "
            f"change a size, or start `torchrun --nproc-per-node {layout.size} -m trainer.cli "
            "train ...`"
        )
    return layout


def check_fit(run: RunSettings, layout: Layout, sequence_length: int) -> None:
    """Whether the model and its windows can be divided so.

    Raises:
        ConfigError: they cannot; names key, value and remedy.
    """
    model = run.model
    num_stages = layout.pipeline * stages_per_rank(run)
    for name, value, axis, size in (
        ("model.heads", model.heads, "tensor", layout.tensor),
        ("model.kv_heads", model.kv_heads, "tensor", layout.tensor),
        ("model.ffn", model.ffn, "tensor", layout.tensor),
        ("model.depth", model.depth, "pipeline", num_stages),
    ):
        _divides(name, value, axis, size)
    for name, given, axes in (
        ("encoder_depth", model.encoder_depth > 0, ("pipeline", "context", "tensor")),
        ("objective", run.objective.grows, ("pipeline", "context", "tensor")),  # not of one length
    ):
        for axis in axes:
            if given and getattr(layout, axis) > 1:
                raise ConfigError(
                    f"key `parallel.{axis}`: {getattr(layout, axis)} does not go with "
                    f"`{name}`; divide by `fsdp` or `replicate`"
                )
    axis = "context" if layout.context > 1 else "tensor"
    _divides("sequence_length", sequence_length, axis, layout.window_multiple)


def _divides(name: str, value: int, axis: str, parts: int) -> None:
    if value % parts:
        raise ConfigError(
            f"key `parallel.{axis}`: it divides `{name}: {value}` into {parts} parts, and "
            f"{value} is no multiple of {parts}; change `parallel.{axis}` or `{name}`"
        )


def stages_per_rank(run: RunSettings) -> int:
    """Runs of layers that each process of `pipeline` holds."""
    interleaved = run.parallel.pipeline > 1 and run.parallel.schedule == "interleaved"
    return 2 if interleaved else 1
