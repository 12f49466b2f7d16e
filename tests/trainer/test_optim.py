"""The schedule's values, which parameters decay, and the gradient norm."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from trainer.model import Decoder
from trainer.optim import make_optimizer
from trainer.parallel.norm import clip_gradients
from trainer.parallel.world import World
from trainer.recipe import Schedule
from trainer.schedule import learning_rate
from trainer.settings import RunSettings

TINY = {"width": 16, "depth": 1, "heads": 2, "kv_heads": 1, "ffn": 16}
RUN = RunSettings.model_validate({"mixture": "m.yaml", "model": TINY, "tokens": "1k"})


@pytest.mark.parametrize(
    ("tokens", "rate"),
    [(0, 0.0), (50, 0.5), (100, 1.0), (500, 1.0), (800, 1.0), (900, 0.5), (1000, 0.0)],
)
def test_warmup_stable_decay(tokens: int, rate: float) -> None:
    assert learning_rate(Schedule(warmup=0.1, decay=0.2), 1.0, tokens, 1000) == rate
    assert learning_rate(Schedule(warmup=100, decay=200), 1.0, tokens, 1000) == rate
    assert learning_rate(Schedule(warmup=100, decay=200), 0.25, tokens, 1000) == rate / 4


def test_no_warmup_no_decay_is_flat() -> None:
    flat = Schedule(warmup=0, decay=0)
    assert [learning_rate(flat, 2.0, tokens, 10) for tokens in (0, 5, 10)] == [2.0, 2.0, 2.0]


@given(st.floats(0, 0.99), st.floats(0, 0.99), st.integers(0, 1000))
def test_the_rate_stays_between_0_and_the_peak(warmup: float, decay: float, tokens: int) -> None:
    rate = learning_rate(Schedule(warmup=warmup, decay=decay), 3e-3, tokens, 1000)
    assert 0 <= rate <= 3e-3


def test_only_matrices_decay() -> None:
    model = Decoder(RUN.model.shape, 20)
    hidden, embedding, norms = make_optimizer(model, RUN).param_groups
    assert (hidden["weight_decay"], len(hidden["params"])) == (0.1, 4 + 3)
    assert (embedding["weight_decay"], len(embedding["params"])) == (0.1, 1)
    assert (norms["weight_decay"], len(norms["params"])) == (0.0, 3)
    assert (hidden["betas"], hidden["eps"]) == ((0.9, 0.95), 1e-8)


def test_clipping_returns_the_norm_before() -> None:
    model = torch.nn.Linear(2, 1, bias=False)
    model.weight.grad = torch.tensor([[3.0, 4.0]])
    assert clip_gradients(model, 1.0, World(0, 1, torch.device("cpu"), None)).item() == 5.0
    torch.testing.assert_close(model.weight.grad, torch.tensor([[0.6, 0.8]]))
