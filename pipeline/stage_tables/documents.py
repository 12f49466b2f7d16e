"""Documents and their tokens."""

from __future__ import annotations

import functools
from collections.abc import Callable

from pipeline import forgotten
from pipeline.settings import Tokenizer
from pipeline.stage_kinds import PartStage, TextStage
from pipeline.tokenizer import Encoder, load
from pipeline.tokenizer_engines import Engine
from pipeline.transforms import ingest, tokenize


@functools.lru_cache(maxsize=1)
def encoder(settings: Tokenizer, engine: Engine) -> Encoder:
    """The tokenizer, read once a process."""
    return load(settings, engine)


def _sampler(bound: int | None) -> Callable[[bytes], bool] | None:
    """With --limit: is the document of this id in the sample?"""
    if bound is None:
        return None
    return lambda document_id: int.from_bytes(document_id[:8], "big") < bound


PARTS: dict[str, PartStage] = {
    "ingest": PartStage(
        (),
        lambda job, part: ingest.outputs(job.root, part),
        lambda job, shard: ingest.ingest(
            job.root,
            shard,
            job.input(shard.source),
            job.settings.extractor,
            job.settings.hard,
            _sampler(job.id_bound),
            tolerant=job.settings.max_bad_files > 0,
            forgotten=forgotten.checker(job.root, job.settings.near),
        ),
    ),
}
TEXTS: dict[str, TextStage] = {
    "tokens": TextStage(
        ("ingest",),
        lambda job, part: tokenize.outputs(job.root, job.tokenizer_hash, part),
        lambda job, part: tokenize.tokenize(job.root, encoder(job.tokenizer, job.engine), part),
    ),
}
