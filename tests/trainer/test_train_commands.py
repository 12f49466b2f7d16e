"""`assay train` and `assay evaluate` as a user calls them."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
import tiny_run

from trainer import cli, rescore

ROOT = Path(cli.__file__).resolve().parents[1]

Write = Callable[..., Path]
Captured = pytest.CaptureFixture[str]


def test_train_twice_then_evaluate(data: Path, run_yaml: Write, capsys: Captured) -> None:
    path = str(run_yaml("a"))
    folder = Path(path).parent / "runs" / "a"
    command = ["train", path, "--set", "tokens=256", "--set", "schedule.decay=0.5"]
    assert cli.main(command) == 0
    first = capsys.readouterr().err.splitlines()
    assert first[0].startswith("step 1/2  loss 5.6")
    assert first[0].split("  ")[1].endswith(" nats/token")
    assert re.fullmatch(r"step 2: bits per byte: en \d\.\d{4}, zh \d\.\d{4}", first[-3])
    assert first[-2].startswith(f"{folder}: 256 tokens in 2 steps took 0:0")
    scores = folder / "evaluations.parquet"
    where = f"bits per byte by set: assay evaluate {folder}; by document: {scores}"
    assert first[-1] == where
    assert cli.main(command) == 0
    again = capsys.readouterr().err.splitlines()
    assert again[0].startswith(f"{folder}: 256 tokens in 2 steps had finished before; last loss")
    assert again[0].endswith(" nats per token")
    assert again[1:] == [where]


@pytest.fixture
def scored(data: Path, run_yaml: Write, capsys: Captured) -> Path:
    """Folder of a finished run of two steps."""
    path = str(run_yaml("a", tokens=256, checkpoint={"every": 128}, evaluate={"every": 128}))
    assert cli.main(["train", path]) == 0
    capsys.readouterr()
    return Path(path).parent / "runs" / "a"


def test_scores_that_stand_are_not_made_again(
    scored: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rescore, "_score", None)  # would fail if it were called
    assert cli.main(["evaluate", str(scored), "--by", "language"]) == 0
    shown = capsys.readouterr()
    header, en, zh, _, how, which = shown.out.splitlines()
    assert shown.err == ""
    assert header == "language  bits per byte  documents  bytes"
    assert [line.split()[0::2] for line in (en, zh)] == [["en", "2"], ["zh", "2"]]
    assert how == (
        "a row: all bits of its documents / all their bytes, so long ones weigh more; a text that "
        "stands in several sets counts once"
    )
    assert which == (
        f"{scored / 'checkpoints' / 'step-00000002'}: as scored before, on the same held-out sets; "
        f"by document: {scored / 'evaluations.parquet'}"
    )


def test_new_held_out_sets_are_scored_and_named(
    scored: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = scored / "evaluations.parquet"
    before = pq.read_table(path).sort_by("step")
    sets = [*tiny_run.heldout_sets(), *tiny_run.heldout_sets(["新的。"], "zh")]
    monkeypatch.setattr(rescore, "heldout_sets", lambda run: sets)
    assert cli.main(["evaluate", str(scored)]) == 0
    shown = capsys.readouterr()
    assert shown.err == "new held-out sets: c/zh/s; scoring\n"
    assert f"{scored}/checkpoints/step-00000002: new held-out sets: c/zh/s; by " in shown.out
    after = pq.read_table(path).sort_by("step")
    first, second = (pc.field("step") == step for step in (1, 2))
    assert after.filter(first).equals(before.filter(first))
    assert after.filter(second)["set"].to_pylist() == ["c/en/s"] * 4 + ["c/zh/s"]
    assert after.filter(second)["nats"][:4].equals(before.filter(second)["nats"][:4])


def test_evaluating_a_checkpoint_gives_the_bits_of_the_run(scored: Path, capsys: Captured) -> None:
    path = scored / "evaluations.parquet"
    before = pq.read_table(path).sort_by("step")
    pq.write_table(before.filter(pc.field("step") == 2), path)
    assert cli.main(["evaluate", str(scored), "--checkpoint", "step-00000001"]) == 0
    assert capsys.readouterr().err == "step 1 has no scores yet; scoring\n"
    assert pq.read_table(path).sort_by("step").equals(before)
    assert cli.main(["evaluate", str(scored), "--checkpoint", "step-7"]) == 2
    assert capsys.readouterr().err.endswith(
        f"{scored / 'checkpoints' / 'step-7'}: no manifest.json; the checkpoint was never "
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


@pytest.mark.parametrize(
    ("verb", "message"),
    [
        ("train run.yaml", "run.yaml: unknown key `tokns` (value '2M'); did you mean `tokens`?"),
        ("train good.yaml", "mixture.yaml: unknown key `sead` (value 1); did you mean `seed`?"),
        ("evaluate nope", "nope holds no run (no run.json); train one with `assay train`"),
    ],
)
def test_what_is_refused_is_refused_without_torch(tmp_path: Path, verb: str, message: str) -> None:
    run = "mixture: mixture.yaml\nmodel: 0.4M\ntokens: 2M\n"
    (tmp_path / "good.yaml").write_text(run)
    (tmp_path / "run.yaml").write_text(run + "tokns: 2M\n")
    (tmp_path / "mixture.yaml").write_text(
        "corpora: {c: c}\nsequence_length: 8\nsources: {s: {from: c}}\nsead: 1\n"
    )
    code = (
        "import sys; from trainer import cli; code = cli.main(sys.argv[1:]); "
        "print(code, [name for name in ('torch', 'apache_beam') if name in sys.modules])"
    )
    found = subprocess.run(
        [sys.executable, "-c", code, *verb.split()],
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert found.stdout == "2 []\n"
    assert found.stderr.endswith(f"{message}\n")


@pytest.mark.parametrize("verb", ["train", "evaluate"])
def test_help_shows_an_example(verb: str, capsys: Captured) -> None:
    with pytest.raises(SystemExit) as caught:
        cli.main([verb, "--help"])
    assert caught.value.code == 0
    assert re.search(rf"examples?:\n  assay {verb} run", capsys.readouterr().out)
