"""Attention under a mask that is data: causal, and never across the border of two documents.

One dense reference (scaled_dot_product_attention with a boolean mask) and one fast path
(FlexAttention, GPUs only: torch 2.13 has no backward for it on CPUs), chosen in `make_mask` and
nowhere else. The mask is made once a batch and shared by all layers: made in each layer it costs
ten times the attention (attention-gym #149).

Shapes: B windows, T positions, H query heads, G key/value heads, K width of a head.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F
from torch.nn.attention.flex_attention import BlockMask, create_block_mask, flex_attention

Mask = Tensor | BlockMask


def positions(documents_BT: Tensor) -> Tensor:
    """Position of each token in its document, [B, T]; counted from the window's start at least.

    A mask alone does not isolate documents, nor do restarted positions alone (nanoVLM #204).
    """
    index_T = torch.arange(documents_BT.shape[1], device=documents_BT.device)
    first_BT = torch.zeros_like(documents_BT, dtype=torch.bool)
    first_BT[:, 1:] = documents_BT[:, 1:] != documents_BT[:, :-1]
    start_BT = torch.where(first_BT, index_T, 0).cummax(dim=1).values
    return index_T - start_BT


def make_mask(documents_BT: Tensor) -> Mask:
    """The mask of a batch: dense [B, 1, T, T] on CPUs, sparse blocks on GPUs."""
    return flex_mask(documents_BT) if documents_BT.is_cuda else dense_mask(documents_BT)


def dense_mask(documents_BT: Tensor) -> Tensor:
    """[B, 1, T, T], True where the query (third axis) may look at the key (fourth axis)."""
    length = documents_BT.shape[1]
    same_BTT = documents_BT[:, :, None] == documents_BT[:, None, :]
    causal_TT = torch.ones(length, length, dtype=torch.bool, device=documents_BT.device).tril()
    return (same_BTT & causal_TT)[:, None]


def flex_mask(documents_BT: Tensor) -> BlockMask:
    batch, length = documents_BT.shape

    def allowed(b: Tensor, h: Tensor, query: Tensor, key: Tensor) -> Tensor:
        return (documents_BT[b, query] == documents_BT[b, key]) & (query >= key)

    return create_block_mask(allowed, batch, None, length, length, device=str(documents_BT.device))


def attend(q_BHTK: Tensor, k_BGTK: Tensor, v_BGTK: Tensor, mask: Mask) -> Tensor:
    """Attention output [B, H, T, K]; heads are grouped when G < H."""
    if isinstance(mask, BlockMask):
        flex: Any = flex_attention if torch.compiler.is_compiling() else _compiled_flex()
        y_BHTK: Tensor = flex(q_BHTK, k_BGTK, v_BGTK, block_mask=mask, enable_gqa=True)
        return y_BHTK
    groups = q_BHTK.shape[1] // k_BGTK.shape[1]
    k_BHTK = k_BGTK.repeat_interleave(groups, dim=1)
    v_BHTK = v_BGTK.repeat_interleave(groups, dim=1)
    return F.scaled_dot_product_attention(q_BHTK, k_BHTK, v_BHTK, attn_mask=mask)


@functools.cache
def _compiled_flex() -> Callable[..., Any]:
    """Alone, FlexAttention materializes all scores; in a compiled layer it is compiled already."""
    return torch.compile(flex_attention)
