"""`assay train` and `assay evaluate` as a user calls them."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from trainer import cli

Write = Callable[..., Path]
Captured = pytest.CaptureFixture[str]


def test_train_twice_then_evaluate(data: Path, run_yaml: Write, capsys: Captured) -> None:
    path = str(run_yaml("a"))
    folder = Path(path).parent / "runs" / "a"
    command = ["train", path, "--set", "tokens=256", "--set", "schedule.decay=0.5"]
    assert cli.main(command) == 0
    first = capsys.readouterr().err.splitlines()
    assert first[-1].startswith(f"{folder}: 256 tokens in 2 steps took 0:0")
    assert first[0].startswith("step 1/2  loss 5.6")
    assert cli.main(command) == 0
    again = capsys.readouterr().err
    assert again.startswith(f"{folder}: 256 tokens in 2 steps had finished before; last loss 5.6")

    assert cli.main(["evaluate", str(folder), "--by", "language"]) == 0
    lines = capsys.readouterr().out.splitlines()
    checkpoint = folder / "checkpoints" / "step-00000002"
    assert [line.split("  ")[1] for line in lines[:2]] == ["en", "zh"]
    assert lines[2].startswith(f"bits per byte of {checkpoint}; by document: ")
    scores = pq.read_table(folder / "evaluations.parquet")
    assert scores["step"].to_pylist() == [2] * 6  # the same rows, not twice


def test_evaluating_a_checkpoint_gives_the_bits_of_the_run(
    data: Path, run_yaml: Write, capsys: Captured
) -> None:
    path = str(run_yaml("a", tokens=256, checkpoint={"every": 128}, evaluate={"every": 128}))
    folder = Path(path).parent / "runs" / "a"
    assert cli.main(["train", path]) == 0
    before = pq.read_table(folder / "evaluations.parquet").sort_by("step")
    assert cli.main(["evaluate", str(folder), "--checkpoint", "step-00000001"]) == 0
    assert pq.read_table(folder / "evaluations.parquet").sort_by("step").equals(before)
    assert cli.main(["evaluate", str(folder), "--checkpoint", "step-7"]) == 2
    assert capsys.readouterr().err.endswith(
        f"{folder / 'checkpoints' / 'step-7'}: no manifest.json; the checkpoint was never "
        "completed; checkpoints here: step-00000001, step-00000002\n"
    )


def test_mistakes_are_one_message(data: Path, run_yaml: Write, capsys: Captured) -> None:
    path = run_yaml("a")
    assert cli.main(["train", str(path), "--set", "tokens"]) == 2
    message = "assay train: --set tokens: expected KEY=VALUE, for instance --set tokens=500k\n"
    assert capsys.readouterr().err == message
    assert cli.main(["evaluate", str(path.parent)]) == 2
    assert capsys.readouterr().err == (
        f"assay evaluate: {path.parent} holds no run (no run.json); train one with `assay train`\n"
    )


def test_a_finished_run_is_told_without_torch() -> None:
    code = "import sys, trainer.commands; print('torch' in sys.modules)"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout == "False\n"


@pytest.mark.parametrize("verb", ["train", "evaluate"])
def test_help_shows_an_example(verb: str, capsys: Captured) -> None:
    with pytest.raises(SystemExit) as caught:
        cli.main([verb, "--help"])
    assert caught.value.code == 0
    assert f"example:\n  assay {verb} run" in capsys.readouterr().out
