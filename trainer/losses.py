"""Cross-entropy of the output layer, without holding all logits.

Of a small model the output layer is half of the work, and its logits are the largest thing in
memory: 8 windows of 512 on 16,000 entries make 262 MB, which plain autograd writes four times. On a
CPU they are made `CHUNK` numbers at a time, and each chunk's gradient at once, while it is in the
cache. That gradient is right when all targets count alike; where they do not, it is made anew.

Shapes: B windows, T positions, N = B x T, V vocabulary, D width.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.distributed.tensor import DTensor
from torch.nn import functional as F

IGNORED = -100  # a label that no loss counts
CHUNK = 1 << 22  # logits at a time: 16 MB of fp32; 2^20 to 2^23 differ by 5 % on 16,000 entries
TINY = 1e-30  # below it the logarithm of a probability is not to be trusted


def output_losses(x_BTD: Tensor, weight_VD: Tensor, labels_BT: Tensor, z_weight: float) -> Tensor:
    """Nats of each target [B, T], fp32 at least; 0 where the label is IGNORED.

    With a z_weight [2, B, T]: behind them z_weight x (log of the sum of exp(logits))^2, which keeps
    logits from drifting (PaLM 2204.02311, section 5: 1e-4). What is to be learnt is the sum.
    """
    plain = x_BTD.is_cuda or torch.compiler.is_compiling() or torch.is_autocast_enabled("cpu")
    if plain or type(weight_VD) not in (Tensor, nn.Parameter):
        return losses_of(output_logits(x_BTD, weight_VD), labels_BT, z_weight)
    chunked: Any = _Chunked.apply
    losses_N: Tensor
    z_N: Tensor
    losses_N, z_N = chunked(x_BTD.flatten(0, 1), weight_VD, labels_BT.flatten(), z_weight)
    if not z_weight:
        return losses_N.view(labels_BT.shape).clone()  # FSDP wants no view of a model
    return torch.stack([each.view(labels_BT.shape) for each in (losses_N - z_N, z_N)])


def output_logits(x_BTD: Tensor, weight_VD: Tensor) -> Tensor:
    """[B, T, V]. On a GPU the vocabulary is filled up to a multiple of 64, which its matrix units
    want; the rows exist in this product only: no checkpoint, optimizer or softmax sees them."""
    missing = -len(weight_VD) % 64
    if not missing or not weight_VD.is_cuda or type(weight_VD) not in (Tensor, nn.Parameter):
        return F.linear(x_BTD, weight_VD)
    return F.linear(x_BTD, F.pad(weight_VD, (0, 0, 0, missing)))[..., : len(weight_VD)]


def losses_of(logits_BTV: Tensor, labels_BT: Tensor, z_weight: float) -> Tensor:
    """The same of logits that are all there."""
    if logits_BTV.dtype != torch.float64:
        logits_BTV = logits_BTV.float()
    labels_N = labels_BT.flatten()
    losses_N = F.cross_entropy(
        logits_BTV.flatten(0, 1), labels_N, ignore_index=IGNORED, reduction="none"
    )
    losses_BT = losses_N.view(labels_BT.shape).clone()
    if not z_weight:
        return losses_BT
    if isinstance(losses_BT, DTensor):
        losses_BT = losses_BT.full_tensor()
    log_sum_BT = _log_sum(logits_BTV).masked_fill(labels_BT == IGNORED, 0.0)
    return torch.stack([losses_BT, z_weight * log_sum_BT**2])


def _log_sum(logits_BTV: Tensor) -> Tensor:
    """Logarithm of the sum of exp, [B, T]; where each rank has a share of the vocabulary without
    bringing these together, as DTensor's own logsumexp does."""
    if not isinstance(logits_BTV, DTensor):
        return logits_BTV.logsumexp(-1)
    largest_BT1 = logits_BTV.detach().amax(-1, keepdim=True)
    sum_BT1 = (logits_BTV - largest_BT1).exp().sum(-1, keepdim=True)
    divided_BT1: Any = sum_BT1.log() + largest_BT1
    log_sum_BT: Tensor = divided_BT1.full_tensor()[..., 0]
    return log_sum_BT


class _Chunked(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, x_ND: Tensor, weight_VD: Tensor, labels_N: Tensor, z_weight: float
    ) -> tuple[Tensor, Tensor]:
        wanted = any(ctx.needs_input_grad)
        losses_N, z_N, dx_ND, dweight_VD = _in_chunks(
            x_ND, weight_VD, labels_N, z_weight, None, gradient=wanted
        )
        ctx.save_for_backward(x_ND, weight_VD, labels_N, dx_ND, dweight_VD)
        ctx.z_weight = z_weight
        ctx.mark_non_differentiable(z_N)  # it is part of the losses
        return losses_N, z_N

    @staticmethod
    def backward(ctx: Any, *upstream: Tensor) -> tuple[Tensor | None, Tensor | None, None, None]:
        x_ND, weight_VD, labels_N, dx_ND, dweight_VD = ctx.saved_tensors
        scale_N = upstream[0]
        counted = scale_N[labels_N != IGNORED]
        if len(counted) and not bool((counted == counted[0]).all()):
            _, _, dx_ND, dweight_VD = _in_chunks(
                x_ND, weight_VD, labels_N, ctx.z_weight, scale_N, gradient=True
            )
            return dx_ND, dweight_VD, None, None
        scale = counted[0] if len(counted) else 1.0
        return dx_ND * scale, dweight_VD * scale, None, None


def _in_chunks(
    x_ND: Tensor,
    weight_VD: Tensor,
    labels_N: Tensor,
    z_weight: float,
    scale_N: Tensor | None,
    *,
    gradient: bool,
) -> tuple[Tensor, Tensor, Tensor | None, Tensor | None]:
    """Losses, what of them is z-loss, and the gradients of the sum of `scale_N` x losses."""
    losses_N, z_N = x_ND.new_zeros(len(x_ND)), x_ND.new_zeros(len(x_ND))
    dx_ND = torch.zeros_like(x_ND) if gradient else None
    dweight_VD = torch.zeros_like(weight_VD) if gradient else None
    counted = (labels_N != IGNORED).nonzero()[:, 0]
    most = min(max(1, CHUNK // len(weight_VD)), len(counted))
    buffer = x_ND.new_empty(most, len(weight_VD))  # one for all: it stays in the cache
    for rows in torch.split(counted, max(1, most)):
        x, labels = x_ND[rows], labels_N[rows, None]
        logits = torch.mm(x, weight_VD.T, out=buffer[: len(rows)])
        label_logits = logits.gather(1, labels)
        chances = torch.softmax(logits, -1, out=logits)
        label_chances = chances.gather(1, labels)
        log_sums = label_logits - label_chances.log()
        if (label_chances < TINY).any():
            log_sums = (x @ weight_VD.T).logsumexp(-1, keepdim=True)
        z_N[rows] = z_weight * log_sums[:, 0] ** 2
        losses_N[rows] = (log_sums - label_logits)[:, 0] + z_N[rows]
        if dx_ND is None or dweight_VD is None:
            continue
        if z_weight:
            chances *= 1 + 2 * z_weight * log_sums
        chances.scatter_add_(1, labels, torch.full_like(label_chances, -1.0))
        if scale_N is not None:
            chances *= scale_N[rows, None]
        dx_ND[rows] = chances @ weight_VD
        dweight_VD.addmm_(chances.T, x)
    return losses_N, z_N, dx_ND, dweight_VD
