"""Causal attention to short windows on a CPU, as matrix products over stretches of queries.

A stretch of queries meets the keys up to its end, so that nearly half of the work is left out, and
the weights are kept for the backward pass, where torch's own makes them again. 8 windows of 511, 6
heads of 64, one thread: 103 ms forward and backward, torch's 177. It costs memory that grows with
the square of the window, so long windows go to torch.

Shapes: B windows, H heads, T positions, K width of a head; q queries of a stretch, k keys.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

LONGEST = 1024  # there the weights take as much as all else that a layer keeps
STRETCH = 64  # queries at a time


def is_short(q_BHTK: Tensor) -> bool:
    """Whether `causal_attention` is for it; compilers and meshes have their own tensors."""
    plain = type(q_BHTK) is Tensor and not torch.compiler.is_compiling()
    whole = q_BHTK.dtype in (torch.float32, torch.float64)
    return plain and whole and q_BHTK.device.type == "cpu" and q_BHTK.shape[2] <= LONGEST


def causal_attention(q_BHTK: Tensor, k_BHTK: Tensor, v_BHTK: Tensor) -> Tensor:
    """What scaled_dot_product_attention(is_causal=True) gives, [B, H, T, K]."""
    function: Any = _Causal.apply
    y_BHTK: Tensor = function(q_BHTK, k_BHTK, v_BHTK)
    return y_BHTK


def _stretches(length: int) -> Iterator[tuple[slice, slice]]:
    """Queries, and the keys that they see some of."""
    for start in range(0, length, STRETCH):
        end = min(start + STRETCH, length)
        yield slice(start, end), slice(end)


class _Causal(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, q_BHTK: Tensor, k_BHTK: Tensor, v_BHTK: Tensor) -> Tensor:
        batch, heads, length, width = q_BHTK.shape
        y_BHTK = q_BHTK.new_empty(batch, length, heads, width).transpose(1, 2)
        future_qq = q_BHTK.new_full((STRETCH, STRETCH), -torch.inf).triu(1)
        kept = []
        for q, k, v, y in zip(q_BHTK, k_BHTK, v_BHTK, y_BHTK, strict=True):
            for part, before in _stretches(length):
                weights_Hqk = torch.bmm(q[:, part] * width**-0.5, k[:, before].mT)
                size = weights_Hqk.shape[1]
                weights_Hqk[:, :, -size:] += future_qq[:size, :size]
                torch.softmax(weights_Hqk, -1, out=weights_Hqk)
                y[:, part] = torch.bmm(weights_Hqk, v[:, before])
                kept.append(weights_Hqk)
        ctx.save_for_backward(q_BHTK, k_BHTK, v_BHTK, y_BHTK, *kept)
        return y_BHTK

    @staticmethod
    def backward(ctx: Any, *upstream: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        q_BHTK, k_BHTK, v_BHTK, y_BHTK, *kept = ctx.saved_tensors
        (dy_BHTK,) = upstream
        _, _, length, width = q_BHTK.shape
        dq_BHTK = torch.empty_like(q_BHTK)
        dk_BHTK, dv_BHTK = (x.new_zeros(x.shape) for x in (k_BHTK, v_BHTK))
        mean_BHT1 = (dy_BHTK * y_BHTK).sum(-1, keepdim=True)  # of the gradient of a row of weights
        windows = zip(
            *(q_BHTK, k_BHTK, v_BHTK, dy_BHTK, mean_BHT1, dq_BHTK, dk_BHTK, dv_BHTK), strict=True
        )
        rest = iter(kept)
        for q, k, v, dy, mean, dq, dk, dv in windows:
            for part, before in _stretches(length):
                weights_Hqk = next(rest)
                dv[:, before].baddbmm_(weights_Hqk.mT, dy[:, part])
                dscores_Hqk = torch.bmm(dy[:, part], v[:, before].mT).sub_(mean[:, part])
                dscores_Hqk.mul_(weights_Hqk)
                dq[:, part] = torch.bmm(dscores_Hqk, k[:, before]).mul_(width**-0.5)
                dk[:, before].baddbmm_(dscores_Hqk.mT, q[:, part], alpha=width**-0.5)
        return dq_BHTK, dk_BHTK, dv_BHTK
