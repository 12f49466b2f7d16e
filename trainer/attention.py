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
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F
from torch.nn.attention.flex_attention import BlockMask, create_block_mask, flex_attention

from trainer.causal import causal_attention, is_short

Mask = Tensor | BlockMask | None  # None: each looks at all before it
Rule = Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]  # window, head, query, key -> allowed


@dataclass(frozen=True)
class Scope:
    """Which tokens a token may look at: those before it in its document, and itself, and

    `prefix_BT`: marked tokens, which all of their document may look at (an encoder marks all);
    `window`: only those less than so many places away.
    """

    documents_BT: Tensor  # integers; equal ones are of one document
    prefix_BT: Tensor | None = None  # bool
    window: int | None = None
    queries_T: Tensor | None = None  # places of the tokens given, where they are not all

    def to(self, device: torch.device) -> Scope:
        prefix, queries = self.prefix_BT, self.queries_T
        return Scope(
            self.documents_BT.to(device),
            None if prefix is None else prefix.to(device),
            self.window,
            None if queries is None else queries.to(device),
        )


def positions(scope: Scope) -> Tensor:
    """Position of each token in its document, [B, T]; counted from the window's start at least.

    A mask alone does not isolate documents, nor do restarted positions alone (nanoVLM #204).
    """
    documents_BT = scope.documents_BT
    index_T = torch.arange(documents_BT.shape[1], device=documents_BT.device)
    first_BT = torch.zeros_like(documents_BT, dtype=torch.bool)
    first_BT[:, 1:] = documents_BT[:, 1:] != documents_BT[:, :-1]
    start_BT = torch.where(first_BT, index_T, 0).cummax(dim=1).values
    positions_BT = index_T - start_BT
    return positions_BT if scope.queries_T is None else positions_BT[:, scope.queries_T]


def make_mask(scope: Scope) -> Mask:
    """The mask of a batch: dense [B, 1, T, T] on CPUs, sparse blocks on GPUs, None where every
    window is one document: attention that is told so does half of the work."""
    documents_BT = scope.documents_BT
    if documents_BT.is_cuda:
        return flex_mask(scope)
    plain = scope.prefix_BT is None and scope.window is None and scope.queries_T is None
    if plain and bool((documents_BT == documents_BT[:, :1]).all()):
        return None
    return dense_mask(scope)


def make_cross_mask(scope: Scope, encoder_scope: Scope) -> Mask:
    """What tokens may see of an encoder: all of their own document."""
    documents_BT, documents_BE = scope.documents_BT, encoder_scope.documents_BT
    if not documents_BT.is_cuda:
        return (documents_BT[:, :, None] == documents_BE[:, None, :])[:, None]
    return _blocks(cross_rule(scope, encoder_scope), scope, documents_BE.shape[1])


def dense_mask(scope: Scope) -> Tensor:
    """[B, 1, T, T], True where the query (third axis) may look at the key (fourth axis)."""
    documents_BT = scope.documents_BT
    index_T = torch.arange(documents_BT.shape[1], device=documents_BT.device)
    allowed_BTT = (index_T[:, None] >= index_T)[None]
    if scope.prefix_BT is not None:
        allowed_BTT = allowed_BTT | scope.prefix_BT[:, None, :]
    if scope.window is not None:
        allowed_BTT = allowed_BTT & ((index_T[:, None] - index_T).abs() < scope.window)
    same_BTT = documents_BT[:, :, None] == documents_BT[:, None, :]
    mask_BTT = same_BTT & allowed_BTT
    if scope.queries_T is not None:
        mask_BTT = mask_BTT[:, scope.queries_T]
    return mask_BTT[:, None]


def flex_mask(scope: Scope) -> BlockMask:
    return _blocks(rule_of(scope), scope, scope.documents_BT.shape[1])


def _blocks(rule: Rule, scope: Scope, num_keys: int) -> BlockMask:
    batch, length = scope.documents_BT.shape
    num_queries = length if scope.queries_T is None else len(scope.queries_T)
    device = str(scope.documents_BT.device)
    return create_block_mask(rule, batch, None, num_queries, num_keys, device=device)


def rule_of(scope: Scope) -> Rule:
    documents_BT, prefix_BT, window = scope.documents_BT, scope.prefix_BT, scope.window
    queries_T = scope.queries_T

    def allowed(b: Tensor, h: Tensor, query: Tensor, key: Tensor) -> Tensor:
        if queries_T is not None:
            query = queries_T[query]
        sees = query >= key
        if prefix_BT is not None:
            sees = sees | prefix_BT[b, key]
        if window is not None:
            sees = sees & ((query - key).abs() < window)
        return sees & (documents_BT[b, query] == documents_BT[b, key])

    return allowed


def cross_rule(scope: Scope, encoder_scope: Scope) -> Rule:
    documents_BT, documents_BE = scope.documents_BT, encoder_scope.documents_BT

    def allowed(b: Tensor, h: Tensor, query: Tensor, key: Tensor) -> Tensor:
        return documents_BT[b, query] == documents_BE[b, key]

    return allowed


def attend(q_BHTK: Tensor, k_BGTK: Tensor, v_BGTK: Tensor, mask: Mask) -> Tensor:
    """Attention output [B, H, T, K]; heads are grouped when G < H. A query that may look at nothing
    gets zeros."""
    if isinstance(mask, BlockMask):
        flex: Any = flex_attention if torch.compiler.is_compiling() else _compiled_flex()
        y_BHTK: Tensor = flex(q_BHTK, k_BGTK, v_BGTK, block_mask=mask, enable_gqa=True)
        return y_BHTK
    groups = q_BHTK.shape[1] // k_BGTK.shape[1]
    if groups > 1:
        k_BGTK = k_BGTK.repeat_interleave(groups, dim=1)
        v_BGTK = v_BGTK.repeat_interleave(groups, dim=1)
    if mask is None and is_short(q_BHTK):
        return causal_attention(q_BHTK, k_BGTK, v_BGTK)
    return F.scaled_dot_product_attention(
        q_BHTK, k_BGTK, v_BGTK, attn_mask=mask, is_causal=mask is None
    )


@functools.cache
def _compiled_flex() -> Callable[..., Any]:
    """Alone, FlexAttention materializes all scores; in a compiled layer it is compiled already."""
    return torch.compile(flex_attention)
