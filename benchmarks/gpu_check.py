"""What only a GPU can show of the trainer, in under 5 minutes on one:

    python benchmarks/gpu_check.py                 # needs torch 2.11 or later, and nothing else
    python benchmarks/gpu_check.py --smoke         # on a CPU, tiny: does the script itself run?

Each line is printed as it comes. Checked: FlexAttention against the dense reference for every mask,
forward and backward; no leak between documents, to the bit; losses of the GPU against fp64 on the
CPU; bf16 against fp32; compiled against not; Muon against the CPU. Timed: a 125M and a 1B model in
bf16, compiled, with clipping and the optimizer, and the plain loop over transformers' Llama of the
same shape, if it is installed. MFU by both conventions (trainer/flops.py), against the data sheet's
dense bf16 peak. What the time does not suffice for is named.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.attention.flex_attention import create_block_mask, create_mask

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from trainer.attention import Scope, attend, cross_rule, dense_mask, rule_of
from trainer.flops import flops_per_token, flops_per_token_full, multiplied_parameters, peak_of
from trainer.model import Decoder, initialize, token_losses
from trainer.objectives import CAUSAL, Example, make_example
from trainer.optim import make_optimizer
from trainer.shapes import Shape

SMALL = Shape(width=256, depth=4, heads=4, kv_heads=2, ffn=704)
TINY = Shape(width=32, depth=2, heads=2, kv_heads=1, ffn=64)  # of a smoke run
SHAPES = {
    "125M": Shape(width=768, depth=12, heads=12, kv_heads=4, ffn=2048),
    "1B": Shape(width=2048, depth=16, heads=32, kv_heads=8, ffn=8192),
}
LIMIT = 285.0  # seconds for all


@dataclass(frozen=True)
class Bench:
    """Where and how large."""

    device: torch.device
    smoke: bool
    began: float
    peak: float | None

    @property
    def length(self) -> int:
        return 128 if self.smoke else 2_048

    @property
    def vocabulary(self) -> int:
        return 500 if self.smoke else 32_768

    @property
    def small(self) -> Shape:
        return TINY if self.smoke else SMALL

    @property
    def left(self) -> float:
        return 1e9 if self.smoke else LIMIT - (time.monotonic() - self.began)


Outcome = tuple[bool, str]  # whether it holds, and the figures


def main() -> int:
    """Print one line a check; 1 when one does not hold or there is no GPU."""
    parser = argparse.ArgumentParser(description=__doc__, prog="benchmarks/gpu_check.py")
    parser.add_argument("--smoke", action="store_true", help="tiny, on the CPU")
    parser.add_argument("--peak-tflops", type=float, help="dense bf16; default: by the GPU's name")
    options = parser.parse_args()
    if not options.smoke and not torch.cuda.is_available():
        print("gpu_check: no GPU here (torch.cuda.is_available() is False); nothing was checked")
        return 1
    device = torch.device("cpu" if options.smoke else "cuda")
    name = "CPU" if options.smoke else torch.cuda.get_device_name()
    peak = options.peak_tflops * 1e12 if options.peak_tflops else peak_of(name)
    told = "not known" if peak is None else f"{peak / 1e12:g} TFLOP/s"
    print(f"torch {torch.__version__}, {name}, peak {told}", flush=True)
    bench = Bench(device, options.smoke, time.monotonic(), peak)
    checks: list[tuple[str, float, Callable[[], Outcome]]] = [  # name, seconds it may take
        ("masks: fast = dense", 40, lambda: masks(bench)),
        ("no leak between documents", 10, lambda: leak(bench)),
        ("losses = fp64 on the CPU", 10, lambda: losses(bench)),
        ("bf16 near fp32", 10, lambda: precision(bench)),
        ("compiled = not compiled", 30, lambda: compiled(bench)),
        ("Muon = Muon on the CPU", 10, lambda: muon(bench)),
        ("125M", 45, lambda: speed(bench, "125M", windows=32)),
        ("125M, transformers", 45, lambda: peer(bench, "125M", windows=32)),
        ("1B", 50, lambda: speed(bench, "1B", windows=8)),
        ("1B, transformers", 50, lambda: peer(bench, "1B", windows=8)),
    ]
    failed = 0
    for name, seconds, check in checks:
        if bench.left < seconds:
            print(f"----  {name:<28} left out: {bench.left:.0f} s left, it may take {seconds:.0f}")
            continue
        began = time.monotonic()
        try:
            holds, figures = check()
        except Exception as error:  # the other lines are wanted all the same
            holds, figures = False, f"{type(error).__name__}: {str(error).splitlines()[0][:200]}"
        failed += not holds
        took = time.monotonic() - began
        print(f"{'ok  ' if holds else 'FAIL'}  {name:<28} {figures}  ({took:.0f} s)", flush=True)
        if device.type == "cuda":
            torch.cuda.empty_cache()
            torch.cuda.reset_peak_memory_stats()
    return 1 if failed else 0


# --- inputs ---------------------------------------------------------------------------------------


def windows_of(bench: Bench, number: int) -> tuple[Tensor, Tensor]:
    """Random tokens and documents [B, T + 1], of about 500 tokens each (40 in a smoke run)."""
    generator = torch.Generator().manual_seed(0)
    size = (number, bench.length + 1)
    tokens_BS = torch.randint(bench.vocabulary, size, generator=generator)
    borders_BS = torch.rand(size, generator=generator) < 1 / (40 if bench.smoke else 500)
    return tokens_BS, borders_BS.cumsum(1).int()


def example_of(bench: Bench, number: int) -> Example:
    tokens_BS, documents_BS = windows_of(bench, number)
    return make_example(CAUSAL, tokens_BS, documents_BS, 0, 0).to(bench.device)


def model_of(bench: Bench, shape: Shape, *, fast: bool = False) -> Decoder:
    model = Decoder(shape, bench.vocabulary)
    initialize(model, 0)
    model.to(bench.device)
    if fast and not bench.smoke:
        for layer in model.layers.values():
            layer.compile()
    return model


def optimizer_of(model: nn.Module, kind: str = "adamw") -> torch.optim.Optimizer:
    """As a run of these settings has it, without reading settings."""
    settings: Any = SimpleNamespace(
        learning_rate=1e-3,
        weight_decay=0.1,
        betas=(0.9, 0.95),
        model=SimpleNamespace(shape=SMALL),
        optimizer=SimpleNamespace(
            kind=kind, epsilon=1e-8, momentum=0.95, embedding_weight_decay=None
        ),
    )
    return make_optimizer(model, settings)


def autocast(bench: Bench, wanted: bool) -> Any:
    return torch.autocast(bench.device.type, torch.bfloat16) if wanted else nullcontext()


def steps(
    bench: Bench,
    loss_of: Callable[[], Tensor],
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    number: int,
) -> list[float]:
    """Losses of some steps on the same windows."""
    found = []
    for _ in range(number):
        optimizer.zero_grad()
        loss = loss_of()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        found.append(float(loss.detach()))
    return found


def mean_loss(model: nn.Module, example: Example) -> Tensor:
    return token_losses(model, example).sum() / example.num_targets()


# --- checks ---------------------------------------------------------------------------------------


def masks(bench: Bench) -> Outcome:
    """Largest difference of outputs and gradients, fp32; 0.002 allows for sums in another order."""
    _, documents_BS = windows_of(bench, 2)
    scope = Scope(documents_BS[:, :512].to(bench.device))
    documents_BT = scope.documents_BT
    prefix_BT = torch.arange(documents_BT.shape[1], device=bench.device) % 300 < 90
    prefix_BT = prefix_BT.expand_as(documents_BT).contiguous()
    alone = replace(scope, documents_BT=torch.zeros_like(documents_BT))
    scopes = {
        "causal": alone,
        "document": scope,
        "prefix": replace(alone, prefix_BT=prefix_BT),
        "prefix+document": replace(scope, prefix_BT=prefix_BT),
        "window": replace(scope, window=64),
    }
    encoder = Scope(documents_BT[:, : documents_BT.shape[1] // 2].contiguous())
    dense_BTE = (documents_BT[:, :, None] == encoder.documents_BT[:, None, :])[:, None]
    pairs = {name: (rule_of(kind), dense_mask(kind)) for name, kind in scopes.items()}
    pairs["encoder"] = cross_rule(scope, encoder), dense_BTE
    gaps = {name: _gap(bench, rule, dense) for name, (rule, dense) in pairs.items()}
    told = ", ".join(f"{name} {gap:.0e}" for name, gap in gaps.items())
    return max(gaps.values()) < 2e-3, told


def _gap(bench: Bench, rule: Any, dense: Tensor) -> float:
    """Of a rule for FlexAttention and the mask that it stands for, [B, 1, T, keys]."""
    batch, _, length, keys = dense.shape
    if bench.smoke:  # no FlexAttention backward on a CPU: the rule alone
        same = create_mask(rule, batch, None, length, keys, device="cpu")
        return 0.0 if torch.equal(same, dense) else 1.0
    fast = create_block_mask(rule, batch, None, length, keys, device=str(bench.device))
    generator = torch.Generator(bench.device).manual_seed(0)
    sizes = [(batch, 4, length, 64), (batch, 2, keys, 64), (batch, 2, keys, 64)]
    qkv = [torch.randn(s, device=bench.device, generator=generator) for s in sizes]
    results = []
    for mask in (fast, dense):
        q, k, v = (tensor.clone().requires_grad_() for tensor in qkv)
        output = attend(q, k, v, mask)
        results.append([output, *torch.autograd.grad(output.sin().sum(), [q, k, v])])
    pairs = zip(*results, strict=True)
    return max(float((a.nan_to_num() - b.nan_to_num()).abs().max()) for a, b in pairs)


def leak(bench: Bench) -> Outcome:
    """Another first document changes no logit of the second, not by one bit, in bf16 too."""
    model = model_of(bench, bench.small, fast=True)
    tokens_BT = windows_of(bench, 1)[0][:, :-1].to(bench.device)
    half = bench.length // 2
    scope = Scope((torch.arange(bench.length, device=bench.device) >= half).int()[None])
    other_BT = torch.cat([(tokens_BT[:, :half] + 1) % bench.vocabulary, tokens_BT[:, half:]], 1)
    gaps = []
    for bf16 in (False, True):
        with torch.no_grad(), autocast(bench, bf16):
            off = (model(tokens_BT, scope) - model(other_BT, scope))[:, half:]
        gaps.append(float(off.abs().max()))
    return max(gaps) == 0.0, f"logits of the second document differ by {gaps[0]}, bf16 {gaps[1]}"


def losses(bench: Bench) -> Outcome:
    """Loss and gradient norm of one batch, fp32 here against fp64 on the CPU."""
    found = []
    for device, dtype in ((bench.device, torch.float32), (torch.device("cpu"), torch.float64)):
        place = replace(bench, device=device)
        model = model_of(place, bench.small).to(dtype)
        example = example_of(place, 2)
        loss = mean_loss(model, example)
        loss.backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), 1e9)
        found.append((float(loss.detach()), float(norm)))
    (loss_here, norm_here), (loss_there, norm_there) = found
    off = abs(loss_here / loss_there - 1), abs(norm_here / norm_there - 1)
    return max(off) < 1e-3, f"loss {loss_here:.5f} off by {off[0]:.0e}, gradient norm {off[1]:.0e}"


def precision(bench: Bench) -> Outcome:
    found = []
    for bf16 in (False, True):
        model, example = model_of(bench, bench.small), example_of(bench, 4)

        def loss_of(model: nn.Module = model, bf16: bool = bf16, e: Example = example) -> Tensor:
            with autocast(bench, bf16):
                return mean_loss(model, e)

        found.append(steps(bench, loss_of, model, optimizer_of(model), 5))
    gap = max(abs(a - b) for a, b in zip(*found, strict=True))
    return gap < 0.03, f"losses of 5 steps, from {found[0][0]:.3f}, differ by at most {gap:.1e}"


def compiled(bench: Bench) -> Outcome:
    found = []
    for fast in (False, True):
        model, example = model_of(bench, bench.small, fast=fast), example_of(bench, 4)
        loss_of = partial(mean_loss, model, example)
        found.append(steps(bench, loss_of, model, optimizer_of(model), 5))
    gap = max(abs(a - b) for a, b in zip(*found, strict=True))
    return gap < 1e-3, f"losses of 5 steps differ by at most {gap:.1e}"


def muon(bench: Bench) -> Outcome:
    """One step of the same gradients; Newton-Schulz runs in bf16, so to its rounding."""
    updates = []
    for device in (bench.device, torch.device("cpu")):
        torch.manual_seed(0)
        model = model_of(replace(bench, device=torch.device("cpu")), bench.small)
        before = [p.detach().clone() for p in model.parameters()]
        gradients = [torch.randn_like(p) for p in model.parameters()]
        model.to(device)
        for parameter, gradient in zip(model.parameters(), gradients, strict=True):
            parameter.grad = gradient.to(device)
        optimizer_of(model, "muon").step()
        after = [p.detach().cpu() for p in model.parameters()]
        updates.append([a - b for a, b in zip(after, before, strict=True)])
    gap = max(
        float((a - b).norm() / b.norm().clamp(min=1e-12)) for a, b in zip(*updates, strict=True)
    )
    return gap < 0.05, f"updates differ by at most {gap:.1%} of their size"


# --- speed ----------------------------------------------------------------------------------------


def speed(bench: Bench, name: str, windows: int) -> Outcome:
    """Tokens/s of the median of 8 steps; the first two compile."""
    shape = TINY if bench.smoke else SHAPES[name]
    model, example = model_of(bench, shape, fast=True), example_of(bench, _fit(bench, windows))
    optimizer = optimizer_of(model)

    def loss_of() -> Tensor:
        with autocast(bench, not bench.smoke):
            return mean_loss(model, example)

    return True, timed(bench, shape, loss_of, model, optimizer, example.inputs_BT.numel())


def peer(bench: Bench, name: str, windows: int) -> Outcome:
    """The same over transformers' Llama: its attention does not know of documents."""
    try:
        from transformers import LlamaConfig, LlamaForCausalLM
    except ImportError:
        return True, "transformers is not installed: no figure of it"
    shape = TINY if bench.smoke else SHAPES[name]
    config = LlamaConfig(
        vocab_size=bench.vocabulary,
        hidden_size=shape.width,
        intermediate_size=shape.ffn,
        num_hidden_layers=shape.depth,
        num_attention_heads=shape.heads,
        num_key_value_heads=shape.kv_heads,
        tie_word_embeddings=shape.tied,
        max_position_embeddings=bench.length,
        attn_implementation="sdpa",
    )
    model: Any = LlamaForCausalLM(config).to(bench.device)
    if not bench.smoke:
        model.compile()
    tokens_BT = windows_of(bench, _fit(bench, windows))[0][:, :-1].to(bench.device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)

    def loss_of() -> Tensor:
        with autocast(bench, not bench.smoke):
            loss: Tensor = model(input_ids=tokens_BT, labels=tokens_BT).loss
            return loss

    return True, timed(bench, shape, loss_of, model, optimizer, tokens_BT.numel())


def _fit(bench: Bench, windows: int) -> int:
    return 2 if bench.smoke else windows


def timed(
    bench: Bench,
    shape: Shape,
    loss_of: Callable[[], Tensor],
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    num_tokens: int,
) -> str:
    steps(bench, loss_of, model, optimizer, 2)
    seconds = []
    for _ in range(2 if bench.smoke else 8):
        began = time.perf_counter()
        steps(bench, loss_of, model, optimizer, 1)  # reads the loss: the step is over
        if bench.device.type == "cuda":
            torch.cuda.synchronize()
        seconds.append(time.perf_counter() - began)
    rate = num_tokens / sorted(seconds)[len(seconds) // 2]
    if bench.peak is None:
        return f"{rate:,.0f} tokens/s"
    size = multiplied_parameters(shape, bench.vocabulary)
    attention = shape.heads * shape.head_width
    half, full = (
        rate * flops(size, shape.depth, attention, bench.length) / bench.peak
        for flops in (flops_per_token, flops_per_token_full)
    )
    memory = torch.cuda.max_memory_allocated() / 2**30 if bench.device.type == "cuda" else 0
    return f"{rate:,.0f} tokens/s, MFU {half:.1%} (all scores: {full:.1%}), {memory:.1f} GiB"


if __name__ == "__main__":
    sys.exit(main())
