"""muP: the standard parametrization at its base, and activations that do not grow with width."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from trainer import mup
from trainer.attention import Scope
from trainer.coordinates import check_coordinates
from trainer.model import Decoder, initialize
from trainer.shapes import MUP_BASE, Shape, dial

BASE = Shape(width=128, depth=2, heads=2, kv_heads=1, ffn=256, base_width=128, base_depth=2)


def test_at_its_base_muP_is_the_standard_parametrization() -> None:
    tokens, scope = torch.arange(16)[None], Scope(torch.zeros(1, 16, dtype=torch.int32))
    logits = []
    for shape in (BASE, replace(BASE, base_width=None, base_depth=None)):
        model = Decoder(shape, 50)
        initialize(model, 0)
        logits.append(model(tokens, scope))
    assert torch.equal(*logits)
    assert mup.factors(BASE, "hidden") == (1, 1, 1)


def test_what_a_shape_four_times_as_wide_and_deep_is_multiplied_by() -> None:
    """Table 1 of 2505.01618 with m = n = 4, alpha = 1."""
    shape = replace(dial(16), base_width=MUP_BASE.width, base_depth=MUP_BASE.depth)
    assert (mup.wider(shape), mup.deeper(shape)) == (4, 4)
    assert mup.factors(shape, "hidden") == (0.25, 4, 1 / 16)
    assert mup.factors(shape, "norm") == (1, 1, 1 / 16)
    assert mup.factors(shape, "embedding") == (1, 1, 0.25)
    assert (mup.branch_scale(shape), mup.output_scale(shape)) == (0.25, 0.25)
    assert mup.deviation(shape, "output.weight", 1024) == 1 / 16
    assert mup.deviation(shape, "layers.3.ffn.up.weight", 1024) == 1 / 32
    assert mup.deviation(shape, "layers.3.ffn.output.weight", 2752) == pytest.approx(
        2752**-0.5 / 8**0.5
    )
    standard = dial(16)
    assert mup.deviation(standard, "output.weight", 1024) == 1 / 32
    assert mup.factors(standard, "hidden") == (1, 1, 1)


def test_activations_stay_flat_over_widths_with_mup_only() -> None:
    """The coordinate check of 2203.03466, appendix D: slopes of log size against log width."""
    widths = (64, 128, 256)
    flat = check_coordinates(widths, depth=2, mup=True, num_steps=4)
    steep = check_coordinates(widths, depth=2, mup=False, num_steps=4)
    assert [row.name for row in flat] == [
        *(f"layers.{n}.{part}" for n in (0, 1) for part in ("attention", "ffn")),
        "logits",
    ]
    assert all(row.flat for row in flat)
    assert not any(row.flat for row in steep)
    assert max(abs(row.slope) for row in flat) < 0.15  # measured: 0.06
    assert min(row.slope for row in steep) > 0.3  # measured: 0.48
