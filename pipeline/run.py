"""Make one part of a stage, unless it stands. These two calls are all that Beam calls."""

from __future__ import annotations

import functools

from pipeline import corpus
from pipeline.shards import Shard
from pipeline.stages import JOINS, PART_STAGES, Job
from pipeline.staleness import fingerprints_of


def run_part(job: Job, name: str, shard: Shard) -> Shard:
    """Make one part of a part stage unless it stands; returns the shard, for the next stage."""
    stage = PART_STAGES[name]
    outputs = stage.outputs(job, shard.part)
    work = functools.partial(stage.work, job, shard)
    wanted = fingerprints_of(job).part(name, shard)
    corpus.once(job.root, job.record_name(name), shard.part, wanted, outputs, work)
    return shard


def run_join(job: Job, name: str, partition: int) -> int:
    """Make one partition of a join unless it stands; returns the partition."""
    stage = JOINS[name]
    outputs = stage.outputs(job, partition)
    work = functools.partial(stage.work, job, partition)
    corpus.once(job.root, name, partition, fingerprints_of(job).join(name), outputs, work)
    return partition
