"""A run that begins at a checkpoint of another: same data, continuous rate, parent untouched."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from tiny_run import losses, train

from pipeline.config import ConfigError
from pipeline.files import file_hash
from trainer.settings import load_run

Write = Callable[..., Path]
BATCH = 4 * 32
STABLE = {"schedule": {"shape": "constant", "warmup": 2 * BATCH}}
KEPT = {"checkpoint": {"every": 4 * BATCH, "keep": 9}}


@pytest.fixture
def parent(data: Path, run_yaml: Write) -> Path:
    return train(run_yaml("main", **STABLE, **KEPT)).folder


def branch(folder: Path, name: str, **changes: Any) -> Path:
    path = folder / f"{name}.yaml"
    keys = {"from": "runs/main", "at": "step-8", "decay": 6 * BATCH}
    path.write_text(yaml.safe_dump({"branch": keys, **changes}))
    return path


def rows(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]


def test_it_goes_on_where_the_parent_was(parent: Path, tmp_path: Path) -> None:
    before = {p: file_hash(p) for p in sorted(parent.rglob("*")) if p.is_file()}
    result = train(branch(tmp_path, "decay"))
    assert before == {p: file_hash(p) for p in sorted(parent.rglob("*")) if p.is_file()}
    assert result.tokens == 14 * BATCH
    found, known = rows(result.folder), rows(parent)
    assert [row["step"] for row in found] == list(range(9, 15))
    assert found[0]["loss"] == known[8]["loss"]  # same weights, same windows
    rates = [row["learning_rate"] for row in found]
    assert known[7]["learning_rate"] == 0.01
    assert rates == pytest.approx([0.01 * (5.5 - at) / 6 for at in range(6)])
    record = json.loads((result.folder / "run.json").read_text())
    assert record["origin"]["run"] == str(parent)
    assert (record["origin"]["checkpoint"], record["origin"]["tokens"]) == (
        "step-00000008",
        8 * BATCH,
    )
    assert record["settings"]["branch"]["from"] == str(parent)
    assert train(branch(tmp_path, "decay")).skipped


def test_other_keys_are_those_of_the_parent_or_its_own(parent: Path, tmp_path: Path) -> None:
    run = load_run(
        branch(tmp_path, "b", weight_decay=0.5, batch_tokens=2 * BATCH, checkpoint={"keep": 1})
    )
    known = json.loads((parent / "run.json").read_text())["settings"]
    assert (run.weight_decay, run.learning_rate) == (0.5, known["learning_rate"])
    assert run.batch_tokens == ((0, BATCH), (8 * BATCH, 2 * BATCH))
    assert (run.checkpoint.keep, run.checkpoint.every) == (1, 4 * BATCH)
    assert run.output == str(tmp_path / "runs" / "b")
    result = train(tmp_path / "b.yaml")
    assert [step for step, _, _ in losses(result.folder)] == [9, 10, 11]


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"at": "step-9"}, "step-00000009 does not exist; there are step-00000020, step-00000016"),
        ({"at": "newest"}, "'newest' names no checkpoint, as `step-400` does; there are step-0000"),
        ({"at": "step-20"}, "step-00000020 is the end of its run, whose last batch was cut short"),
        ({"from": "runs/other"}, "other holds no run (no run.json)"),
    ],
)
def test_what_cannot_be_a_beginning(
    parent: Path, tmp_path: Path, keys: dict[str, str], message: str
) -> None:
    path = tmp_path / "b.yaml"
    whole = {"from": "runs/main", "at": "step-8", "decay": BATCH, **keys}
    path.write_text(yaml.safe_dump({"branch": whole}))
    with pytest.raises(ConfigError) as caught:
        load_run(path)
    assert message in str(caught.value)


def test_its_length_is_that_of_the_decay(parent: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="a branch is as long as `branch.decay` says"):
        load_run(branch(tmp_path, "b", tokens="1M"))
