"""AdamW, the learning rate as a function of tokens, and a gradient norm that no layout changes."""

from __future__ import annotations

import torch
from torch import nn

from trainer.settings import RunSettings, Schedule


def learning_rate(schedule: Schedule, peak: float, tokens: float, total_tokens: int) -> float:
    """Warmup-stable-decay: linear up to `peak`, flat, linear down to 0 at `total_tokens`.

    A pure function of the tokens seen, so nothing of it is stored and a resumed run cannot lose it
    (nanotron #19, #245). The loop asks at the middle of each batch: neither the first nor the last
    step is wasted at 0.
    """
    warmup = _tokens(schedule.warmup, total_tokens)
    decay = _tokens(schedule.decay, total_tokens)
    up = tokens / warmup if warmup else 1.0
    down = (total_tokens - tokens) / decay if decay else 1.0
    return peak * max(0.0, min(1.0, up, down))


def _tokens(span: float, total_tokens: int) -> float:
    return span * total_tokens if span < 1 else span


def make_optimizer(model: nn.Module, run: RunSettings) -> torch.optim.AdamW:
    """Weight decay on matrices only; norms are not pulled to 0."""
    parameters = list(model.parameters())
    groups = [
        {"params": [p for p in parameters if p.ndim > 1], "weight_decay": run.weight_decay},
        {"params": [p for p in parameters if p.ndim == 1], "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(
        groups, lr=run.learning_rate, betas=run.betas, fused=parameters[0].is_cuda
    )
