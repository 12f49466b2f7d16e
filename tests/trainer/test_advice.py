"""The laws' values for a known size, and what is said of their ranges."""

from __future__ import annotations

import pytest

from trainer import cli
from trainer.advice import LAWS
from trainer.flops import hidden_parameters
from trainer.shapes import PRESETS


def test_one_billion_parameters_and_twenty_billion_tokens(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert cli.main(["advise", "--parameters", "1B", "--tokens", "20B"]) == 0
    lines = capsys.readouterr().out.splitlines()
    said = {line[:22].strip(): line[22:].split()[:3] for line in lines[2:]}
    assert said == {
        "Step Law": ["9.96e-04", "441,892", "yes:"],
        "DeepSeek": ["9.64e-04", "1,079,650", "NO:"],
        "Moonlight": ["9.11e-04", "1,323,362", "yes:"],
        "OLMo ladder (Porian)": ["1.12e-03", "1,444,888", "NO:"],
        "nanochat": ["-", "1,560,188", "yes:"],
    }


def test_large_runs_show_practice(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["advise", "--parameters", "7B", "--tokens", "2T"]) == 0
    shown = capsys.readouterr().out
    assert "Llama 2 7B                  3.00e-04       4,000,000" in shown
    assert not any(law.holds(7e9, 2e12) for law in LAWS)


def test_one_of_the_two_is_asked(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["advise", "--parameters", "7B"]) == 2
    assert "give run.yaml, or both --parameters and --tokens" in capsys.readouterr().err


def test_parameters_without_embeddings() -> None:
    assert hidden_parameters(PRESETS["0.4M"]) == 2 * (2 * 64 * 64 + 2 * 64 * 32 + 3 * 64 * 192)
