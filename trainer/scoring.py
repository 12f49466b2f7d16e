"""What a run is asked while it trains, and at its end: held-out text and tasks."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from torch import nn

from mixtures.plan import Plan
from mixtures.plan_tokenizer import tokenizer_file
from trainer.cloze import Cloze, answers_of, encode_tasks, keep_answers
from trainer.data import heldout_sets
from trainer.evaluate import answer, score, scores_of
from trainer.items import Items, tokenize
from trainer.metrics import Progress
from trainer.parallel.world import World
from trainer.scores import bits_per_byte, keep_scores
from trainer.settings import RunSettings
from trainer.step import precision
from trainer.tasks import load_tasks


@dataclass(frozen=True)
class Asked:
    """What an evaluation asks."""

    items: Items
    cloze: Cloze | None  # None: no tasks


def asked_of(run: RunSettings, plan: Plan) -> Asked:
    """The held-out text and tasks of a run, as token ids."""
    file = tokenizer_file(plan)
    items = tokenize(heldout_sets(run), file, plan.bos_id)
    tasks = load_tasks(run.evaluate.tasks)
    length = plan.sequence_length
    cloze = encode_tasks(tasks, file, plan.bos_id, plan.eos_id, length) if tasks else None
    return Asked(items, cloze)


def evaluate(
    run: RunSettings,
    folder: Path,
    plan: Plan,
    model: nn.Module,
    world: World,
    progress: Progress,
    asked: Asked,
    step: int,
) -> dict[str, float]:
    """Score held-out sets and tasks and keep the scores; returns bits per byte by set."""
    length, windows = plan.sequence_length, run.micro_batch
    with precision(run, world):
        nats = score(model, asked.items, length, windows, world)
        table = scores_of(asked.items, step, nats)
        if asked.cloze is not None:
            nats = answer(model, asked.cloze, length, windows, world)
            if world.first:
                keep_answers(folder / "answers.parquet", answers_of(asked.cloze, step, nats))
    if world.first:
        keep_scores(folder / "evaluations.parquet", table)
        by_language = bits_per_byte(table, "language").items()
        text = ", ".join(f"{name} {value:.4f}" for name, value in by_language)
        progress.line(f"step {step}: bits per byte: {text}")
    return bits_per_byte(table)
