"""Make parts of stages, unless they stand. These three calls are all that Beam calls."""

from __future__ import annotations

import functools
from dataclasses import replace
from pathlib import Path

from pipeline import commits, heap, store
from pipeline.commits import Read
from pipeline.shards import Shard
from pipeline.stages import FIRST, JOINS, PART_STAGES, TEXT_STAGES, Job
from pipeline.staleness import fingerprints_of
from pipeline.transforms.sweep import sweep

ENDS = ("nominees", "candidates")  # the last steps of a part before a join, and of all


def run_part(job: Job, name: str, shard: Shard) -> Shard:
    """Make one part of a part stage unless it stands; returns the shard, for the next stage."""
    drivers, job = job, here(job)
    stage = PART_STAGES[name]
    if name == "ingest" and job is not drivers:
        shard = _fetched(job, shard)
    commits.once(
        job.root,
        job.record_name(name),
        shard.part,
        fingerprints_of(job).part(name, shard),
        stage.outputs(job, shard.part),
        functools.partial(stage.work, job, shard),
        (read for after in stage.after for read in _reads(job, after, shard)),
    )
    if name in ENDS:
        heap.give_back()
        if job is not drivers:
            _let_go(job, shard)
    return shard


def run_sweep(job: Job, names: tuple[str, ...], shard: Shard) -> Shard:
    """Make one part of those text stages that do not stand, in one pass; returns the shard."""
    drivers, job = job, here(job)
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
    after = dict.fromkeys(stage for name in missing for stage in TEXT_STAGES[name].after)
    commits.ready(job.root, (read for stage in after for read in _reads(job, stage, shard)))
    for name in missing:
        commits.withdraw(job.root, job.record_name(name), part)
    stages = {name: TEXT_STAGES[name].steps(job, part) for name in missing}
    for name, made in sweep(job.root, part, stages, job.settings.near.ngram).items():
        outputs = TEXT_STAGES[name].outputs(job, part)
        commits.commit(job.root, job.record_name(name), part, wanted[name], outputs, *made)
    heap.give_back()
    if job is not drivers and not set(names).issubset(FIRST):
        _let_go(job, shard)
    return shard


def run_join(job: Job, name: str, partition: int) -> int:
    """Make one partition of a join unless it stands; returns the partition."""
    job = here(job)
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


# --- workers without the driver's disk ------------------------------------------------------------


def here(job: Job) -> Job:
    """The job with a folder of this machine: on a worker that does not share the driver's cache of
    the store, its own, with what the driver shared."""
    if not job.store or job.root == store.cache(job.store):
        return job
    return _moved(job)


@functools.lru_cache(maxsize=1)
def _moved(job: Job) -> Job:
    root = store.cache(job.store)
    store.follow(root, job.lease)
    copy = str(root / Path(job.tokenizer.file).relative_to(job.root))
    return replace(job, root=root, tokenizer=job.tokenizer.model_copy(update={"file": copy}))


def _fetched(job: Job, shard: Shard) -> Shard:
    """The shard with its spilled pieces, if it has any, on this machine."""
    mine = next(s for s in job.shards if s.part == shard.part)
    store.fetch_spilled(job.root, [Path(piece.path) for piece in mine.pieces])
    return mine


def _let_go(job: Job, shard: Shard) -> None:
    """Delete the files of a part, which are on the store, where its next step may run elsewhere:
    a worker's disk holds the parts that it is at, not the corpus."""
    records = [job.record_name(stage) for stage in job.part_stages]
    store.let_go(job.root, records, shard.part)
    for piece in shard.pieces:
        if piece.spilled:
            Path(piece.path).unlink(missing_ok=True)
