"""Documents and their tokens."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING

from pipeline import forgotten
from pipeline.encoder import Encoder
from pipeline.settings import Tokenizer
from pipeline.stage_kinds import PartStage, TextStage
from pipeline.tokenizer import load
from pipeline.tokenizer_engines import TOKENIZERS, Engine
from pipeline.transforms import ingest, tokenize

if TYPE_CHECKING:
    from pipeline.stages import Job
    from pipeline.transforms.sweep import Stage


@functools.lru_cache(maxsize=TOKENIZERS)
def encoder(settings: Tokenizer, engine: Engine) -> Encoder:
    """The tokenizer, read once a process."""
    return load(settings, engine)


def added_tokens(tokenizer_hash: str) -> TextStage:
    """The tokens of a tokenizer beside the first."""

    def steps(job: Job, part: int) -> Stage:
        (own,) = (added for added in job.added if added.hash == tokenizer_hash)
        return tokenize.tokenize(job.root, encoder(own.settings(job.root), own.engine), part)

    return TextStage(
        ("ingest",), lambda job, part: tokenize.outputs(job.root, tokenizer_hash, part), steps
    )


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
