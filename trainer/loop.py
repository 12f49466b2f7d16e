"""One training run: plan, model, steps, checkpoints, scores, and a record of it all.

    run.json, plan.json  settings, fingerprints, versions, status, totals; the plan of its data
    metrics.jsonl        one line a step
    evaluations.parquet  one row a held-out document and evaluation
    answers.parquet      one row a choice of a task and evaluation
    skipped.jsonl        windows that could not be read, under `on_damage: skip`
    checkpoints/         see checkpoint.py

A finished run is not run again; an unfinished one goes on from its newest good checkpoint, to the
very losses that it would have had: the data is a function of the step, the rate of the tokens.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import closing, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn

from mixtures.batch import Batch
from mixtures.loader import Loader
from mixtures.packed import require_whole
from mixtures.plan import Plan, make_plan
from mixtures.prefetch import ahead
from mixtures.stream import AHEAD
from pipeline.corpus import locked
from pipeline.files import write_json
from trainer import checkpoint, saved, skipped
from trainer.cloze import Cloze, answers_of, encode_tasks, keep_answers
from trainer.evaluate import answer, score, scores_of
from trainer.interchange.weights import load_into
from trainer.items import Items, heldout_sets, tokenize
from trainer.metrics import Progress, append_log, continue_log, progress_text
from trainer.model import Decoder, initialize, num_parameters
from trainer.optim import learning_rate, make_optimizer
from trainer.parallel.apply import apply_layout
from trainer.parallel.layout import check_fit
from trainer.parallel.norm import clip_gradients
from trainer.parallel.stages import Parts, held_layers
from trainer.parallel.world import World, join_world, share, wait_for_all
from trainer.record import (
    RunResult,
    finished_before,
    keep_plan,
    new_record,
    plan_of,
    refuse_other_run,
    remove_run,
)
from trainer.scores import bits_per_byte, keep_scores, kept_scores
from trainer.settings import RunSettings, batch_windows
from trainer.step import backward, precision
from trainer.tasks import load_tasks

Row = dict[str, Any]  # of metrics.jsonl


class TrainingError(ValueError):
    """A run cannot go on; the message names the step, the data it saw and the remedy."""


@dataclass(frozen=True)
class Job:
    """What the parts of a run share."""

    run: RunSettings
    folder: Path
    plan: Plan
    world: World
    progress: Progress
    loader: Loader
    model: nn.Module
    optimizer: torch.optim.Optimizer


@dataclass(frozen=True)
class Step:
    """One step of the run: a function of its number."""

    number: int  # from 1
    position: int  # of its first window
    windows: int
    tokens_before: int
    tokens: int  # seen after it
    last: bool

    def reaches(self, every: str | int) -> bool:
        """Whether a multiple of `every` tokens falls into it; "final": whether it is the last."""
        if self.last or isinstance(every, str):
            return self.last
        return self.tokens // every > self.tokens_before // every


def steps(run: RunSettings, plan: Plan) -> list[Step]:
    """All steps of a run: whole batches, and what is left of the plan as the last one."""
    length = plan.sequence_length
    batch = batch_windows(run, length)
    result: list[Step] = []
    for begin in range(0, plan.num_windows, batch):
        end = min(begin + batch, plan.num_windows)
        last = end == plan.num_windows
        number = len(result) + 1
        result.append(Step(number, begin, end - begin, begin * length, end * length, last))
    return result


def train(run: RunSettings, *, progress: Progress, fresh: bool = False) -> RunResult:
    """Train, go on, or find that nothing is left to do; `fresh`: start over whatever is there.

    Raises:
        ConfigError: settings that cannot be used, or not with the run that `output` holds.
        CorpusError: another process trains into `output`; a file of a corpus is damaged.
        ValueError: a packed file is damaged.
        TrainingError: the loss is not a number.
    """
    earlier = None if fresh else finished_before(run)
    if earlier is not None:
        return earlier
    assert run.output is not None, "load_run gives every run a folder"
    folder = Path(run.output)
    with join_world(run) as world, locked(folder) if world.first else nullcontext():
        if fresh and world.first:
            remove_run(folder)
        plan = _plan(run, world)
        if world.first:
            _tell_of_rounding(run, plan, progress)
        refuse_other_run(run, plan)
        check_fit(run, world.layout, plan.sequence_length)
        wait_for_all(world)  # all have read run.json before it is written anew
        model = build_model(run, plan.vocab_size, world)
        optimizer = make_optimizer(model, run)
        loader = Loader(plan, on_damage=run.on_damage)
        job = Job(run, folder, plan, world, progress, loader, model, optimizer)
        record = new_record(run, plan, world.size, str(world.device))
        record["parameters"] = num_parameters(model)
        done = _resume(job)
        if world.first:
            keep_plan(folder, plan)
            write_json(folder / "run.json", {**record, "status": "running"})
        with closing(loader):
            totals = _run(job, done)
        if world.first:
            if num_skipped := len(skipped.read(folder)):
                record["skipped"] = num_skipped
            write_json(folder / "run.json", {**record, "status": "finished", "totals": totals})
        return RunResult(folder, False, **totals)


def _tell_of_rounding(run: RunSettings, plan: Plan, progress: Progress) -> None:
    windows = batch_windows(run, plan.sequence_length)
    tokens = windows * plan.sequence_length
    if tokens != run.batch_tokens:
        progress.line(
            f"`batch_tokens: {run.batch_tokens}` becomes {tokens:,}: a step takes whole windows, "
            f"{windows:,} of {plan.sequence_length:,} tokens"
        )


def build_model(run: RunSettings, vocab_size: int, world: World) -> nn.Module:
    """The model with its initial weights, on the device, as far as this rank holds it."""
    shape = run.model.shape
    parts = []
    for held in held_layers(run, shape.depth, world):
        part = Decoder(shape, vocab_size, held)
        if run.initial is None:
            initialize(part, run.seed)
        else:
            load_into(part, Path(run.initial))
        part.to(world.device, torch.float64 if run.precision == "fp64" else torch.float32)
        apply_layout(part, run, world)
        parts.append(part)
    return parts[0] if len(parts) == 1 else Parts(parts)


def _plan(run: RunSettings, world: World) -> Plan:
    """The plan of the mixture; the first rank packs, the others find it packed.

    The first rank hashes all windows too: a flipped bit in one is another token, which no loss
    would tell of. It costs one more reading of them, of which a run makes at least one.
    """
    if not world.first:
        wait_for_all(world)
    plan = make_plan(run.mixture, run.tokens)
    if world.first:
        if run.on_damage == "fail":  # else each rank looks at what it reads
            for source in plan.sources:
                require_whole(Path(source.folder))
        wait_for_all(world)
    return plan


def _resume(job: Job) -> int:
    """Load the newest good checkpoint, if any; returns the number of steps that are done."""
    path = saved.newest(job.folder / "checkpoints")
    if path is None:
        if job.world.first and (job.folder / "metrics.jsonl").exists():
            job.progress.line(
                f"{job.folder}: begins anew, no checkpoint was saved; for longer runs set "
                "`checkpoint: {every: 100M}` or so"
            )
        return 0
    manifest = saved.manifest(path)
    state = manifest["data"]
    before = plan_of(job.folder, state["fingerprint"])
    position = job.loader.resume(state, before)
    checkpoint.load(path, job.model, job.optimizer, job.world)
    if job.world.first:
        job.progress.line(f"{job.folder}: goes on from {path.name}")
        if before is not None and before.fingerprint != job.plan.fingerprint:
            tokens = position * job.plan.sequence_length
            job.progress.line(
                f"the mixture changed: from window {position:,} on ({tokens:,} tokens) plan "
                f"{job.plan.fingerprint}, before it {before.fingerprint}"
            )
    return int(manifest["step"])


def _run(job: Job, done: int) -> dict[str, Any]:
    """The steps after the first `done`, with what belongs between them; returns totals."""
    run, first = job.run, job.world.first
    asked = asked_of(run, job.plan)
    planned = steps(run, job.plan)
    row = (continue_log(job.folder / "metrics.jsonl", done) if first else None) or {"seconds": 0.0}
    if done and _lacks_score(job, planned[done - 1]):
        _evaluate(job, asked, done)
    if first:
        begin = planned[done].position if done < len(planned) else len(job.loader)
        skipped.go_back(job.folder, begin)
    wait_for_all(job.world)  # none adds to the record before
    made = (_batch(job, step) for step in planned[done:])
    with closing(ahead(made, AHEAD)) as batches:
        row = _steps(job, asked, planned, done, batches, row)
    return {
        "steps": len(planned),
        "tokens": planned[-1].tokens,
        "loss": row.get("loss"),
        "seconds": row["seconds"],
        "bits_per_byte": _evaluate(job, asked, len(planned)),
    }


def _steps(
    job: Job, asked: Asked, planned: list[Step], done: int, batches: Iterator[Batch], row: Row
) -> Row:
    """Make the steps after the first `done`; returns the last row of the log."""
    run, first = job.run, job.world.first
    for step in planned[done:]:
        began = time.perf_counter()
        batch = next(batches)
        skipped.add(job.folder, batch.skipped)
        numbers = _step(job, step, batch, planned[-1].tokens)
        seconds = time.perf_counter() - began
        row = {
            "step": step.number,
            "tokens": step.tokens,
            **numbers,
            "tokens_per_second": (step.tokens - step.tokens_before) / seconds,
            "seconds": row["seconds"] + seconds,
        }
        if first:
            append_log(job.folder / "metrics.jsonl", row)
            job.progress.update(progress_text(row, len(planned), planned[-1].tokens))
        if step.reaches(run.checkpoint.every):
            position = step.position + step.windows
            state = {"step": step.number, "data": job.loader.state(position)}
            folder, keep = job.folder / "checkpoints", run.checkpoint.keep
            checkpoint.save(folder, job.model, job.optimizer, state, job.world, keep=keep)
        if step.reaches(run.evaluate.every) and not step.last:
            _evaluate(job, asked, step.number)
    return row


def _batch(job: Job, step: Step) -> Batch:
    """This rank's windows of a step."""
    first, count, _ = share(step.windows, job.world)
    return job.loader.batch(step.position + first, count)


@dataclass(frozen=True)
class Asked:
    """What an evaluation asks."""

    items: Items
    cloze: Cloze | None  # None: no tasks


def asked_of(run: RunSettings, plan: Plan) -> Asked:
    """The held-out text and tasks of a run, as token ids."""
    file = Path(plan.tokenizer_file)
    items = tokenize(heldout_sets(run), file, plan.bos_id)
    tasks = load_tasks(run.evaluate.tasks)
    length = plan.sequence_length
    cloze = encode_tasks(tasks, file, plan.bos_id, plan.eos_id, length) if tasks else None
    return Asked(items, cloze)


def _lacks_score(job: Job, step: Step) -> bool:
    """Whether the run was killed between the checkpoint of a step and its evaluation."""
    due = step.reaches(job.run.evaluate.every) and not step.last
    return due and not len(kept_scores(job.folder / "evaluations.parquet", step.number))


def _step(job: Job, step: Step, batch: Batch, total_tokens: int) -> dict[str, float]:
    """Gradient, clipping, update; returns what metrics.jsonl keeps of it."""
    run, world = job.run, job.world
    _, _, most = share(step.windows, world)
    job.optimizer.zero_grad()
    begin = step.position + share(step.windows, world)[0]
    loss = backward(job.model, batch, most, run, world, begin)
    norm = clip_gradients(job.model, run.grad_clip, world).item()
    if not math.isfinite(loss) or not math.isfinite(norm):
        raise TrainingError(_not_finite(job, step, loss, norm))
    middle = (step.tokens_before + step.tokens) / 2
    rate = learning_rate(run.schedule, run.learning_rate, middle, total_tokens)
    for group in job.optimizer.param_groups:
        group["lr"] = rate
    job.optimizer.step()
    return {"loss": loss, "learning_rate": rate, "gradient_norm": norm}


def _not_finite(job: Job, step: Step, loss: float, norm: float) -> str:
    seen = job.loader.documents_at(step.position, step.windows)
    ids = [f"{source}: {name}" for source, names in seen for name in names]
    return (
        f"{job.folder}: step {step.number}: loss {loss}, gradient norm {norm}; nothing was "
        f"updated. It saw windows {step.position} to {step.position + step.windows - 1}, with "
        f"{len(ids)} documents: {', '.join(ids[:8])}{' ...' if len(ids) > 8 else ''}. Look at them "
        "with `assay inspect`; if they are sound, lower `learning_rate` or lengthen "
        "`schedule.warmup`"
    )


def _evaluate(job: Job, asked: Asked, step: int) -> dict[str, float]:
    """Score held-out sets and tasks and keep the scores; returns bits per byte by set."""
    length, windows = job.plan.sequence_length, job.run.micro_batch
    with precision(job.run, job.world):
        nats = score(job.model, asked.items, length, windows, job.world)
        table = scores_of(asked.items, step, nats)
        if asked.cloze is not None:
            nats = answer(job.model, asked.cloze, length, windows, job.world)
            if job.world.first:
                keep_answers(job.folder / "answers.parquet", answers_of(asked.cloze, step, nats))
    if job.world.first:
        keep_scores(job.folder / "evaluations.parquet", table)
        by_language = bits_per_byte(table, "language").items()
        text = ", ".join(f"{name} {value:.4f}" for name, value in by_language)
        job.progress.line(f"step {step}: bits per byte: {text}")
    return bits_per_byte(table)
