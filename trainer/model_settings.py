"""The key `model` of run.yaml: a name, a depth, or every number of a shape.

model: 100M                                              # a name of shapes.PRESETS
model: {depth: 12}                                       # the rest by shapes.dial
model: {like: 100M, qk_norm: true, parametrization: mup}
model: {width: 64, depth: 2, heads: 4, kv_heads: 2, ffn: 192}
"""

from __future__ import annotations

import difflib
from dataclasses import asdict

from pydantic import Field, model_validator

from pipeline.config import Settings
from trainer.shapes import MUP_BASE, PRESETS, Shape, dial


class Model(Settings):
    """The keys of shapes.Shape, where each is explained."""

    width: int = Field(ge=8)
    depth: int = Field(ge=1)
    heads: int = Field(ge=1)
    kv_heads: int = Field(ge=1)
    ffn: int = Field(ge=1)
    tied: bool = True
    rope_base: float = Field(10_000.0, gt=1)
    rope_factor: float = Field(1.0, ge=1)
    rope_trained: int = Field(8192, ge=1)
    qk_norm: bool = False
    qkv_bias: bool = False
    head: int | None = Field(None, ge=2)
    epsilon: float = Field(1e-5, gt=0)
    window: int | None = Field(None, ge=1)
    encoder_depth: int = Field(0, ge=0)
    base_width: int | None = Field(None, ge=8)
    base_depth: int | None = Field(None, ge=1)

    @property
    def shape(self) -> Shape:
        return Shape(**self.model_dump())

    @model_validator(mode="after")
    def _divides(self) -> Model:
        assert self.shape
        return self


def spelled_out(value: object) -> object:
    """What a name, a depth, `like` and `parametrization` stand for, as keys of Model.

    Raises:
        ValueError: no preset, or no parametrization, of this name.
    """
    if isinstance(value, str):
        return asdict(_preset(value))
    if not isinstance(value, dict):
        return value
    keys = dict(value)
    like, kind = keys.pop("like", None), keys.pop("parametrization", None)
    shape: dict[str, object] = {}
    if like is not None:
        shape = asdict(_preset(str(like)))
    elif "width" not in keys and "depth" in keys:
        depth = keys[
            "depth"
        ]  # what is no depth is refused as such, not for keys that follow from it
        shape = asdict(dial(depth if isinstance(depth, int) and depth >= 1 else 1))
    if kind == "mup":
        shape |= {"base_width": MUP_BASE.width, "base_depth": MUP_BASE.depth}
    elif kind not in (None, "standard"):
        raise ValueError(f"parametrization {kind!r}: known are standard and mup")
    return shape | keys


def _preset(name: str) -> Shape:
    if name not in PRESETS:
        near = difflib.get_close_matches(name, PRESETS, n=1, cutoff=0.5)
        hint = f"did you mean {near[0]!r}?" if near else f"known: {', '.join(PRESETS)}."
        raise ValueError(f"no model of this name; {hint} Or give a depth: {{depth: 12}}")
    return PRESETS[name]
