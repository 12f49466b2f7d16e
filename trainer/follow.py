"""An evaluator in a process of its own: it scores each checkpoint of a run as it comes.

The run is not stopped and need not know. A checkpoint that is seen is held by hard links in
RUN/evaluating/, so that it can be scored in peace after the run has deleted it; what a killed
evaluator left there is scored first.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Sequence
from pathlib import Path

from pipeline.files import read_json
from trainer import saved
from trainer.metrics import Progress
from trainer.rescore import answers_to, scores_of
from trainer.scores import bits_per_byte
from trainer.tasks import load_tasks
from trainer.trained import Trained, run_of

SECONDS = 2.0  # between two looks


def follow(folder: Path, tasks: Sequence[str], progress: Progress) -> None:
    """Score what comes until the run has finished and all is scored.

    Raises:
        ConfigError: no run, or a task that cannot be read.
    """
    run = run_of(folder)
    asked = load_tasks(tasks or run.evaluate.tasks)
    held = folder / "evaluating"
    told = False
    while True:
        finished = read_json(folder / "run.json")["status"] == "finished"
        _hold_new(folder, held)
        waiting = sorted(held.glob("step-*"))
        for path in waiting:
            job = Trained(folder, path, run)
            scored = scores_of(job, progress)
            answers_to(job, asked, progress)
            figures = ", ".join(
                f"{name} {value:.4f}"
                for name, value in bits_per_byte(scored.table, "language").items()
            )
            progress.line(f"step {job.step}: bits per byte: {figures}")
            (held / f"done-{path.name}").touch()
            shutil.rmtree(path)
        if finished and not waiting:
            shutil.rmtree(held, ignore_errors=True)
            return
        if not waiting:
            if not told:
                progress.line(f"{folder}: waiting for the next checkpoint; Ctrl-C ends it")
                told = True
            time.sleep(SECONDS)


def _hold_new(folder: Path, held: Path) -> None:
    """Link the whole checkpoints that were not scored yet."""
    held.mkdir(exist_ok=True)
    for path in sorted((folder / "checkpoints").glob("step-*")):
        target = held / path.name
        if target.exists() or (held / f"done-{path.name}").exists():
            continue
        temporary = held / f".{path.name}.tmp"
        shutil.rmtree(temporary, ignore_errors=True)
        try:
            shutil.copytree(path, temporary, copy_function=os.link)
        except OSError:  # it is being deleted, or replaced: the next look will tell
            shutil.rmtree(temporary, ignore_errors=True)
            continue
        if saved.damage(temporary) is None:
            os.replace(temporary, target)
        else:
            shutil.rmtree(temporary)
