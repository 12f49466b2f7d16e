"""Whatever a kill interrupts, the end is the same bytes; SIGTERM ends cleanly."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import kills
import pytest
import small_corpus
import xxhash

KILLS = 100 if os.environ.get("ASSAY_SOAK") == "1" else 12
TABLES = "documents signals tokens rejects pairs clusters heldout joins heldout.json"


def hashes(root: Path) -> dict[str, str]:
    """Of every data file of a corpus."""
    found = [p for t in TABLES.split() for p in (root / t, *(root / t).rglob("*")) if p.is_file()]
    return {str(p.relative_to(root)): xxhash.xxh3_64_hexdigest(p.read_bytes()) for p in found}


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("kills")
    path = small_corpus.write_inputs(folder, documents=60)
    tokenizer = ["--vocab-size", "600", "--output", str(folder / "tokenizer.json")]
    small_corpus.assay("tokenizer", "train", path, *tokenizer)
    return path


@pytest.mark.slow
def test_kills_at_every_stage_end_with_the_same_bytes(settings: Path, tmp_path: Path) -> None:
    root, told = settings.parent / "corpus", tmp_path / "told"
    told.touch()
    assert kills.prepared_or_killed(settings, 0, told)
    wanted = hashes(root)
    shutil.rmtree(root)
    moments = random.Random(17)
    runs = 0
    while told.read_text().count("\n") < KILLS or runs == 0:
        if kills.prepared_or_killed(settings, moments.randrange(1, 100), told):
            assert hashes(root) == wanted
            assert not list(root.rglob("*.tmp"))
            shutil.rmtree(root)
            runs += 1
    lines = [line.split(str(root))[1] for line in told.read_text().splitlines()]
    stages = Counter("/".join(line.split("/")[1:-1])[:24] for line in lines)
    print(f"{len(lines)} kills, {runs} whole runs:", dict(stages.most_common()))
    assert KILLS < 100 or len(stages) > 10


@pytest.mark.parametrize(
    ("workers", "sent", "code", "what"),
    [
        ("1", signal.SIGTERM, 143, "stopped by SIGTERM"),
        ("1", signal.SIGINT, 130, "interrupted"),
        ("2", signal.SIGTERM, 143, "stopped by SIGTERM"),
    ],
)
def test_a_signal_ends_it_cleanly_and_the_next_call_goes_on(
    settings: Path, workers: str, sent: signal.Signals, code: int, what: str
) -> None:
    """With one worker it meets a step in the middle of Beam, which wraps what the step raises."""
    shutil.rmtree(settings.parent / "corpus", ignore_errors=True)
    command = [sys.executable, "-m", "trainer.cli", "prepare", str(settings), "--workers", workers]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    root = settings.parent / "corpus"
    while not list(root.glob("stats/ingest/*")) and process.poll() is None:
        time.sleep(0.05)
    process.send_signal(sent)
    _, errors = process.communicate(timeout=60)
    assert (process.returncode, errors.splitlines()[-1:]) == (
        code,
        [f"assay: {what}; the same command goes on where it stopped"],
    ), errors
    assert "Traceback" not in errors
    done = small_corpus.assay("prepare", settings, "--workers", "1")
    assert "made " in done.stdout
