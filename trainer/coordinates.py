"""The coordinate check of muP (Yang 2203.03466, appendix D): do activations grow with width?

Models of several widths learn a few steps of one fixed batch. What they add to each activation in
that time has to have one size at all widths; then a learning rate that is best for one of them is
near the best for the others. Sizes are means of absolute values, over seeds too. The output layer
begins at 0 here: what a random one gives shrinks with width under muP, as it should (there, D.2).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from trainer import mup as scaling
from trainer.attention import Scope
from trainer.model import Decoder, initialize
from trainer.shapes import Shape

VOCABULARY, BATCH, LENGTH = 256, 4, 32
HEAD = 32
FLAT = 0.25  # slope: sizes differ by 2^0.25, a fifth, where widths differ by a factor of 2


@dataclass(frozen=True)
class Coordinate:
    """How much an activation has changed since the first step, at each width."""

    name: str
    sizes: tuple[float, ...]
    slope: float  # of log size against log width

    @property
    def flat(self) -> bool:
        return abs(self.slope) <= FLAT


def check_coordinates(
    widths: Sequence[int],
    *,
    depth: int,
    mup: bool,
    num_steps: int,
    learning_rate: float = 1e-2,
    num_seeds: int = 2,
) -> list[Coordinate]:
    """One row for each layer, and the logits. The smallest width is the base.

    Raises:
        ValueError: a width that is no multiple of the width of a head.
    """
    found = [
        _changes(_shape(width, min(widths), depth, mup), num_steps, learning_rate, num_seeds)
        for width in widths
    ]
    rows = []
    for name in found[0]:
        sizes = tuple(changes[name] for changes in found)
        rows.append(Coordinate(name, sizes, _slope(widths, sizes)))
    return rows


def _shape(width: int, base: int, depth: int, mup: bool) -> Shape:
    if width % HEAD:
        raise ValueError(f"width {width}: give multiples of {HEAD}, the width of a head here")
    shape = Shape(width, depth, width // HEAD, width // HEAD, ffn=2 * width, tied=False)
    return replace(shape, base_width=base, base_depth=depth) if mup else shape


def _changes(shape: Shape, num_steps: int, rate: float, num_seeds: int) -> dict[str, float]:
    """Name -> mean size of what training adds to an activation."""
    sums: dict[str, float] = {}
    for seed in range(num_seeds):
        generator = torch.Generator().manual_seed(seed)
        tokens = torch.randint(0, VOCABULARY, (BATCH, LENGTH + 1), generator=generator)
        scope = Scope(torch.zeros(BATCH, LENGTH, dtype=torch.int32))
        model = Decoder(shape, VOCABULARY)
        initialize(model, seed)
        nn.init.zeros_(model.output.weight)
        optimizer = torch.optim.Adam(_groups(model, rate), eps=1e-12, fused=True)
        before = _activations(model, tokens[:, :-1], scope)
        for _ in range(num_steps):
            losses = model(tokens[:, :-1], scope, tokens[:, 1:])
            optimizer.zero_grad()
            losses.mean().backward()
            optimizer.step()
        after = _activations(model, tokens[:, :-1], scope)
        for name, value in after.items():
            size = float((value - before[name]).abs().mean())
            sums[name] = sums.get(name, 0.0) + size / num_seeds
    return sums


def _groups(model: Decoder, rate: float) -> list[dict[str, object]]:
    return [
        {
            "params": [parameter],
            "lr": rate * scaling.factors(model.shape, kind).learning_rate,
        }
        for name, parameter in model.named_parameters()
        for kind in [scaling.kind_of(name, parameter.ndim)]
    ]


@torch.no_grad()
def _activations(model: Decoder, tokens_BT: Tensor, scope: Scope) -> dict[str, Tensor]:
    """What each branch of each layer gives, and the logits."""
    found: dict[str, Tensor] = {}

    def keep(name: str) -> Callable[..., None]:
        def hook(_: nn.Module, __: object, output: Tensor) -> None:
            found[name] = output

        return hook

    hooks = [
        module.register_forward_hook(keep(name))
        for name, module in model.named_modules()
        if name.endswith((".attention", ".ffn"))
    ]
    found["logits"] = model(tokens_BT, scope)
    for hook in hooks:
        hook.remove()
    return found


def _slope(widths: Sequence[int], sizes: Sequence[float]) -> float:
    """Of the line of least squares through (log width, log size)."""
    x, y = [math.log(width) for width in widths], [math.log(size) for size in sizes]
    middle, height = sum(x) / len(x), sum(y) / len(y)
    over = sum((a - middle) * (b - height) for a, b in zip(x, y, strict=True))
    return over / sum((a - middle) ** 2 for a in x)
