from __future__ import annotations

import io
import os
import random
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml

from pipeline.files import read_json
from trainer.ablation.commands import ablate
from trainer.ablation.runs import RunError, finished, run_all, status, tokens_done
from trainer.ablation.study import load_study
from trainer.metrics import Progress

ALL = [f"{arm}/seed-{n}" for arm in ("as-it-comes", "deduplicated") for n in (1, 2, 3)]


def calls(folder: Path) -> list[str]:
    """Runs that the fake trainer was called for, since last asked."""
    path = folder / "study" / "calls.txt"
    found = sorted(path.read_text().splitlines()) if path.exists() else []
    path.unlink(missing_ok=True)
    return found


def run(folder: Path, fake_train: tuple[str, ...]) -> str:
    out = io.StringIO()
    run_all(load_study(folder / "study.yaml"), Progress(out), fake_train)
    return out.getvalue()


def edit(folder: Path, name: str, **values: object) -> None:
    content = yaml.safe_load((folder / name).read_text())
    (folder / name).write_text(yaml.safe_dump({**content, **values}, sort_keys=False))


def test_finished_runs_are_skipped(trained: Path, fake_train: tuple[str, ...]):
    assert calls(trained) == ALL
    assert run(trained, fake_train) == ""
    assert calls(trained) == []


def test_a_run_is_a_folder_that_trains_by_itself(trained: Path, trained_once: Path):
    place = trained / "study" / "deduplicated" / "seed-2"
    settings = yaml.safe_load((place / "run.yaml").read_text())
    mixture = yaml.safe_load((place / "mixture.yaml").read_text())
    assert (settings["seed"], settings["mixture"], settings["output"]) == (2, "mixture.yaml", ".")
    assert settings["threads"] == max(1, (os.cpu_count() or 1) // 2)
    assert (mixture["seed"], mixture["unique"]) == (2, "near")
    at = trained_once / place.relative_to(trained)
    assert (place / "log.txt").read_text() == f"training {at}\n"
    assert sorted(read_json(place / "finished.json")) == ["cpu_seconds", "key", "wall_seconds"]


def test_a_changed_arm_runs_again_from_nothing(trained: Path, fake_train: tuple[str, ...]):
    calls(trained)
    for arm in ("as-it-comes", "deduplicated"):
        (trained / "study" / arm / "seed-1" / "checkpoints").mkdir()
    arms = {"as-it-comes": {}, "deduplicated": {"mixture": {"unique": "exact"}}}
    edit(trained, "study.yaml", arms=arms)
    assert run(trained, fake_train).endswith("3 runs trained, 3 had finished before\n")
    assert calls(trained) == ALL[3:]
    assert not (trained / "study" / "deduplicated" / "seed-1" / "checkpoints").exists()
    assert (trained / "study" / "as-it-comes" / "seed-1" / "checkpoints").exists()


def test_more_seeds_run_alone(trained: Path, fake_train: tuple[str, ...]):
    calls(trained)
    edit(trained, "study.yaml", seeds=[1, 2, 3, 4])
    run(trained, fake_train)
    assert calls(trained) == ["as-it-comes/seed-4", "deduplicated/seed-4"]


def test_a_failed_run_is_named_with_the_end_of_its_log(
    folder: Path, fake_train: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
):
    edit(folder, "study.yaml", workers=1)
    monkeypatch.setenv("FAKE_FAIL", "as-it-comes/seed-2")
    with pytest.raises(RunError) as error:
        run(folder, fake_train)
    place = folder / "study" / "as-it-comes" / "seed-2"
    assert str(error.value) == (
        f"arm `as-it-comes`, seed 2: training ended with exit code 1; the end of {place}/log.txt:\n"
        f"  training {place}\n"
        "  loss is not a number at step 3\n"
        "mend the cause and call again: finished runs are kept, this one goes on"
    )
    assert calls(folder) == ALL[:2]
    monkeypatch.delenv("FAKE_FAIL")
    run(folder, fake_train)
    assert calls(folder) == ALL[1:]


def test_a_refused_run_gives_the_message_of_its_process(folder: Path):
    code = "print('noise'); print('assay train: mixture.yaml: key a\\n  and b'); exit(2)"
    with pytest.raises(RunError) as error:
        run(folder, (sys.executable, "-c", code))
    arm, seed = re.match(r"arm `([a-z-]+)`, seed (\d): mixture", str(error.value)).groups()
    assert str(error.value) == (
        f"arm `{arm}`, seed {seed}: mixture.yaml: key a\n"
        "  and b\n"
        f"(the log: {folder}/study/{arm}/seed-{seed}/log.txt) mend the cause and call again: "
        "finished runs are kept, this one goes on"
    )


def test_status_tells_training_from_scoring(folder: Path):
    runs = load_study(folder / "study.yaml").runs[:4]
    assert status(runs, 0, 0.0) == "0 of 4 runs done; 0% of 4,000,000 tokens; starting"
    for one, tokens in zip(runs, (1_000_064, 1_000_064, 500_000), strict=False):
        one.folder.mkdir(parents=True)
        (one.folder / "metrics.jsonl").write_text(f'{{"tokens": {tokens}}}\n')
        (one.folder / "run.key").write_text(one.key)
    assert status(runs, 1, 5e4) == (
        "1 of 4 runs done; 1 scoring; 62% of 4,000,000 tokens; 50,000 tokens/s; 0:30 left"
    )
    assert status(runs[:2], 0, 5e4) == "0 of 2 runs done; 2 scoring; 100% of 2,000,000 tokens"


def test_killed_at_random_it_ends_with_the_same_report(
    folder: Path, trained_once: Path, fake_train: tuple[str, ...]
):
    """The study process is killed alone: the runs under way train on and are waited for."""
    code = (
        "import sys; from trainer.ablation.commands import ablate; "
        "sys.exit(ablate([sys.argv[1]], sys.argv[2:]))"
    )
    command = [sys.executable, "-c", code, str(folder / "study.yaml"), *fake_train]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while not (folder / "study" / "calls.txt").exists() and process.poll() is None:
        time.sleep(0.02)
    time.sleep(random.random() * 0.3)
    process.kill()
    process.wait()
    assert ablate([str(folder / "study.yaml")], fake_train) == 0
    found, expected = (at / "study" / "verdict.json" for at in (folder, trained_once))
    assert found.read_bytes() == expected.read_bytes()


def test_progress_reads_whole_lines_only(folder: Path):
    one = load_study(folder / "study.yaml").runs[0]
    assert tokens_done(one) == 0
    assert not finished(one)
    one.folder.mkdir(parents=True)
    (one.folder / "metrics.jsonl").write_text('{"tokens": 10}\n{"tokens": 20}\n{"tok')
    (one.folder / "run.key").write_text(one.key)
    assert tokens_done(one) == 20
    (one.folder / "run.key").write_text("of other settings")
    assert tokens_done(one) == 0
