"""Make parts of stages, unless they stand. These three calls are all that Beam calls."""

from __future__ import annotations

import functools

from pipeline import commits, elsewhere, heap
from pipeline.commits import Read
from pipeline.shards import Shard
from pipeline.stages import FIRST, JOINS, PART_STAGES, Job, text_stage
from pipeline.staleness import fingerprints_of
from pipeline.transforms.sweep import sweep

# The last steps of a part before a join, and of all.
ENDS = (
    "nominees",
    "candidates",
    "contained_hits",
    "contained_shingles",
    "extensions",
    "signals/substrings",
)


def run_part(job: Job, name: str, shard: Shard) -> Shard:
    """Make one part of a part stage unless it stands; returns the shard, for the next stage."""
    drivers, job = job, elsewhere.here(job)
    stage = PART_STAGES[name]
    if name == "ingest" and job is not drivers:
        shard = elsewhere.fetched(job, shard)
    commits.once(
        job.root,
        job.record_name(name),
        shard.part,
        fingerprints_of(job).part(name, shard),
        stage.outputs(job, shard.part),
        functools.partial(stage.work, job, shard),
        (read for after in job.after(name) for read in _reads(job, after, shard)),
    )
    if name in ENDS:
        heap.give_back()
        if job is not drivers:
            elsewhere.let_go(job, shard)
    return shard


def run_sweep(job: Job, names: tuple[str, ...], shard: Shard) -> Shard:
    """Make one part of those text stages that do not stand, in one pass; returns the shard."""
    drivers, job = job, elsewhere.here(job)
    prints, part = fingerprints_of(job), shard.part
    if job.store and "matches" in names:  # its fingerprint is of what the held-out sets hold
        commits.ready(job.root, _reads(job, "heldout"))
    wanted = {name: prints.part(name, shard) for name in names}
    missing = [
        name
        for name in names
        if commits.record(job.root, job.record_name(name), part, wanted[name]) is None
    ]
    if not missing:
        return shard
    makers = {name: text_stage(name) for name in missing}
    after = dict.fromkeys(stage for maker in makers.values() for stage in maker.after)
    commits.ready(job.root, (read for stage in after for read in _reads(job, stage, shard)))
    for name in missing:
        commits.withdraw(job.root, job.record_name(name), part)
    stages = {name: maker.steps(job, part) for name, maker in makers.items()}
    reads = {column for maker in makers.values() for column in maker.reads(job)}
    for name, made in sweep(job.root, part, stages, job.settings.near.ngram, sorted(reads)).items():
        outputs = makers[name].outputs(job, part)
        commits.commit(job.root, job.record_name(name), part, wanted[name], outputs, *made)
    heap.give_back()
    if job is not drivers and not set(names).issubset(FIRST):
        elsewhere.let_go(job, shard)
    return shard


def run_join(job: Job, name: str, partition: int) -> int:
    """Make one partition of a join unless it stands; returns the partition."""
    job = elsewhere.here(job)
    join = JOINS[name]
    commits.once(
        job.root,
        name,
        partition,
        fingerprints_of(job).join(name),
        join.outputs(job, partition),
        functools.partial(join.work, job, partition),
        (read for after in join.after for read in _reads(job, after)),
    )
    heap.give_back()
    return partition


def _reads(job: Job, name: str, shard: Shard | None = None) -> list[Read]:
    """The commit records of a stage: of one part, of all parts, of all partitions of a join."""
    prints = fingerprints_of(job)
    if name in JOINS:
        return [(name, n, prints.join(name)) for n in range(JOINS[name].partitions(job))]
    shards = [shard] if shard is not None else prints.shards
    return [(job.record_name(name), s.part, prints.part(name, s)) for s in shards]
