"""Tokens per CPU second of training, against a plain loop over transformers' Llama, by turns:

    python benchmarks/trainer_peers.py [--sizes 5M 20M] [--steps 5]

The same shape, vocabulary (16,000), windows (8 of 512, one document each), fp32, one thread, AdamW
(fused), clipping. The median of all steps but the first counts; needs `transformers`.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from statistics import median

import torch
from torch import Tensor, nn

from trainer.model import Decoder, initialize, token_losses
from trainer.objectives import CAUSAL, make_example
from trainer.shapes import Shape

VOCABULARY, LENGTH, WINDOWS = 16_000, 512, 8
SHAPES = {
    "5M": Shape(width=192, depth=5, heads=6, kv_heads=6, ffn=512),
    "20M": Shape(width=384, depth=8, heads=6, kv_heads=6, ffn=1024),
}
Loss = Callable[[Tensor], Tensor]


def ours(shape: Shape) -> tuple[nn.Module, Loss]:
    model = Decoder(shape, VOCABULARY)
    initialize(model, 0)
    documents = torch.zeros(WINDOWS, LENGTH, dtype=torch.int32)

    def loss(tokens: Tensor) -> Tensor:
        example = make_example(CAUSAL, tokens, documents, 0, 0)
        return token_losses(model, example).sum() / example.num_targets()

    return model, loss


def theirs(shape: Shape) -> tuple[nn.Module, Loss]:
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(
        vocab_size=VOCABULARY,
        hidden_size=shape.width,
        num_hidden_layers=shape.depth,
        num_attention_heads=shape.heads,
        num_key_value_heads=shape.kv_heads,
        intermediate_size=shape.ffn,
        max_position_embeddings=LENGTH,
        tie_word_embeddings=True,
        attn_implementation="sdpa",
        use_cache=False,
    )
    model = LlamaForCausalLM(config)
    return model, lambda tokens: model(input_ids=tokens, labels=tokens).loss


def step(model: nn.Module, loss_of: Loss, optimizer: torch.optim.Optimizer, x: Tensor) -> float:
    """CPU seconds of one step."""
    began = time.process_time()
    loss_of(x).backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad()
    return time.process_time() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, prog="benchmarks/trainer_peers.py")
    parser.add_argument("--sizes", nargs="+", choices=SHAPES, default=list(SHAPES))
    parser.add_argument("--steps", type=int, default=5)
    options = parser.parse_args()
    torch.set_num_threads(1)
    for size in options.sizes:
        sides = {}
        for name, make in (("assay", ours), ("transformers", theirs)):
            model, loss = make(SHAPES[size])
            optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
            sides[name] = (model, loss, optimizer)
        seconds: dict[str, list[float]] = {name: [] for name in sides}
        for _ in range(options.steps + 1):
            tokens = torch.randint(0, VOCABULARY, (WINDOWS, LENGTH))
            for name, side in sides.items():
                seconds[name].append(step(*side, tokens))
        rates = {name: WINDOWS * LENGTH / median(taken[1:]) for name, taken in seconds.items()}
        text = ", ".join(f"{name} {rate:,.0f}" for name, rate in rates.items())
        ratio = rates["assay"] / rates["transformers"]
        print(f"{size}: tokens per CPU second: {text}; {ratio:.2f} times", flush=True)


if __name__ == "__main__":
    main()
