"""Model FLOPs utilisation, by both conventions, against the data sheet's peak. Needs no torch.

    mfu       = (6 N + 6 L a T) x tokens/s / peak     attention: the causal half
    mfu_full  = (6 N + 12 L a T) x tokens/s / peak    all T x T (PaLM 2204.02311, B)

N parameters (a tied embedding once, as the output layer; an untied input embedding not at all: a
look-up is no product), L layers, a = heads x width of a head, T tokens of a window. Windows of
several documents compute less attention than that; recomputed activations are not counted.
"""

from __future__ import annotations

from trainer.shapes import Shape

# Dense bf16 with fp32 accumulation, FLOP/s, of NVIDIA's data sheets (SXM where there are several);
# the first name that the device's name holds counts.
PEAKS = {
    "GB200": 2.5e15,
    "B200": 2.25e15,
    "H200": 989e12,
    "H100 PCIe": 756e12,
    "H100 NVL": 835e12,
    "H100": 989e12,
    "H800": 989e12,
    "H20": 148e12,
    "A100": 312e12,
    "A800": 312e12,
    "L40S": 362e12,
    "L20": 119.5e12,
    "L4": 121e12,
    "A10": 125e12,
    "RTX 4090": 165.2e12,
    "RTX 3090": 71e12,
}


def hidden_parameters(shape: Shape) -> int:
    """Matrices of the layers of a decoder: what laws of learning rates and batches call N."""
    attention = 2 * shape.width * shape.head_width * (shape.heads + shape.kv_heads)
    return shape.depth * (attention + 3 * shape.width * shape.ffn)


def multiplied_parameters(shape: Shape, vocab_size: int) -> int:
    """N above, of a decoder: its matrices, the output layer, norms and biases."""
    small = 2 * shape.width
    small += 2 * shape.head_width if shape.qk_norm else 0
    small += (shape.heads + 2 * shape.kv_heads) * shape.head_width if shape.qkv_bias else 0
    return hidden_parameters(shape) + shape.depth * small + shape.width * (1 + vocab_size)


def flops_per_token(num_parameters: int, depth: int, attention_width: int, length: int) -> int:
    """Forward and backward of one token, the causal half of attention counted once.

    Args:
        num_parameters: N above.
        attention_width: query heads x width of a head.
    """
    return 6 * num_parameters + 6 * depth * attention_width * length


def flops_per_token_full(num_parameters: int, depth: int, attention_width: int, length: int) -> int:
    """The same with every score of attention counted, also those that the mask hides."""
    return 6 * num_parameters + 12 * depth * attention_width * length


def peak_of(device_name: str) -> float | None:
    """bf16 FLOP/s of a device by the name that CUDA gives it; None when it is not known."""
    return next((peak for name, peak in PEAKS.items() if name in device_name), None)
