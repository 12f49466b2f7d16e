"""One training run: plan, model, steps, checkpoints, scores, and a record of it all.

    run.json, plan.json  settings, fingerprints, versions, status, totals; the plan of its data
    metrics.jsonl        one line a step
    profile/, tensorboard/  where they are asked for
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
from mixtures.plan import Plan
from mixtures.prefetch import ahead
from mixtures.stream import AHEAD
from pipeline.corpus import locked
from pipeline.files import write_json
from trainer import resuming, skipped
from trainer.batches import Step, steps, told_rounding
from trainer.data import cache_of
from trainer.figures import profiled, speed_of
from trainer.metrics import Progress, append_log, continue_log, progress_text
from trainer.objective_settings import resolve
from trainer.objectives import Objective
from trainer.optim import RATE_FACTOR, make_optimizer
from trainer.parallel.layout import check_fit
from trainer.parallel.memory import enough_memory
from trainer.parallel.norm import clip_gradients
from trainer.parallel.world import World, join_world, share, wait_for_all
from trainer.record import (
    RunResult,
    finished_before,
    keep_plan,
    new_record,
    refuse_other_run,
    remove_run,
)
from trainer.saving import Saver
from trainer.schedule import learning_rate
from trainer.scores import kept_scores
from trainer.scoring import Asked, asked_of, evaluate
from trainer.settings import RunSettings
from trainer.sinks import Sinks
from trainer.starting import build_model, parameters_of, plan_for, resume, told_layout
from trainer.step import backward
from trainer.stopping import Stop, between_steps

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
    saver: Saver
    objective: Objective


def train(run: RunSettings, *, progress: Progress, fresh: bool = False) -> RunResult:
    """Train, go on, or find that nothing is left to do; `fresh`: start over whatever is there.

    Raises:
        ConfigError: settings that cannot be used, or not with the run that `output` holds.
        CorpusError: another process trains into `output`; a file of a corpus is damaged.
        ValueError: a packed file is damaged.
        TrainingError: the loss is not a number.
        SaveError: the last checkpoint cannot be written.
    """
    earlier = None if fresh else finished_before(run)
    if earlier is not None:
        return earlier
    assert run.output is not None, "load_run gives every run a folder"
    folder = Path(run.output)
    with join_world(run) as world, locked(folder) if world.first else nullcontext():
        if world.first:
            if fresh:
                remove_run(folder)
                resuming.forget(run, folder)
            resuming.restore_records(run, folder, progress.line)
        plan = plan_for(run, world)
        if world.first:
            for line in told_rounding(run.batch_tokens, plan.sequence_length):
                progress.line(line)
        refuse_other_run(run, plan)
        check_fit(run, world.layout, plan.sequence_length)
        wait_for_all(world)  # all have read run.json before it is written anew
        objective = resolve(run.objective, plan, run.model.encoder_depth > 0)
        model = build_model(run, plan.vocab_size, world)
        optimizer = make_optimizer(model, run)
        loader = Loader(plan, cache_of(run), run.on_damage)
        record = new_record(run, plan, world.size, str(world.device))
        record["parameters"] = parameters_of(run, plan.vocab_size)
        if world.first and world.size > 1:
            progress.line(told_layout(run, model, plan.sequence_length, world))
        done, own = resume(run, folder, loader, model, optimizer, world, progress)
        if world.first:
            keep_plan(folder, plan)
            write_json(folder / "run.json", {**record, "status": "running"})
        saver = Saver.of(run, folder, world, progress.line)
        job = Job(run, folder, plan, world, progress, loader, model, optimizer, saver, objective)
        with closing(loader), closing(saver):
            totals = _run(job, done, own)
            saver.finish()
        if world.first:
            if num_skipped := len(skipped.read(folder)):
                record["skipped"] = num_skipped
            write_json(folder / "run.json", {**record, "status": "finished", "totals": totals})
        return RunResult(folder, False, **totals)


def _run(job: Job, done: int, own: bool) -> dict[str, Any]:
    """The steps after the first `done`, with what belongs between them; returns totals."""
    run, first = job.run, job.world.first
    asked = asked_of(run, job.plan)
    planned = steps(run.batch_tokens, job.plan)
    row = (continue_log(job.folder / "metrics.jsonl", done) if first else None) or {"seconds": 0.0}
    if own and _lacks_score(job, planned[done - 1]):
        _evaluate(job, asked, done)
    if first:
        begin = planned[done].position if done < len(planned) else len(job.loader)
        skipped.go_back(job.folder, begin)
    wait_for_all(job.world)  # none adds to the record before
    made = (_batch(job, step) for step in planned[done:])
    names = run.trackers if first else ()
    sinks = Sinks(names, job.folder, run.model_dump(mode="json"), done, job.progress)
    with closing(ahead(made, AHEAD)) as batches, closing(sinks), between_steps() as stop:
        row = _steps(job, asked, planned, done, batches, row, stop, sinks)
    return {
        "steps": len(planned),
        "tokens": planned[-1].tokens,
        "loss": row.get("loss"),
        "seconds": row["seconds"],
        "bits_per_byte": _evaluate(job, asked, len(planned)),
    }


def _steps(
    job: Job,
    asked: Asked,
    planned: list[Step],
    done: int,
    batches: Iterator[Batch],
    row: Row,
    stop: Stop,
    sinks: Sinks,
) -> Row:
    """Make the steps after the first `done`; returns the last row of the log."""
    run, first, stall = job.run, job.world.first, 0.0
    speed = speed_of(run, job.plan.vocab_size, job.plan.sequence_length, job.world)
    for step in planned[done:]:
        began = time.perf_counter()
        batch = next(batches)
        waited = time.perf_counter() - began
        skipped.add(job.folder, batch.skipped)
        with profiled(job.folder, step.number, job.world, run.profile) as profile:
            numbers = _step(job, step, batch, planned[-1].tokens)
        seconds = time.perf_counter() - began
        rate = (step.tokens - step.tokens_before) / seconds
        row = {
            "step": step.number,
            "tokens": step.tokens,
            **numbers,
            "tokens_per_second": rate,
            **speed.told(rate),
            "seconds": row["seconds"] + seconds,
            "data_seconds": waited,
            **profile,
            "checkpoint_stall_seconds": stall,  # between the step before and this one
        }
        if first:
            append_log(job.folder / "metrics.jsonl", row)
            sinks.log(row, step.number)
            job.progress.update(progress_text(row, len(planned), planned[-1].tokens))
        stopped = stop.on_any(job.world)
        due = stopped or step.reaches(run.checkpoint.every)
        stall = _save(job, step, last=stopped or step.last) if due else 0.0
        if stopped:
            job.saver.finish()
            stop.leave()
        if step.reaches(run.evaluate.every) and not step.last:
            _evaluate(job, asked, step.number)
    return row


def _save(job: Job, step: Step, last: bool) -> float:
    """Save what the run is after a step; returns the seconds that the run stood still for it."""
    every = job.run.checkpoint.keep_every
    record = {
        "step": step.number,
        "tokens": step.tokens,
        "permanent": every is not None and step.crosses(every),
        "data": job.loader.state(step.position + step.windows),
    }
    return job.saver.save(job.model, job.optimizer, record, last=last)


def _batch(job: Job, step: Step) -> Batch:
    """This rank's windows of a step."""
    first, count, _ = share(step.windows, job.world)
    return job.loader.batch(step.position + first, count)


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
    sources: list[str] = []
    if job.objective.rates:
        numbers = job.loader.places(begin, len(batch.tokens)).source
        sources = [job.plan.sources[number].name for number in numbers]
    with enough_memory(run, world):
        loss, z_loss = backward(job.model, batch, most, run, world, begin, job.objective, sources)
    norm = clip_gradients(job.model, run.grad_clip, world).item()
    if not math.isfinite(loss + z_loss) or not math.isfinite(norm):
        raise TrainingError(_not_finite(job, step, loss + z_loss, norm))
    middle = (step.tokens_before + step.tokens) / 2
    rate = learning_rate(run.schedule, run.learning_rate, middle, total_tokens, run.branch)
    for group in job.optimizer.param_groups:
        group["lr"] = rate * group.get(RATE_FACTOR, 1.0)
    job.optimizer.step()
    shown = {"z_loss": z_loss} if run.z_loss else {}
    return {"loss": loss, **shown, "learning_rate": rate, "gradient_norm": norm}


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
    return evaluate(job.run, job.folder, job.plan, job.model, job.world, job.progress, asked, step)
