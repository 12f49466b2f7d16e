"""Make parts of stages, unless they stand. These three calls are all that Beam calls."""

from __future__ import annotations

import functools

from pipeline import corpus
from pipeline.shards import Shard
from pipeline.stages import JOINS, PART_STAGES, TEXT_STAGES, Job
from pipeline.staleness import fingerprints_of
from pipeline.transforms.sweep import sweep


def run_part(job: Job, name: str, shard: Shard) -> Shard:
    """Make one part of a part stage unless it stands; returns the shard, for the next stage."""
    stage = PART_STAGES[name]
    outputs = stage.outputs(job, shard.part)
    work = functools.partial(stage.work, job, shard)
    wanted = fingerprints_of(job).part(name, shard)
    corpus.once(job.root, job.record_name(name), shard.part, wanted, outputs, work)
    return shard


def run_sweep(job: Job, names: tuple[str, ...], shard: Shard) -> Shard:
    """Make one part of those text stages that do not stand, in one pass; returns the shard."""
    prints, part = fingerprints_of(job), shard.part
    wanted = {name: prints.part(name, shard) for name in names}
    missing = [
        name
        for name in names
        if corpus.record(job.root, job.record_name(name), part, wanted[name]) is None
    ]
    if not missing:
        return shard
    for name in missing:
        corpus.withdraw(job.root, job.record_name(name), part)
    stages = {name: TEXT_STAGES[name].steps(job, part) for name in missing}
    for name, made in sweep(job.root, part, stages, job.settings.near.ngram).items():
        outputs = TEXT_STAGES[name].outputs(job, part)
        corpus.commit(job.root, job.record_name(name), part, wanted[name], outputs, *made)
    return shard


def run_join(job: Job, name: str, partition: int) -> int:
    """Make one partition of a join unless it stands; returns the partition."""
    stage = JOINS[name]
    outputs = stage.outputs(job, partition)
    work = functools.partial(stage.work, job, partition)
    corpus.once(job.root, name, partition, fingerprints_of(job).join(name), outputs, work)
    return partition
