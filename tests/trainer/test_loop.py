"""A whole run: its record, resumption to the same bits, refusals, and what stops it."""

from __future__ import annotations

import io
import json
import os
import shutil
import signal
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from pipeline.config import ConfigError
from trainer import checkpoint, loop
from trainer.loop import RunResult, TrainingError, steps, train
from trainer.metrics import Progress
from trainer.settings import load_run

Write = Callable[..., Path]
Forked = Callable[..., list[int]]
SHORT = {"tokens": 8 * 32}  # two steps


def _train(path: Path, **options: Any) -> RunResult:
    return train(load_run(path), progress=Progress(io.StringIO()), **options)


def _losses(folder: Path) -> list[tuple[int, float, float]]:
    rows = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    return [(row["step"], row["loss"], row["gradient_norm"]) for row in rows]


def test_a_run_leaves_a_record(data: Path, run_yaml: Write) -> None:
    result = _train(run_yaml("a"))
    assert (result.steps, result.tokens, result.skipped) == (20, 79 * 32, False)
    record = json.loads((result.folder / "run.json").read_text())
    assert (record["status"], record["parameters"]) == ("finished", 9168)
    assert record["totals"]["bits_per_byte"] == result.bits_per_byte
    assert list(result.bits_per_byte) == ["c/en/s", "c/zh/s"]
    losses = _losses(result.folder)
    assert [step for step, _, _ in losses] == list(range(1, 21))
    assert losses[-1][1] == result.loss
    assert sum(loss for _, loss, _ in losses[-4:]) / 4 < losses[0][1] - 0.15
    scores = pq.read_table(result.folder / "evaluations.parquet")
    assert sorted(set(scores["step"].to_pylist())) == [8, 16, 20]
    kept = sorted(path.name for path in (result.folder / "checkpoints").iterdir())
    assert kept == ["latest", "step-00000016", "step-00000020"]
    assert os.readlink(result.folder / "checkpoints" / "latest") == "step-00000020"


def test_a_finished_run_is_not_run_again(
    data: Path, run_yaml: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = run_yaml("a", **SHORT)
    first = _train(path)
    monkeypatch.setattr(loop, "build_model", None)  # would fail if it were called
    again = _train(path)
    assert again == RunResult(**{**vars(first), "skipped": True})


def test_killed_and_resumed_the_losses_are_the_same_bits(
    data: Path, run_yaml: Write, tmp_path: Path, forked: Forked, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = _train(run_yaml("whole"))
    path, log = run_yaml("killed"), loop.append_log

    def killed_after_11_steps(where: Path, row: dict[str, Any]) -> None:
        log(where, row)
        if row["step"] == 11:
            os.kill(os.getpid(), signal.SIGKILL)

    with monkeypatch.context() as patch:
        patch.setattr(loop, "append_log", killed_after_11_steps)
        assert forked(lambda: _train(path)) == [-signal.SIGKILL]
    folder = tmp_path / "runs" / "killed"
    assert len(_losses(folder)) == 11
    assert json.loads((folder / "run.json").read_text())["status"] == "running"
    resumed = _train(path)  # from step 8
    assert _losses(folder) == _losses(whole.folder)
    assert resumed.bits_per_byte == whole.bits_per_byte


def test_a_damaged_checkpoint_is_passed_over(data: Path, run_yaml: Write) -> None:
    path = run_yaml("a")
    whole = _train(path)
    losses = _losses(whole.folder)
    record = whole.folder / "run.json"
    record.write_text(record.read_text().replace('"finished"', '"running"'))
    newest = whole.folder / "checkpoints" / "step-00000020"
    victim = newest / "__0_0.distcp"
    content = bytearray(victim.read_bytes())
    content[len(content) // 2] ^= 1
    victim.write_bytes(content)
    assert checkpoint.damage(newest) == f"{victim}: contents differ from the hash in manifest.json"
    _train(path)
    assert _losses(whole.folder) == losses
    assert checkpoint.damage(newest) is None


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"learning_rate": 0.02}, "a run with `learning_rate: 0.01`, these settings say 0.02"),
        ({"schedule": {"decay": 0.5}}, "a run with `schedule.decay: 0.2`, these settings say 0.5"),
        ({"tokens": 4 * 32}, "a run with `tokens: 256`, these settings say 128"),
    ],
)
def test_settings_that_change_the_loss_are_refused(
    data: Path, run_yaml: Write, changes: dict[str, Any], message: str
) -> None:
    _train(run_yaml("a", **SHORT))
    with pytest.raises(ConfigError) as caught:
        _train(run_yaml("a", **{**SHORT, **changes}))
    assert message in str(caught.value)
    assert "--fresh" in str(caught.value)


def test_other_settings_may_change(data: Path, run_yaml: Write) -> None:
    _train(run_yaml("a", **SHORT))
    free = {"micro_batch": 4, "checkpoint": {"keep": 1}, "threads": 1}
    assert _train(run_yaml("a", **SHORT, **free)).skipped


def test_fresh_starts_over(data: Path, run_yaml: Write) -> None:
    folder = _train(run_yaml("a", **SHORT)).folder
    (folder / "notes.txt").write_text("mine")
    result = _train(run_yaml("a", tokens=4 * 32), fresh=True)
    assert (result.steps, len(_losses(folder))) == (1, 1)
    assert (folder / "notes.txt").read_text() == "mine"


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [("tokenizer", "u" * 16, "on another tokenizer"), ("seed", 5, "on another data (the plan")],
)
def test_a_plan_of_other_data_is_refused(
    data: Path, run_yaml: Write, monkeypatch: pytest.MonkeyPatch, key: str, value: Any, message: str
) -> None:
    _train(run_yaml("a", **SHORT))
    plan = loop.make_plan("mixture.yaml", 8 * 32)
    monkeypatch.setattr(loop, "make_plan", lambda path, tokens: replace(plan, **{key: value}))
    with pytest.raises(ConfigError, match="key `mixture`: .* holds a run") as caught:
        _train(run_yaml("a", **SHORT))
    assert message in str(caught.value)


def test_a_loss_that_is_no_number_stops_the_run(data: Path, run_yaml: Write) -> None:
    with pytest.raises(TrainingError) as caught:
        _train(run_yaml("a", learning_rate=1e30, grad_clip=1e30))
    message = str(caught.value)
    assert ": step 2: loss 5.6" in message
    assert ", gradient norm nan; nothing was updated. It saw windows 4 to 7, with " in message
    assert "documents: s: " in message
    assert "`assay inspect`" in message


def test_steps_are_whole_batches_and_a_rest(data: Path, run_yaml: Write) -> None:
    run = load_run(run_yaml("a", tokens=10 * 32, batch_tokens=4 * 32 + 31))
    planned = steps(run, loop.make_plan("m", run.tokens))
    assert [(s.position, s.windows, s.tokens, s.last) for s in planned] == [
        (0, 4, 128, False),
        (4, 4, 256, False),
        (8, 2, 320, True),
    ]
    assert [s.reaches("final") for s in planned] == [False, False, True]
    assert [s.reaches(200) for s in planned] == [False, True, True]
    assert [s.reaches(10) for s in planned] == [True, True, True]


def _rank(rank: int, size: int, path: Path) -> None:
    """Train as torchrun would let this process do it."""
    address = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(20_000 + os.getppid() % 40_000)}
    os.environ.update({"RANK": str(rank), "WORLD_SIZE": str(size), **address})
    _train(path)


def test_two_processes_have_the_losses_of_one(
    data: Path, run_yaml: Write, tmp_path: Path, forked: Forked
) -> None:
    """FSDP2 over gloo; the last batch has 3 windows, so one rank gets a blank one. Then the
    checkpoint of two processes is loaded by one (torchtitan #811)."""
    one = _train(run_yaml("one"))
    path = run_yaml("two", parallel={"fsdp": 2})
    assert forked(*(lambda rank=rank: _rank(rank, 2, path) for rank in range(2))) == [0, 0]
    folder = tmp_path / "runs" / "two"
    for ours, theirs in zip(_losses(folder), _losses(one.folder), strict=True):
        assert ours == pytest.approx(theirs, abs=1e-5)
    totals = json.loads((folder / "run.json").read_text())["totals"]
    assert totals["bits_per_byte"] == pytest.approx(one.bits_per_byte, abs=1e-5)

    record = folder / "run.json"
    record.write_text(record.read_text().replace('"finished"', '"running"'))
    shutil.rmtree(folder / "checkpoints" / "step-00000020")
    resumed = _train(run_yaml("two"))
    assert resumed.loss == pytest.approx(one.loss, abs=1e-5)


def test_a_wrong_number_of_processes_is_refused(data: Path, run_yaml: Write) -> None:
    with pytest.raises(ConfigError, match="key `parallel.fsdp`: 4 processes wanted, 1 started"):
        _train(run_yaml("a", parallel={"fsdp": 4}))
