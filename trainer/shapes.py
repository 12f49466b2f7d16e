"""The shape of a model: plain values, known before torch is loaded.

`PRESETS` is the whole list of names; `dial` gives a shape for any depth.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Shape:
    """A Llama-style model. The vocabulary size comes from the tokenizer of the mixture.

    Raises:
        ValueError: widths, heads and groups that do not divide; names both values.
    """

    width: int  # of the residual stream
    depth: int  # layers (of the decoder)
    heads: int  # query heads
    kv_heads: int  # key and value heads, each shared by heads / kv_heads queries
    ffn: int  # inner width of SwiGLU; 8/3 x width costs what a 4x GELU layer does
    tied: bool = True  # output layer = input embedding; saves vocabulary x width parameters
    rope_base: float = 10_000.0  # RoFormer 2104.09864; Llama 3 uses 500,000
    rope_factor: float = 1.0  # stretches the slow rotations, as Llama 3.1 does: 8, Llama 3.2: 32
    rope_trained: int = 8192  # tokens that a model of another `rope_factor` was trained on before
    qk_norm: bool = False  # RMSNorm of queries and keys (2302.05442; OLMo 2, Qwen 3)
    qkv_bias: bool = False  # of queries, keys and values, as Qwen 2
    head: int | None = None  # width of a head; None: width / heads
    epsilon: float = 1e-5  # of RMSNorm
    window: int | None = None  # tokens that a query looks back over, itself included; None: all
    encoder_depth: int = 0  # layers of an encoder; 0: a decoder alone
    base_width: int | None = None  # of muP (mup.py): the width whose learning rate is used
    base_depth: int | None = None

    def __post_init__(self) -> None:
        if self.head is None and (self.width % self.heads or (self.width // self.heads) % 2):
            raise ValueError(
                f"width {self.width} / heads {self.heads} must be an even whole number (RoPE turns "
                "pairs); change one of them"
            )
        if self.head is not None and self.head % 2:
            raise ValueError(f"head {self.head} must be even (RoPE turns pairs)")
        if self.heads % self.kv_heads:
            raise ValueError(
                f"heads {self.heads} must be a multiple of kv_heads {self.kv_heads}; change one"
            )

    @property
    def head_width(self) -> int:
        return self.width // self.heads if self.head is None else self.head


BASE = 64  # width of a layer for each layer, and of a head


def dial(depth: int) -> Shape:
    """The shape of a depth: width 64 x depth (nanochat's one dial; loss hardly depends on width by
    depth between 16 and 128, Kaplan 2001.08361, figure 5), heads of 64 as Llama 3.2 1B, so as many
    as layers, at most a third as many for keys and values, SwiGLU of 8/3 width in whole 64s.

    Parameters: about 48k x depth^3, and 64 x depth x vocabulary (twice from 32 layers on, where the
    output layer is one of its own).
    """
    width = BASE * depth
    groups = max(g for g in range(1, max(1, depth // 3) + 1) if depth % g == 0)
    ffn = -(-8 * width // (3 * BASE)) * BASE
    return Shape(width, depth, heads=depth, kv_heads=groups, ffn=ffn, tied=depth < 32)


MUP_BASE = dial(4)  # `parametrization: mup`: at this shape it is the standard one


# Names say the parameters with a vocabulary of 4,096 (up to 25M) or 32,768 entries. What is not of
# the dial are shapes that runs have been trained with, and Llama's own.
PRESETS: dict[str, Shape] = {
    # studies on a CPU: 2 arms x 3 seeds in minutes
    "0.4M": Shape(width=64, depth=2, heads=4, kv_heads=2, ffn=192),
    "1M": Shape(width=96, depth=6, heads=6, kv_heads=2, ffn=256),
    "2M": Shape(width=128, depth=8, heads=4, kv_heads=2, ffn=352),
    "4M": dial(4),
    "10M": Shape(width=256, depth=12, heads=8, kv_heads=4, ffn=704),
    "25M": dial(8),
    # one GPU
    "100M": dial(12),
    "200M": dial(16),
    "400M": Shape(width=1024, depth=32, heads=16, kv_heads=8, ffn=2816),
    "650M": dial(24),
    # several GPUs; 1B and 8B have the shape of Llama 3.2 1B and Llama 3.1 8B
    "1B": Shape(width=2048, depth=16, heads=32, kv_heads=8, ffn=8192),
    "3B": dial(40),
    "8B": Shape(width=4096, depth=32, heads=32, kv_heads=8, ffn=14336, tied=False),
}
