"""What only a GPU can show of the trainer, in under 5 minutes on one:

    python benchmarks/gpu_check.py [--peak-tflops 989]

The fast attention path against the dense reference (forward, backward, no leak), bf16 against fp32,
FSDP2 against one process, resumption to the same bits, and the speed of a 100M model.
MFU = (6 N + 6 L d T) x tokens/s / peak: causal half of attention once, tied embedding once;
989 TFLOP/s is the dense bf16 peak of H100 and H200 (NVIDIA's data sheet).
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh

from mixtures.batch import Batch
from trainer import checkpoint
from trainer.attention import Scope, attend, dense_mask, flex_mask
from trainer.metrics import flops_per_token
from trainer.model import Decoder, num_parameters
from trainer.optim import make_optimizer
from trainer.parallel.norm import clip_gradients
from trainer.parallel.world import World
from trainer.settings import RunSettings
from trainer.starting import build_model
from trainer.step import backward

VOCABULARY = 32_768
LENGTH = 2_048
SMALL = {"width": 256, "depth": 4, "heads": 4, "kv_heads": 2, "ffn": 704}
Outcome = tuple[bool, str]  # whether it holds, and the figures


def main() -> int:
    """Print one line a check; 1 when one does not hold or there is no GPU."""
    parser = argparse.ArgumentParser(description=__doc__, prog="benchmarks/gpu_check.py")
    parser.add_argument("--peak-tflops", type=float, default=989.0, help="bf16, without sparsity")
    options = parser.parse_args()
    if not torch.cuda.is_available():
        print("gpu_check: no GPU here (torch.cuda.is_available() is False); nothing was checked")
        return 1
    world = World(0, 1, torch.device("cuda", 0), None)
    print(f"torch {torch.__version__}, {torch.cuda.get_device_name()}")
    checks: list[tuple[str, Callable[[], Outcome]]] = [
        ("FlexAttention = dense reference", lambda: attention(world)),
        ("no leak between documents", lambda: leak(world)),
        ("bf16 near fp32", lambda: precision(world)),
        ("FSDP2 = one process", lambda: sharded(world)),
        ("resumed to the same bits", lambda: resumed(world)),
        ("speed, 100M, bf16, compiled", lambda: speed(world, options.peak_tflops)),
    ]
    failed = 0
    for name, check in checks:
        began = time.perf_counter()
        holds, figures = check()
        failed += not holds
        seconds = time.perf_counter() - began
        print(f"{'ok  ' if holds else 'FAIL'}  {name:<32} {figures}  ({seconds:.0f} s)", flush=True)
    return 1 if failed else 0


def run_of(model: object, **changes: object) -> RunSettings:
    base = {"mixture": "none", "model": model, "tokens": "1M", "micro_batch": 8}
    return RunSettings.model_validate({**base, **changes})


def batch_of(windows: int, length: int = LENGTH, vocabulary: int = VOCABULARY) -> Batch:
    """Random tokens in documents of about 500 tokens."""
    rng = np.random.default_rng(0)
    borders = rng.random((windows, length + 1)) < 1 / 500
    documents = np.cumsum(borders, axis=1, dtype=np.int32)
    return Batch(rng.integers(0, vocabulary, (windows, length + 1)), lambda: (documents, ()))


def train(run: RunSettings, world: World, batch: Batch, num_steps: int) -> list[float]:
    """Losses of the first steps of a new model."""
    model = build_model(run, VOCABULARY, world)
    return go_on(run, world, batch, model, make_optimizer(model, run), num_steps)


def go_on(
    run: RunSettings,
    world: World,
    batch: Batch,
    model: Decoder,
    optimizer: torch.optim.Optimizer,
    num_steps: int,
) -> list[float]:
    losses = []
    for _ in range(num_steps):
        optimizer.zero_grad()
        losses.append(backward(model, batch, len(batch.tokens), run, world, 0))
        clip_gradients(model, run.grad_clip, world)
        optimizer.step()
    return losses


def attention(world: World, length: int = LENGTH) -> Outcome:
    """Largest differences of output and gradients, fp32; 0.001 allows for TF32-free rounding."""
    documents = torch.from_numpy(batch_of(2, length - 1).documents).to(world.device)
    generator = torch.Generator(world.device).manual_seed(0)
    results = []
    shapes = [(2, 8, length, 64), (2, 4, length, 64), (2, 4, length, 64)]
    qkv = [torch.randn(shape, device=world.device, generator=generator) for shape in shapes]
    for mask in (flex_mask(Scope(documents)), dense_mask(Scope(documents))):
        q, k, v = (tensor.clone().requires_grad_() for tensor in qkv)
        output = attend(q, k, v, mask)
        results.append([output, *torch.autograd.grad(output.sin().sum(), [q, k, v])])
    gaps = [float((a - b).abs().max()) for a, b in zip(*results, strict=True)]
    return max(gaps) < 1e-3, "output, dq, dk, dv differ by " + ", ".join(f"{g:.1e}" for g in gaps)


def leak(world: World, length: int = LENGTH) -> Outcome:
    """Another first document changes no logit of the second, not by one bit."""
    model = build_model(run_of(SMALL), VOCABULARY, world)
    tokens = torch.from_numpy(batch_of(1, length - 1).tokens).to(world.device)
    half = length // 2
    documents = (torch.arange(length, device=world.device) >= half).int()[None]
    other = torch.cat([(tokens[:, :half] + 1) % VOCABULARY, tokens[:, half:]], dim=1)
    scope = Scope(documents)
    with torch.no_grad():
        gap = float((model(tokens, scope) - model(other, scope))[:, half:].abs().max())
    return gap == 0.0, f"logits of the second document differ by {gap}"


def precision(world: World, length: int = LENGTH) -> Outcome:
    batch = batch_of(8, length)
    fp32, bf16 = (train(run_of(SMALL, precision=p), world, batch, 5) for p in ("fp32", "bf16"))
    gap = max(abs(a - b) for a, b in zip(fp32, bf16, strict=True))
    return gap < 0.02, f"losses of 5 steps differ by at most {gap:.1e}"


def sharded(world: World, length: int = LENGTH) -> Outcome:
    """A group of one process: every hook of FSDP2 runs, nothing may change."""
    batch = batch_of(8, length)
    alone = train(run_of(SMALL), world, batch, 3)
    kind = world.device.type
    os.environ.update({"RANK": "0", "WORLD_SIZE": "1", "MASTER_ADDR": "127.0.0.1"})
    os.environ.setdefault("MASTER_PORT", "29555")
    dist.init_process_group("nccl" if kind == "cuda" else "gloo")
    try:
        group = replace(world, mesh=init_device_mesh(kind, (1,)))
        together = train(run_of(SMALL), group, batch, 3)
    finally:
        dist.destroy_process_group()
    gap = max(abs(a - b) for a, b in zip(alone, together, strict=True))
    return gap < 1e-5, f"losses of 3 steps differ by at most {gap:.1e}"


def resumed(world: World, length: int = LENGTH) -> Outcome:
    """Six steps in one go, and three, a checkpoint, and three more in a new model."""
    run, batch = run_of(SMALL, precision="bf16"), batch_of(8, length)
    whole = train(run, world, batch, 6)
    model = build_model(run, VOCABULARY, world)
    optimizer = make_optimizer(model, run)
    halves = go_on(run, world, batch, model, optimizer, 3)
    with tempfile.TemporaryDirectory() as folder:
        state = checkpoint.state_of(model, optimizer)
        path = checkpoint.write(Path(folder), state, {"step": 3}, world)
        model = build_model(run, VOCABULARY, world)
        optimizer = make_optimizer(model, run)
        checkpoint.load(path, model, optimizer, world)
    halves += go_on(run, world, batch, model, optimizer, 3)
    same = sum(a == b for a, b in zip(whole, halves, strict=True))
    return whole == halves, f"{same} of 6 losses are equal to the bit"


def speed(
    world: World, peak_tflops: float, length: int = LENGTH, model: object = "100M"
) -> Outcome:
    """Tokens/s of the median step, with clipping and the optimizer; the first steps compile."""
    run = run_of("100M", precision="bf16", compile=True, micro_batch=16)
    batch = batch_of(32, length)
    decoder = build_model(run, VOCABULARY, world)
    optimizer = make_optimizer(decoder, run)
    go_on(run, world, batch, decoder, optimizer, 3)
    seconds = []
    for _ in range(10):
        began = time.perf_counter()
        go_on(run, world, batch, decoder, optimizer, 1)  # reads the loss: the step is over
        torch.cuda.synchronize()
        seconds.append(time.perf_counter() - began)
    rate = 32 * length / sorted(seconds)[5]
    flops = flops_per_token(num_parameters(decoder), run.model.depth, run.model.width, length)
    memory = torch.cuda.max_memory_allocated() / 2**30
    return True, (
        f"{rate:,.0f} tokens/s, MFU {rate * flops / peak_tflops / 1e12:.1%} "
        f"of {peak_tflops:g} TFLOP/s, {memory:.1f} GiB"
    )


if __name__ == "__main__":
    sys.exit(main())
