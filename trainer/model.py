"""A Llama-style decoder: RMSNorm, rotary positions, SwiGLU, grouped queries, optional tied output.

Plain modules; parallelism and precision are applied from outside (parallel.py, loop.py).

Shapes: B windows, T positions, E positions of an encoder, D width, H query heads, G key/value
heads, K width of a head, F inner width of the feed-forward layer, V vocabulary.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import replace

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from trainer import mup
from trainer.attention import Mask, Scope, attend, make_mask, positions
from trainer.losses import output_logits, output_losses
from trainer.objectives import Example
from trainer.shapes import Shape

Rotation = tuple[Tensor, Tensor]  # cosine and sine of the angles of each position
Memory = tuple[Tensor, Mask]  # what an encoder gives [B, E, D], and which of it each token may see


class Attention(nn.Module):
    """Of tokens to those of their own sequence or, where there is a memory, to those of an encoder
    (without rotation: the places of two texts have no distance)."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.head_width, self.scale = shape.head_width, mup.attention_scale(shape)
        self.attend: Callable[..., Tensor] = attend  # another one where a window is divided
        bias = shape.qkv_bias
        self.query = nn.Linear(shape.width, shape.heads * self.head_width, bias=bias)
        self.key = nn.Linear(shape.width, shape.kv_heads * self.head_width, bias=bias)
        self.value = nn.Linear(shape.width, shape.kv_heads * self.head_width, bias=bias)
        self.output = nn.Linear(shape.heads * self.head_width, shape.width, bias=False)
        self.qk_norm = shape.qk_norm
        if shape.qk_norm:
            self.query_norm = nn.RMSNorm(self.head_width, eps=shape.epsilon)
            self.key_norm = nn.RMSNorm(self.head_width, eps=shape.epsilon)

    def forward(
        self, x_BTD: Tensor, rotation: Rotation | None, mask: Mask, memory_BED: Tensor | None = None
    ) -> Tensor:
        def heads(x_BTX: Tensor) -> Tensor:
            return x_BTX.view(*x_BTX.shape[:2], -1, self.head_width).transpose(1, 2)

        source_BED = x_BTD if memory_BED is None else memory_BED
        v_BGTK = heads(self.value(source_BED))
        q_BHTK, k_BGTK = heads(self.query(x_BTD)), heads(self.key(source_BED))
        if self.qk_norm:
            q_BHTK, k_BGTK = self.query_norm(q_BHTK), self.key_norm(k_BGTK)
        if rotation is not None:
            q_BHTK, k_BGTK = rotate(q_BHTK, rotation), rotate(k_BGTK, rotation)
        q_BHTK, k_BGTK = scaled(q_BHTK, self.scale).type_as(v_BGTK), k_BGTK.type_as(v_BGTK)
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
    """Attention and feed-forward, each added to the residual stream; with `cross`, a look at an
    encoder between them."""

    def __init__(self, shape: Shape, *, cross: bool = False) -> None:
        super().__init__()
        self.branch = mup.branch_scale(shape)
        self.attention_norm = nn.RMSNorm(shape.width, eps=shape.epsilon)
        self.attention = Attention(shape)
        if cross:
            self.cross_norm = nn.RMSNorm(shape.width, eps=shape.epsilon)
            self.cross = Attention(shape)
        self.ffn_norm = nn.RMSNorm(shape.width, eps=shape.epsilon)
        self.ffn = FeedForward(shape)

    def forward(
        self, x_BTD: Tensor, rotation: Rotation, mask: Mask, memory: Memory | None = None
    ) -> Tensor:
        y_BTD = self.attention(self.attention_norm(x_BTD), rotation, mask)
        x_BTD = x_BTD + scaled(y_BTD, self.branch)
        if memory is not None:
            memory_BED, seen = memory
            y_BTD = self.cross(self.cross_norm(x_BTD), None, seen, memory_BED)
            x_BTD = x_BTD + scaled(y_BTD, self.branch)
        return x_BTD + scaled(self.ffn(self.ffn_norm(x_BTD)), self.branch)


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
        cross = shape.encoder_depth > 0
        self.layers = nn.ModuleDict({str(number): Layer(shape, cross=cross) for number in held})
        if self.first or (self.last and shape.tied):
            self.embedding = nn.Embedding(vocabulary, shape.width)
        if self.last:
            self.norm = nn.RMSNorm(shape.width, eps=shape.epsilon)
            if not shape.tied:
                self.output = nn.Linear(shape.width, vocabulary, bias=False)

    def forward(
        self,
        inputs: Tensor,
        scope: Scope,
        labels_BT: Tensor | None = None,
        z_weight: float = 0.0,
    ) -> Tensor:
        """Logits [B, T, V] of the next token; with labels, what `output_losses` makes of them.

        A stage of a pipeline takes tokens [B, T] (the first) or what the one before gives, and
        gives logits or losses (the last) or the residual stream [B, T, D].
        """
        x_BTD = self.stream(inputs, scope)
        return self.head(x_BTD, labels_BT, z_weight) if self.last else x_BTD

    def stream(self, inputs: Tensor, scope: Scope, memory: Memory | None = None) -> Tensor:
        """The residual stream [B, T, D] after the layers held here."""
        x_BTD = self.embedding(inputs) if self.first else inputs
        return run_layers(self.layers, self.shape, x_BTD, scope, memory)

    def head(self, x_BTD: Tensor, labels_BT: Tensor | None, z_weight: float) -> Tensor:
        weight_VD = self.embedding.weight if self.shape.tied else self.output.weight
        x_BTD = scaled(self.norm(x_BTD), mup.output_scale(self.shape))
        if labels_BT is None:
            return output_logits(x_BTD, weight_VD)
        return output_losses(x_BTD, weight_VD, labels_BT, z_weight)


def run_layers(
    layers: nn.ModuleDict, shape: Shape, x_BTD: Tensor, scope: Scope, memory: Memory | None = None
) -> Tensor:
    """Layer after layer, under one mask and one set of angles for all of them."""
    mask = make_mask(replace(scope, window=shape.window))
    rotation = rotations(positions(scope), shape)
    for layer in layers.values():
        x_BTD = layer(x_BTD, rotation, mask, memory)
    return x_BTD


def rotations(positions_BT: Tensor, shape: Shape) -> Rotation:
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


def rotate(x_BHTK: Tensor, rotation: Rotation) -> Tensor:
    """Turn each pair (k, k + K/2) by its angle (RoFormer 2104.09864, in Llama's half layout)."""
    cosine, sine = rotation
    a, b = x_BHTK.chunk(2, dim=-1)
    return torch.cat([a * cosine - b * sine, a * sine + b * cosine], dim=-1)


@torch.no_grad()
def initialize(model: Decoder, seed: int) -> None:
    """Weights as a function of (seed, parameter name): the same under every layout.

    Matrices: normal with variance 1 / fan-in, those that write into the residual stream divided by
    sqrt(2 depth) (GPT-2); embedding: 0.02 (GPT-2); norms: 1; biases: 0; under muP see
    mup.deviation. With init tied to the layout, 18 layouts of one torchtitan run stood at losses
    from 9.73 to 9.97 after 10 steps (#3029).
    """
    for name, parameter in model.named_parameters():
        if parameter.ndim == 1:
            parameter.fill_(0.0 if name.endswith("bias") else 1.0)
            continue
        deviation = mup.deviation(model.shape, name, parameter.shape[1])
        key = hashlib.blake2b(f"{seed}/{name}".encode(), digest_size=8).digest()
        generator = torch.Generator().manual_seed(int.from_bytes(key))
        parameter.copy_(torch.randn(parameter.shape, generator=generator) * deviation)


def token_losses(model: nn.Module, example: Example, z_weight: float = 0.0) -> Tensor:
    """Cross-entropy in nats of each target [B, T], in fp32 at least; 0 where no target counts. With
    a z_weight [2, B, T]: see output_losses."""
    more = {}
    if example.encoder_tokens_BE is not None:
        more = {"encoder": (example.encoder_tokens_BE, example.encoder_scope)}
    losses_BT: Tensor = model(example.inputs_BT, example.scope, example.labels_BT, z_weight, **more)
    return losses_BT


def scaled(x: Tensor, factor: float) -> Tensor:
    return x if factor == 1 else x * factor


def num_parameters(model: nn.Module) -> int:
    return sum(parameter.numel() for parameter in model.parameters())
