"""muP and CompleteP: a learning rate that is best for a small model is best for a large one.

With m = width / base width and n = depth / base depth (Yang 2203.03466, table 8; Dey 2505.01618,
table 1 with alpha = 1), and a base shape at which all is as in the standard parametrization:

    what                      standard                     muP with CompleteP
    deviation: layers         fan-in^-1/2                  the same
      writing to the stream   .. / sqrt(2 depth)           .. / sqrt(2 base depth)
      output layer            width^-1/2                   base width^-1/2
      embedding               0.02                         the same
    a branch is added times   1                            1 / n
    logits times              1                            1 / m
    attention scores times    head width^-1/2              8 / head width (equal at 64)
    learning rate: layers     r                            r / m
      embedding, output, norms r                           r
    weight decay: layers      w                            w m  (rate x decay stays)
    Adam's epsilon: layers,   e                            e / (m n)
      norms; embedding, output e                           e / m
"""

from __future__ import annotations

import math
from typing import NamedTuple

from trainer.shapes import Shape

EMBEDDING_DEVIATION = 0.02  # GPT-2


class Factors(NamedTuple):
    """What a parameter's settings of the optimizer are multiplied by."""

    learning_rate: float = 1.0
    weight_decay: float = 1.0
    epsilon: float = 1.0


def wider(shape: Shape) -> float:
    """m: 1 in the standard parametrization."""
    return 1.0 if shape.base_width is None else shape.width / shape.base_width


def deeper(shape: Shape) -> float:
    """n: 1 in the standard parametrization."""
    return 1.0 if shape.base_depth is None else shape.depth / shape.base_depth


def attention_scale(shape: Shape) -> float:
    """What queries are multiplied by, beside head width^-1/2."""
    return 1.0 if shape.base_width is None else 8 / shape.head_width**0.5


def branch_scale(shape: Shape) -> float:
    return 1 / deeper(shape)


def output_scale(shape: Shape) -> float:
    return 1 / wider(shape)


def in_layers(name: str) -> bool:
    """Whether a parameter is one of a layer, of the decoder or of an encoder."""
    return name.startswith(("layers.", "encoder_layers."))


def deviation(shape: Shape, name: str, fan_in: int) -> float:
    """Standard deviation of the initial values of a matrix."""
    if name == "embedding.weight":
        return EMBEDDING_DEVIATION
    if not in_layers(name):
        return 1 / math.sqrt(shape.base_width or fan_in)
    writes = name.endswith("output.weight")
    branches = 2 * (shape.base_depth or shape.depth) if writes else 1
    return 1 / math.sqrt(fan_in * branches)


def kind_of(name: str, ndim: int) -> str:
    """What a parameter is to an optimizer: "hidden", "embedding" (the output layer too), "norm"."""
    if ndim == 1:
        return "norm"
    return "hidden" if in_layers(name) else "embedding"


def factors(shape: Shape, kind: str) -> Factors:
    """Of the parameters of a kind: one group of the optimizer."""
    m, n = wider(shape), deeper(shape)
    if kind == "embedding":
        return Factors(epsilon=1 / m)
    return Factors(1 / m, m, 1 / (m * n)) if kind == "hidden" else Factors(epsilon=1 / (m * n))
