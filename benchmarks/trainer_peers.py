"""Tokens per CPU second of training, against a plain loop over transformers' Llama, by turns:

    python benchmarks/trainer_peers.py [--sizes 5M 20M] [--steps 7]

The same shape, vocabulary (16,000), windows (8 of 512, one document each), fp32, one thread, AdamW
(fused), clipping. Each side has a process of its own, set up as its users have it: ours keeps freed
memory, as `assay train` does. A third makes nothing but the matrix products of the layers and the
output layer (attention's are left out), which both sides need: what is left if all else were free.
They take turns step by step; the median CPU time of all steps but the first two counts. Needs
`transformers`.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from multiprocessing import get_context
from multiprocessing.connection import Connection
from statistics import median

import torch
from torch import Tensor, nn

from trainer.model import Decoder, initialize, token_losses
from trainer.objectives import CAUSAL, make_example
from trainer.parallel.world import keep_freed_memory
from trainer.shapes import Shape

VOCABULARY, LENGTH, WINDOWS = 16_000, 512, 8
WARM = 2  # steps that do not count: memory is still growing
SHAPES = {
    "5M": Shape(width=192, depth=5, heads=6, kv_heads=6, ffn=512),
    "20M": Shape(width=384, depth=8, heads=6, kv_heads=6, ffn=1024),
}
Loss = Callable[[Tensor], Tensor]
Step = Callable[[Tensor], float]


def ours(shape: Shape) -> Step:
    keep_freed_memory()
    model = Decoder(shape, VOCABULARY)
    initialize(model, 0)
    documents = torch.zeros(WINDOWS, LENGTH, dtype=torch.int32)

    def loss(tokens: Tensor) -> Tensor:
        example = make_example(CAUSAL, tokens, documents, 0, 0)
        return token_losses(model, example).sum() / example.num_targets()

    return training(model, loss)


def theirs(shape: Shape) -> Step:
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
    return training(model, lambda tokens: model(input_ids=tokens, labels=tokens).loss)


def training(model: nn.Module, loss_of: Loss) -> Step:
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)

    def step(tokens: Tensor) -> float:
        loss = loss_of(tokens)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        return loss.item()

    return step


def products(shape: Shape) -> Step:
    """Each linear layer once forward, once for its input's and once for its weight's gradient."""
    keep_freed_memory()
    square, inner = (shape.width, shape.width), (shape.width, shape.ffn)
    sizes = [square] * 4 + [inner, inner, inner[::-1]]
    sizes = sizes * shape.depth + [(shape.width, VOCABULARY)]
    num = WINDOWS * (LENGTH - 1)
    made = {
        (width, out): (torch.rand(num, width), torch.rand(out, width), torch.rand(num, out))
        for width, out in set(sizes)
    }

    def step(tokens: Tensor) -> float:
        for size in sizes:
            x_ND, weight_VD, y_NV = made[size]
            x_ND @ weight_VD.T, y_NV @ weight_VD, y_NV.T @ x_ND
        return 0.0

    return step


def serve(make: Callable[[Shape], Step], shape: Shape, pipe: Connection) -> None:
    """A process: for each batch of tokens, the CPU seconds of a step and its loss."""
    torch.set_num_threads(1)
    step = make(shape)
    while (tokens := pipe.recv()) is not None:
        began = time.process_time()
        loss = step(torch.tensor(tokens))
        pipe.send((time.process_time() - began, loss))


def compare(size: str, steps: int) -> str:
    context = get_context("spawn")
    pipes = {}
    for name, make in (("assay", ours), ("transformers", theirs), ("products", products)):
        pipes[name], end = context.Pipe()
        context.Process(target=serve, args=(make, SHAPES[size], end), daemon=True).start()
    seconds: dict[str, list[float]] = {name: [] for name in pipes}
    for _ in range(steps + WARM):
        tokens = torch.randint(0, VOCABULARY, (WINDOWS, LENGTH)).tolist()
        for name, pipe in pipes.items():
            pipe.send(tokens)
            seconds[name].append(pipe.recv()[0])
    for pipe in pipes.values():
        pipe.send(None)
    spent = {name: median(taken[WARM:]) for name, taken in seconds.items()}
    rates = {name: WINDOWS * LENGTH / taken for name, taken in spent.items()}
    text = ", ".join(f"{name} {rate:,.0f}" for name, rate in rates.items())
    ratio, most = (rates[name] / rates["transformers"] for name in ("assay", "products"))
    return f"{size}: tokens per CPU second: {text}; {ratio:.2f} times, at most {most:.2f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, prog="benchmarks/trainer_peers.py")
    parser.add_argument("--sizes", nargs="+", choices=SHAPES, default=list(SHAPES))
    parser.add_argument("--steps", type=int, default=7)
    options = parser.parse_args()
    for size in options.sizes:
        print(compare(size, options.steps), flush=True)


if __name__ == "__main__":
    main()
