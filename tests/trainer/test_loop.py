"""A whole run: its record, resumption to the same bits, refusals, and what stops it."""

from __future__ import annotations

import fcntl
import io
import json
import os
import shutil
import signal
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import clean_process
import pyarrow.parquet as pq
import pytest
import tiny_run_jobs as jobs
from tiny_run import losses, train

from mixtures.plan import Plan
from mixtures.planned_phases import PlannedPhase
from pipeline.config import ConfigError
from pipeline.corpus import CorpusError
from trainer import data as reads
from trainer import loop, record, saved
from trainer.batches import steps
from trainer.loop import TrainingError
from trainer.metrics import Progress
from trainer.record import RunResult
from trainer.settings import load_run

Write = Callable[..., Path]
SHORT = {"tokens": 8 * 32}  # two steps


def test_a_run_leaves_a_record(data: Path, run_yaml: Write) -> None:
    result = train(run_yaml("a"))
    assert (result.steps, result.tokens, result.skipped) == (20, 79 * 32, False)
    record = json.loads((result.folder / "run.json").read_text())
    assert (record["status"], record["parameters"]) == ("finished", 9168)
    assert record["totals"]["bits_per_byte"] == result.bits_per_byte
    assert list(result.bits_per_byte) == ["c/en/s", "c/zh/s"]
    rows = losses(result.folder)
    assert [step for step, _, _ in rows] == list(range(1, 21))
    assert rows[-1][1] == result.loss
    assert sum(loss for _, loss, _ in rows[-4:]) / 4 < rows[0][1] - 0.15
    scores = pq.read_table(result.folder / "evaluations.parquet")
    assert sorted(set(scores["step"].to_pylist())) == [8, 16, 20]
    kept = sorted(path.name for path in (result.folder / "checkpoints").iterdir())
    assert kept == ["latest", "step-00000016", "step-00000020"]
    assert os.readlink(result.folder / "checkpoints" / "latest") == "step-00000020"


def test_a_finished_run_is_not_run_again(
    data: Path, run_yaml: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = run_yaml("a", **SHORT)
    first = train(path)
    monkeypatch.setattr(loop, "build_model", None)  # would fail if it were called
    again = train(path)
    assert again == RunResult(**{**vars(first), "skipped": True})


def test_killed_and_resumed_the_losses_are_the_same_bits(
    data: Path, run_yaml: Write, tmp_path: Path
) -> None:
    whole = train(run_yaml("whole"))
    path = run_yaml("killed")
    [code] = clean_process.run(tmp_path, (jobs.train_killed_after, (11, data, path)))
    assert code == -signal.SIGKILL
    folder = tmp_path / "runs" / "killed"
    assert len(losses(folder)) == 11
    assert json.loads((folder / "run.json").read_text())["status"] == "running"
    # mosaicml/streaming #781: what a killed run leaves behind must not stop the next
    assert int((folder / ".lock").read_text()) != os.getpid()
    (folder / "checkpoints" / ".step-00000012.tmp").mkdir()
    resumed = train(path)  # from step 8
    assert losses(folder) == losses(whole.folder)
    assert resumed.bits_per_byte == whole.bits_per_byte
    kept = sorted(path.name for path in (folder / "checkpoints").iterdir())
    assert kept == ["latest", "step-00000016", "step-00000020"]


@pytest.mark.parametrize("after", [False, True])
def test_killed_around_a_checkpoint_no_evaluation_is_lost(
    data: Path, run_yaml: Write, tmp_path: Path, after: bool
) -> None:
    changes = {"tokens": 12 * 4 * 32}
    whole = train(run_yaml("whole", **changes))
    path = run_yaml("killed", **changes)
    [code] = clean_process.run(tmp_path, (jobs.train_killed_at_save, (8, after, data, path)))
    assert code == -signal.SIGKILL
    killed = train(path)
    scores = [
        pq.read_table(folder / "evaluations.parquet") for folder in (killed.folder, whole.folder)
    ]
    assert sorted(set(scores[1]["step"].to_pylist())) == [8, 12]
    assert scores[0].equals(scores[1])


def test_two_at_once_do_not_write_into_each_other(data: Path, run_yaml: Write) -> None:
    path = run_yaml("a", **SHORT)
    folder = path.parent / "runs" / "a"
    folder.mkdir(parents=True)
    with open(folder / ".lock", "w") as other:  # flock asks which open file, not which process
        fcntl.flock(other, fcntl.LOCK_EX)
        other.write("4711\n")
        other.flush()
        for fresh in (False, True):
            with pytest.raises(CorpusError) as caught:
                train(path, fresh=fresh)
            assert str(caught.value) == (
                f"{folder}: another assay process writes here (process 4711); wait for it, or "
                "stop it and call again: what it finished is kept"
            )
        assert [file.name for file in folder.iterdir()] == [".lock"]
    assert train(path).steps == 2
    assert (folder / ".lock").read_text() == f"{os.getpid()}\n"


def test_a_damaged_checkpoint_is_passed_over(data: Path, run_yaml: Write) -> None:
    path = run_yaml("a")
    whole = train(path)
    before = losses(whole.folder)
    _unfinish(whole.folder)
    newest = whole.folder / "checkpoints" / "step-00000020"
    victim = newest / "__0_0.distcp"
    content = bytearray(victim.read_bytes())
    content[len(content) // 2] ^= 1
    victim.write_bytes(content)
    assert saved.damage(newest) == f"{victim}: contents differ from the hash in manifest.json"
    train(path)
    assert losses(whole.folder) == before
    assert saved.damage(newest) is None


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
    train(run_yaml("a", **SHORT))
    with pytest.raises(ConfigError) as caught:
        train(run_yaml("a", **{**SHORT, **changes}))
    assert message in str(caught.value)
    assert "--fresh" in str(caught.value)


def test_other_settings_may_change(data: Path, run_yaml: Write) -> None:
    train(run_yaml("a", **SHORT))
    free = {"micro_batch": 4, "checkpoint": {"keep": 1}, "threads": 2}
    assert train(run_yaml("a", **SHORT, **free)).skipped


def test_fresh_starts_over(data: Path, run_yaml: Write) -> None:
    folder = train(run_yaml("a", **SHORT)).folder
    (folder / "notes.txt").write_text("mine")
    result = train(run_yaml("a", tokens=4 * 32), fresh=True)
    assert (result.steps, len(losses(folder))) == (1, 1)
    assert (folder / "notes.txt").read_text() == "mine"


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [("tokenizer", "u" * 16, "on another tokenizer"), ("seed", 5, "on another data (the plan")],
)
def test_a_plan_of_other_data_is_refused(
    data: Path, run_yaml: Write, monkeypatch: pytest.MonkeyPatch, key: str, value: Any, message: str
) -> None:
    train(run_yaml("a", **SHORT))
    plan = reads.make_plan("mixture.yaml", 8 * 32)
    other = replace(plan, **{key: value})
    monkeypatch.setattr(record, "planned", lambda run, pack: other)
    with pytest.raises(ConfigError, match="key `mixture`: .* holds a run") as caught:
        train(run_yaml("a", **SHORT))
    assert message in str(caught.value)


def test_a_run_goes_on_with_another_mixture(
    data: Path, run_yaml: Write, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Megatron-LM #457: other weights from a step on, and nothing lost or repeated before it."""
    one = reads.make_plan("mixture.yaml", 1)
    both = (one.sources[0], replace(one.sources[0], name="new", selection="1" * 32))

    def mixture(end: int, *shares: tuple[float, ...]) -> None:
        phases = tuple(map(PlannedPhase, (end, 79), shares))

        def plan_of(path: str, tokens: int, pack: bool = True) -> Plan:
            return replace(one, tokens=tokens, sources=both, phases=phases)

        monkeypatch.setattr(reads, "make_plan", plan_of)

    path = run_yaml("a")
    [code] = clean_process.run(tmp_path, (jobs.train_killed_after, (11, data, path)))
    assert code == -signal.SIGKILL
    folder = tmp_path / "runs" / "a"
    before = losses(folder)
    mixture(31, (1, 0), (0, 1))
    with pytest.raises(ConfigError) as caught:
        train(path)
    assert "window 31 came from source 's', and would come from 'new'" in str(caught.value)
    assert "a phase that follows one with `until: 1024`, or more" in str(caught.value)

    mixture(32, (1, 0), (0, 1))  # the checkpoint of step 8 has seen 32 windows
    log = loop.append_log

    def stopped(where: Path, row: dict[str, Any]) -> None:
        log(where, row)
        if row["step"] == 10:
            raise KeyboardInterrupt

    monkeypatch.setattr(loop, "append_log", stopped)
    with pytest.raises(KeyboardInterrupt):
        train(path)
    monkeypatch.setattr(loop, "append_log", log)
    assert [file.stem for file in (folder / "plans").iterdir()] == [one.fingerprint]

    stream = io.StringIO()  # the checkpoint is still that of the former plan
    loop.train(load_run(path), progress=Progress(stream))
    assert "the mixture changed: from window 32 on (1,024 tokens) plan " in stream.getvalue()
    assert losses(folder)[:8] == before[:8]
    assert losses(folder)[8] != before[8]
    assert len(losses(folder)) == 20
    assert train(path).skipped
    whole = losses(train(run_yaml("whole")).folder)
    assert whole == losses(folder)


def test_a_loss_that_is_no_number_stops_the_run(data: Path, run_yaml: Write) -> None:
    with pytest.raises(TrainingError) as caught:
        train(run_yaml("a", learning_rate=1e30, grad_clip=1e30))
    message = str(caught.value)
    assert ": step 2: loss 5.6" in message
    assert ", gradient norm nan; nothing was updated. It saw windows 4 to 7, with " in message
    assert "documents: s: " in message
    assert "`assay inspect`" in message


def test_damaged_windows_are_named_before_the_first_step(data: Path, run_yaml: Write) -> None:
    """A bit of a token id: within the vocabulary no loss would tell, beyond it an IndexError."""
    path = run_yaml("a", **SHORT)
    packed = data / "packed" / "part-00000.arrow"
    whole = packed.read_bytes()
    for at in (len(whole) // 2, len(whole) // 2 + 1):
        packed.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        with pytest.raises(
            ValueError, match=rf"{packed} is not as it .*; delete the folder {data}"
        ):
            train(path)
    assert not (path.parent / "runs" / "a" / "metrics.jsonl").exists()
    packed.write_bytes(whole)
    assert train(path).steps == 2


def test_steps_are_whole_batches_and_a_rest(data: Path, run_yaml: Write) -> None:
    run = load_run(run_yaml("a", tokens=10 * 32, batch_tokens=4 * 32 + 31))
    planned = steps(run.batch_tokens, reads.make_plan("m", run.tokens))
    assert [(s.position, s.windows, s.tokens, s.last) for s in planned] == [
        (0, 4, 128, False),
        (4, 4, 256, False),
        (8, 2, 320, True),
    ]
    assert [s.reaches("final") for s in planned] == [False, False, True]
    assert [s.reaches(200) for s in planned] == [False, True, True]
    assert [s.reaches(10) for s in planned] == [True, True, True]


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        (4 * 32, ""),
        (
            4 * 32 + 31,
            "`batch_tokens: 159` becomes 128: a step takes whole windows, 4 of 32 tokens",
        ),
        (31, "`batch_tokens: 31` becomes 32: a step takes whole windows, 1 of 32 tokens"),
    ],
)
def test_a_batch_that_is_rounded_is_told_once(
    data: Path, run_yaml: Write, asked: int, told: str
) -> None:
    stream = io.StringIO()
    run = load_run(run_yaml("a", batch_tokens=asked, tokens=5 * 32))
    loop.train(run, progress=Progress(stream))
    assert [line for line in stream.getvalue().splitlines() if "batch_tokens" in line] == (
        [told] if told else []
    )


def test_two_processes_have_the_losses_of_one(data: Path, run_yaml: Write, tmp_path: Path) -> None:
    """FSDP2 over gloo, losses and gradient norms (torchtitan #2318, pytorch #88621); the last
    batch has 3 windows, so one rank gets a blank one. Then the checkpoint of two processes is
    loaded by one (torchtitan #811)."""
    one = train(run_yaml("one"))
    path = run_yaml("two", parallel={"fsdp": 2})
    ranks = [(jobs.train_rank, (rank, 2, data, path)) for rank in range(2)]
    assert clean_process.run(tmp_path, *ranks) == [0, 0]
    folder = tmp_path / "runs" / "two"
    for ours, theirs in zip(losses(folder), losses(one.folder), strict=True):
        assert ours == pytest.approx(theirs, abs=1e-5)
    totals = json.loads((folder / "run.json").read_text())["totals"]
    assert totals["bits_per_byte"] == pytest.approx(one.bits_per_byte, abs=1e-5)

    _unfinish(folder)
    shutil.rmtree(folder / "checkpoints" / "step-00000020")
    resumed = train(run_yaml("two"))
    assert resumed.loss == pytest.approx(one.loss, abs=1e-5)


def test_what_is_no_number_on_one_rank_stops_all(
    data: Path, run_yaml: Write, tmp_path: Path
) -> None:
    """WeatherGenerator #2724, metaseq #521: one rank decided alone, and the others hung."""
    path = run_yaml("two", parallel={"fsdp": 2})
    ranks = [(jobs.train_rank_with_nan, (rank, 2, data, path)) for rank in range(2)]
    assert clean_process.run(tmp_path, *ranks) == [0, 0]
    first, second = ((tmp_path / f"rank-{rank}.txt").read_text() for rank in range(2))
    folder = tmp_path / "runs" / "two"
    assert first.startswith(
        f"{folder}: step 3: loss nan, gradient norm nan; nothing was updated. It saw windows 8 to "
        "11, with "
    )
    assert second == first
    assert [step for step, _, _ in losses(folder)] == [1, 2]


def _unfinish(folder: Path) -> None:
    path = folder / "run.json"
    path.write_text(path.read_text().replace('"finished"', '"running"'))


def test_a_wrong_number_of_processes_is_refused(data: Path, run_yaml: Write) -> None:
    with pytest.raises(ConfigError, match="fsdp 4 .* is for 4 processes, 1 started"):
        train(run_yaml("a", parallel={"fsdp": 4}))


def test_figures_of_a_step(data: Path, run_yaml: Write) -> None:
    pytest.importorskip("tensorboard")
    path = run_yaml("a", tokens=384, peak_tflops=0.5, profile=2, trackers=["tensorboard"])
    folder = train(path).folder
    rows = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    for row in rows:
        assert 0 <= row["data_seconds"] < row["seconds"]
        assert row["mfu_full"] > row["mfu"] > 0
    assert [row.get("communication_share") for row in rows] == [None, 0.0, None]
    trace = json.loads((folder / "profile" / "step-00000002.rank-0.json").read_text())
    assert any(event.get("name") == "aten::mm" for event in trace["traceEvents"])
    assert len(list((folder / "tensorboard").iterdir())) == 1
