"""The learning rate as a function of the tokens that were seen.

Nothing of it is stored, so a resumed run cannot lose it (nanotron #19, #245: the rate began anew).
"""

from __future__ import annotations

import math

from trainer.recipe import Branch, Schedule


def learning_rate(
    schedule: Schedule,
    peak: float,
    tokens: float,
    total_tokens: int,
    branch: Branch | None = None,
) -> float:
    """The rate after `tokens` of a run of `total_tokens`; `peak` is the largest.

    The loop asks at the middle of each batch: neither the first nor the last step is wasted at 0.
    """
    if branch is not None:
        return peak * _branched(branch, schedule.final, tokens, total_tokens)
    return peak * share(schedule, tokens, total_tokens)


def share(schedule: Schedule, tokens: float, total_tokens: int) -> float:
    """The rate as a share of its peak, from 0 to 1."""
    warmup = _tokens(schedule.warmup, total_tokens)
    up = min(1.0, tokens / warmup) if warmup else 1.0
    left = total_tokens - tokens
    if schedule.shape == "constant":
        return up
    if schedule.shape == "wsd":
        decay = _tokens(schedule.decay, total_tokens)
        down = left / decay if decay else 1.0
    else:
        down = left / (total_tokens - warmup) if total_tokens > warmup else 1.0
    down = max(0.0, min(1.0, down))
    if schedule.shape == "cosine":
        down = (1 - math.cos(math.pi * down)) / 2
    return min(up, schedule.final + (1 - schedule.final) * down)


def _branched(branch: Branch, final: float, tokens: float, total_tokens: int) -> float:
    """Linear from what the rate was where the run left its parent, down to `final`."""
    begin, at_begin = branch.resolved
    down = max(0.0, min(1.0, (total_tokens - tokens) / (total_tokens - begin)))
    return min(at_begin, final) + max(0.0, at_begin - final) * down


def _tokens(span: float, total_tokens: int) -> float:
    return span * total_tokens if span < 1 else span
