"""Workers without the driver's disk: a folder of their own stands for the corpus on its store, and
holds the parts that they are at."""

from __future__ import annotations

import functools
from dataclasses import replace
from pathlib import Path

from pipeline import store
from pipeline.files import read_json
from pipeline.shards import Shard
from pipeline.stages import Job


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


def fetched(job: Job, shard: Shard) -> Shard:
    """The shard with its spilled pieces, if it has any, on this machine."""
    mine = next(s for s in job.shards if s.part == shard.part)
    paths = [Path(piece.path) for piece in mine.pieces if piece.spilled]
    missing = {str(path.relative_to(job.root)) for path in paths if not path.exists()}
    mirror = store.of(job.root)
    if missing and mirror is not None:
        begun = store.last_state(mirror, "begun")
        assert begun is not None, mirror
        store.fetch(mirror, {name: begun["files"][name] for name in missing})
    return mine


def let_go(job: Job, shard: Shard) -> None:
    """Delete the files of a part, which are on the store, where its next step may run elsewhere:
    a worker's disk holds the parts that it is at, not the corpus."""
    for stage in job.part_stages:
        record = job.root / store.record_name(job.record_name(stage), shard.part)
        for name in read_json(record)["outputs"] if record.exists() else ():
            (job.root / name).unlink(missing_ok=True)
    for piece in shard.pieces:
        if piece.spilled:
            Path(piece.path).unlink(missing_ok=True)
