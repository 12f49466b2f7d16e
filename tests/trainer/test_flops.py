"""FLOPs by both conventions, and the peaks of devices by their names."""

from __future__ import annotations

import pytest

from trainer.flops import flops_per_token, flops_per_token_full, peak_of


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
