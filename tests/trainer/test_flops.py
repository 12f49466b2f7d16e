"""FLOPs by both conventions, and the peaks of devices by their names."""

from __future__ import annotations

from typing import Any

import pytest

from trainer.figures import Speed, communication_share
from trainer.flops import flops_per_token, flops_per_token_full, multiplied_parameters, peak_of
from trainer.model import Decoder, num_parameters
from trainer.shapes import Shape


def test_flops_of_a_token_by_hand() -> None:
    assert flops_per_token(100_000_000, 12, 768, 2048) == 600_000_000 + 113_246_208
    assert flops_per_token_full(100_000_000, 12, 768, 2048) == 600_000_000 + 2 * 113_246_208


def test_llama_3_8b_at_torchtitans_speed() -> None:
    """6,667 tokens/s on an H100 (torchtitan's page) is 39.0 % with all scores counted, 34.7 % with
    the causal half: the reference has both."""
    without_embedding = 8_030_261_248 - 128_256 * 4096
    full = flops_per_token_full(without_embedding, 32, 4096, 8192) * 6667 / 989e12
    causal = flops_per_token(without_embedding, 32, 4096, 8192) * 6667 / 989e12
    assert full == pytest.approx(0.390, abs=0.001)
    assert causal == pytest.approx(0.347, abs=0.001)


@pytest.mark.parametrize(
    ("name", "peak"),
    [
        ("NVIDIA H200", 989e12),
        ("NVIDIA H100 80GB HBM3", 989e12),
        ("NVIDIA H100 PCIe", 756e12),
        ("NVIDIA A100-SXM4-80GB", 312e12),
        ("NVIDIA L40S", 362e12),
        ("NVIDIA L4", 121e12),
        ("NVIDIA H20", 148e12),
        ("NVIDIA GB200", 2.5e15),
        ("NVIDIA GeForce RTX 4090", 165.2e12),
        ("Radeon", None),
    ],
)
def test_peaks(name: str, peak: float | None) -> None:
    assert peak_of(name) == peak


@pytest.mark.parametrize(
    "more",
    [{}, {"tied": False}, {"qk_norm": True}, {"qkv_bias": True, "head": 12}, {"kv_heads": 4}],
    ids=str,
)
def test_parameters_of_a_shape_are_those_of_its_model(more: dict[str, Any]) -> None:
    shape = Shape(**{"width": 32, "depth": 3, "heads": 4, "kv_heads": 2, "ffn": 48, **more})
    untied = 0 if shape.tied else 61 * 32  # the input embedding is a look-up
    assert multiplied_parameters(shape, 61) == num_parameters(Decoder(shape, 61)) - untied


def test_figures_need_a_peak() -> None:
    assert Speed(6, 12, None).told(10.0) == {}
    assert Speed(6, 12, 240.0).told(10.0) == {"mfu": 0.25, "mfu_full": 0.5}


def test_share_of_communication_counts_no_time_twice() -> None:
    events = [
        ("aten::mm", 0, 6), ("gloo:all_reduce", 2, 4), ("gloo:all_gather", 3, 5),
        ("nccl:all_gather", 8, 9), ("ncclDevKernel_AllGather", 8, 9), ("aten::mul", 9, 10),
    ]  # fmt: skip
    assert communication_share(events) == pytest.approx(0.4)
    assert communication_share([]) == 0.0
