"""A Llama-style decoder: RMSNorm, rotary positions, SwiGLU, grouped queries, optional tied output.

Plain modules; parallelism and precision are applied from outside (parallel.py, loop.py).

Shapes: B windows, T positions, D width, H query heads, G key/value heads, K width of a head,
F inner width of the feed-forward layer, V vocabulary.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import replace

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from trainer.attention import Mask, Scope, attend, make_mask, positions
from trainer.objectives import IGNORED, Example
from trainer.shapes import Shape


class Attention(nn.Module):
    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.head_width = shape.head_width
        bias = shape.qkv_bias
        self.query = nn.Linear(shape.width, shape.heads * self.head_width, bias=bias)
        self.key = nn.Linear(shape.width, shape.kv_heads * self.head_width, bias=bias)
        self.value = nn.Linear(shape.width, shape.kv_heads * self.head_width, bias=bias)
        self.output = nn.Linear(shape.heads * self.head_width, shape.width, bias=False)
        self.attend: Callable[..., Tensor] = attend  # another one where a window is divided

    def forward(self, x_BTD: Tensor, rotation: tuple[Tensor, Tensor], mask: Mask) -> Tensor:
        def heads(x_BTX: Tensor) -> Tensor:
            return x_BTX.view(*x_BTX.shape[:2], -1, self.head_width).transpose(1, 2)

        v_BGTK = heads(self.value(x_BTD))
        q_BHTK = rotate(heads(self.query(x_BTD)), rotation).type_as(v_BGTK)
        k_BGTK = rotate(heads(self.key(x_BTD)), rotation).type_as(v_BGTK)
        y_BHTK = self.attend(q_BHTK, k_BGTK, v_BGTK, mask)
        y_BTD: Tensor = self.output(y_BHTK.transpose(1, 2).flatten(-2))
        return y_BTD


class FeedForward(nn.Module):
    """SwiGLU (Shazeer 2002.05202)."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.gate = nn.Linear(shape.width, shape.ffn, bias=False)
        self.up = nn.Linear(shape.width, shape.ffn, bias=False)
        self.output = nn.Linear(shape.ffn, shape.width, bias=False)

    def forward(self, x_BTD: Tensor) -> Tensor:
        y_BTD: Tensor = self.output(F.silu(self.gate(x_BTD)) * self.up(x_BTD))
        return y_BTD


class Layer(nn.Module):
    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.attention_norm = nn.RMSNorm(shape.width, eps=shape.epsilon)
        self.attention = Attention(shape)
        self.ffn_norm = nn.RMSNorm(shape.width, eps=shape.epsilon)
        self.ffn = FeedForward(shape)

    def forward(self, x_BTD: Tensor, rotation: tuple[Tensor, Tensor], mask: Mask) -> Tensor:
        x_BTD = x_BTD + self.attention(self.attention_norm(x_BTD), rotation, mask)
        y_BTD: Tensor = x_BTD + self.ffn(self.ffn_norm(x_BTD))
        return y_BTD


class Decoder(nn.Module):
    """All of a decoder, or the layers of one stage of a pipeline under the names they have there.

    Args:
        layers: which ones to hold; default: all. Only who holds the first has the embedding, only
            who holds the last the norm and the output layer (if tied: the embedding again).
    """

    def __init__(self, shape: Shape, vocabulary: int, layers: range | None = None) -> None:
        super().__init__()
        self.shape = shape
        held = range(shape.depth) if layers is None else layers
        self.first, self.last = held.start == 0, held.stop == shape.depth
        self.layers = nn.ModuleDict({str(number): Layer(shape) for number in held})
        if self.first or (self.last and shape.tied):
            self.embedding = nn.Embedding(vocabulary, shape.width)
        if self.last:
            self.norm = nn.RMSNorm(shape.width, eps=shape.epsilon)
            if not shape.tied:
                self.output = nn.Linear(shape.width, vocabulary, bias=False)

    def forward(self, inputs: Tensor, scope: Scope) -> Tensor:
        """Logits [B, T, V] of the next token.

        A stage of a pipeline takes tokens [B, T] (the first) or what the one before gives, and
        gives logits (the last) or the residual stream [B, T, D].
        """
        scope = replace(scope, window=self.shape.window)
        mask = make_mask(scope)
        rotation = rotations(positions(scope), self.shape)
        x_BTD = self.embedding(inputs) if self.first else inputs
        for layer in self.layers.values():
            x_BTD = layer(x_BTD, rotation, mask)
        if not self.last:
            return x_BTD
        weight_VD = self.embedding.weight if self.shape.tied else self.output.weight
        return F.linear(self.norm(x_BTD), weight_VD)


def rotations(positions_BT: Tensor, shape: Shape) -> tuple[Tensor, Tensor]:
    """Cosine and sine of the rotary angles, fp32, [B, 1, T, K / 2]."""
    steps = torch.arange(0, shape.head_width, 2, device=positions_BT.device, dtype=torch.float32)
    turns_K = shape.rope_base ** (-steps / shape.head_width)
    if shape.rope_factor != 1:
        turns_K = stretched(turns_K, shape.rope_factor, shape.rope_trained)
    angles_BTK = positions_BT[..., None].float() * turns_K
    return angles_BTK.cos()[:, None], angles_BTK.sin()[:, None]


def stretched(turns_K: Tensor, factor: float, trained: int) -> Tensor:
    """Llama 3.1's angles per position for contexts longer than `trained` tokens: pairs that turn
    less than once in them turn `factor` times slower, those of more than 4 turns as before, with a
    ramp between (2407.21783; the reference code's low_freq_factor 1, high_freq_factor 4)."""
    turns_in_trained_K = trained * turns_K / (2 * torch.pi)
    ramp_K = ((turns_in_trained_K - 1) / (4 - 1)).clamp(0, 1)
    return turns_K / factor * (1 - ramp_K) + turns_K * ramp_K


def rotate(x_BHTK: Tensor, rotation: tuple[Tensor, Tensor]) -> Tensor:
    """Turn each pair (k, k + K/2) by its angle (RoFormer 2104.09864, in Llama's half layout)."""
    cosine, sine = rotation
    a, b = x_BHTK.chunk(2, dim=-1)
    return torch.cat([a * cosine - b * sine, a * sine + b * cosine], dim=-1)


@torch.no_grad()
def initialize(model: Decoder, seed: int) -> None:
    """Weights as a function of (seed, parameter name): the same under every layout.

    Matrices: normal with variance 1 / fan-in, those that write into the residual stream divided by
    sqrt(2 depth) (GPT-2); embedding: 0.02 (GPT-2); norms: 1; biases: 0. With init tied to the
    layout, 18 layouts of one torchtitan run stood at losses from 9.73 to 9.97 after 10 steps
    (#3029).
    """
    for name, parameter in model.named_parameters():
        if parameter.ndim == 1:
            parameter.fill_(0.0 if name.endswith("bias") else 1.0)
            continue
        deviation = 0.02 if name == "embedding.weight" else parameter.shape[1] ** -0.5
        if name.startswith("layers.") and name.endswith("output.weight"):
            deviation /= (2 * model.shape.depth) ** 0.5
        generator = torch.Generator().manual_seed(
            int.from_bytes(hashlib.blake2b(f"{seed}/{name}".encode(), digest_size=8).digest())
        )
        parameter.copy_(torch.randn(parameter.shape, generator=generator) * deviation)


def token_losses(model: nn.Module, example: Example) -> Tensor:
    """fp32 cross-entropy in nats of each target [B, T]; 0 where no target counts."""
    logits_BTV = model(example.inputs_BT, example.scope)
    labels_BT = example.labels_BT
    losses = F.cross_entropy(
        at_least_fp32(logits_BTV).flatten(0, 1),
        labels_BT.flatten(),
        ignore_index=IGNORED,
        reduction="none",
    )
    return losses.view(labels_BT.shape)


def at_least_fp32(x: Tensor) -> Tensor:
    return x if x.dtype == torch.float64 else x.float()


def num_parameters(model: nn.Module) -> int:
    return sum(parameter.numel() for parameter in model.parameters())
