"""Scores of checkpoints by another process, beside the run."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest
import tiny_run

from pipeline import tokenizer
from pipeline.files import read_json, write_json
from trainer import cli, follow

Write = Callable[..., Path]
TASK = {"context": "the cat", "choices": [" sat", " 我们"], "answer": 0}


@pytest.fixture
def run(data: Path, run_yaml: Write, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    """A finished run of four steps with all its checkpoints, ."""
    changes = {"checkpoint": {"every": 128, "keep": 9}, "evaluate": {"every": 128}}
    path = run_yaml("a", tokens=512, **changes)
    assert cli.main(["train", str(path)]) == 0
    capsys.readouterr()
    return tmp_path / "runs" / "a"


def test_all_checkpoints_are_scored_as_the_run_scores_them(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = run / "evaluations.parquet"
    expected = pq.read_table(table).sort_by("step")
    table.unlink()
    assert cli.main(["evaluate", str(run), "--follow"]) == 0
    found = pq.read_table(table).sort_by("step")
    assert found.equals(expected)
    assert capsys.readouterr().err.count("bits per byte: en ") == 4
    assert not (run / "evaluating").exists()


def test_a_checkpoint_that_the_run_deletes_is_scored_all_the_same(
    run: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (run / "evaluations.parquet").unlink()
    write_json(run / "run.json", {**read_json(run / "run.json"), "status": "running"})
    looks = []

    def goes_on(seconds: float) -> None:
        looks.append(seconds)
        write_json(run / "run.json", {**read_json(run / "run.json"), "status": "finished"})

    score = follow.scores_of

    def deletes_first(*arguments: object) -> object:
        shutil.rmtree(run / "checkpoints", ignore_errors=True)
        return score(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(follow.time, "sleep", goes_on)
    monkeypatch.setattr(follow, "scores_of", deletes_first)
    assert cli.main(["evaluate", str(run), "--follow"]) == 0
    steps = set(pq.read_table(run / "evaluations.parquet")["step"].to_pylist())
    assert steps == {1, 2, 3, 4}
    assert looks == [follow.SECONDS]
    assert "waiting for the next checkpoint" in capsys.readouterr().err


def test_tasks_are_asked_in_the_run_and_after_it(
    data: Path, run_yaml: Write, tmp_path: Path, capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    (tmp_path / "cats.jsonl").write_text(json.dumps(TASK))
    spec = json.loads((data / "tokenizer.json").read_text())
    ends = {"eos_id": 0, "tokenizer": tokenizer.name_of(spec, None, 0)}
    tiny_run.use(data, monkeypatch.setattr, **ends)
    path = run_yaml("a", tokens=256, evaluate={"every": 128, "tasks": ["cats.jsonl"]})
    assert cli.main(["train", str(path)]) == 0
    answers = tmp_path / "runs" / "a" / "answers.parquet"
    before = pq.read_table(answers)
    assert before["step"].to_pylist() == [1, 1, 2, 2]
    assert before["task"].to_pylist() == ["cats"] * 4
    plan = tmp_path / "runs" / "a" / "plan.json"
    capsys.readouterr()
    assert json.loads(plan.read_text())["eos_id"] == 0
    assert cli.main(["evaluate", str(tmp_path / "runs" / "a")]) == 0
    shown = capsys.readouterr()
    assert "scoring" not in shown.err
    row = next(line.split() for line in shown.out.splitlines() if line.startswith("cats"))
    assert row[:2] == ["cats", "1"]
    other = tmp_path / "dogs.jsonl"
    other.write_text(json.dumps({**TASK, "answer": 1}))
    command = ["evaluate", str(tmp_path / "runs" / "a"), "--task", str(other)]
    assert cli.main(command) == 0
    assert "step 2: scoring dogs" in capsys.readouterr().err
    rows = [row for row in pq.read_table(answers).to_pylist() if row["step"] == 2]
    cats, dogs = ([row for row in rows if row["task"] == name] for name in ("cats", "dogs"))
    assert [row["nats"] for row in dogs] == pytest.approx([row["nats"] for row in cats])
