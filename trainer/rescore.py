"""The scores of a checkpoint of a run: those that stand, or new ones, made in one process.

Scores stand for a step of this run and for held-out documents, known by their content hashes, or
the questions of a task. While these are the same, nothing is computed and torch is not imported.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from mixtures.heldout import HeldoutSet
from mixtures.plan_tokenizer import tokenizer_file
from trainer.cloze import answers_of, encode_tasks, keep_answers, kept_answers
from trainer.data import heldout_sets
from trainer.items import tokenize
from trainer.metrics import Progress
from trainer.scores import keep_scores, kept_scores
from trainer.tasks import Task
from trainer.trained import Trained


@dataclass(frozen=True)
class Scored:
    table: pa.Table  # rows of EVALUATIONS
    news: str  # why it was scored now; empty: its scores stood


def scores_of(job: Trained, progress: Progress) -> Scored:
    """The scores of the held-out sets; new ones are kept in evaluations.parquet."""
    sets = heldout_sets(job.run)
    table = kept_scores(job.folder / "evaluations.parquet", job.step)
    news = _news(table, sets) if len(table) else f"step {job.step} has no scores yet"
    if news:
        progress.line(f"{news}; scoring")
        table = _score(job, sets)
        keep_scores(job.folder / "evaluations.parquet", table)
    return Scored(table, news)


def answers_to(job: Trained, tasks: Sequence[Task], progress: Progress) -> pa.Table:
    """Rows of ANSWERS, all tasks'; new ones are kept in answers.parquet."""
    path = job.folder / "answers.parquet"
    standing = set(kept_answers(path, job.step, tasks)["fingerprint"].to_pylist())
    missing = [task for task in tasks if task.fingerprint not in standing]
    if missing:
        progress.line(f"step {job.step}: scoring {', '.join(task.name for task in missing)}")
        keep_answers(path, _answer(job, missing))
    return kept_answers(path, job.step, tasks)


def _news(table: pa.Table, sets: Sequence[HeldoutSet]) -> str:
    """Which sets are not those that the scores of `table` are of; empty when all are."""
    columns = [table[column].to_pylist() for column in ("set", "language", "source")]
    scored = set(zip(*columns, map(bytes.hex, table["content_hash"].to_pylist()), strict=True))
    present = {(s.name, s.language, s.source, hash_) for s in sets for hash_, _ in s.documents}
    names = sorted({name for name, *_ in scored ^ present})
    return f"new held-out sets: {', '.join(names)}" if names else ""


def _score(job: Trained, sets: Sequence[HeldoutSet]) -> pa.Table:
    from trainer import evaluate
    from trainer.step import precision

    plan = job.plan
    items = tokenize(sets, tokenizer_file(plan), plan.bos_id)
    with precision(job.run, job.world):
        nats = evaluate.score(
            job.model, items, plan.sequence_length, job.run.micro_batch, job.world
        )
    return evaluate.scores_of(items, job.step, nats)


def _answer(job: Trained, tasks: Sequence[Task]) -> pa.Table:
    from trainer import evaluate
    from trainer.step import precision

    plan = job.plan
    cloze = encode_tasks(
        tasks, tokenizer_file(plan), plan.bos_id, plan.eos_id, plan.sequence_length
    )
    with precision(job.run, job.world):
        nats = evaluate.answer(
            job.model, cloze, plan.sequence_length, job.run.micro_batch, job.world
        )
    return answers_of(cloze, job.step, nats)
