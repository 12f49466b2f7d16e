"""The job of a run, as far as a look at the inputs decides it: which implementation of the
tokenizer is right for them, and with --limit which ids are in the sample."""

from __future__ import annotations

import contextlib
import functools
import heapq
import itertools
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

from filters import normalize
from pipeline import forks
from pipeline.encoder import Encoder
from pipeline.engine_choice import engine_of, tell, why_slow
from pipeline.files import read_sealed, write_sealed
from pipeline.fingerprint import fingerprint, versions
from pipeline.readers import Record
from pipeline.readers.formats import read
from pipeline.schema import document_id
from pipeline.settings import CorpusSettings
from pipeline.shards import Shard
from pipeline.stages import Job
from pipeline.staleness import make_job
from pipeline.tokenizer import save, stands

SAMPLE_BYTES = 1_000_000  # of text on which the fast tokenizer must agree with the reference
SAMPLE_SHARDS = 100
SAMPLE_RECORDS_A_SHARD = 50


def plan_job(
    root: Path,
    settings: CorpusSettings,
    encoder: Encoder,
    shards: list[Shard],
    limit: int | None = None,
    meanwhile: Callable[[], object] = lambda: None,
) -> Job:
    """The job: the tokenizer saved with the engine that is right for this corpus, all stages
    fingerprinted.

    Args:
        meanwhile: called while another process tries the engines.
    """
    bound = _id_bound(root, settings, shards, limit) if limit is not None else None
    folder = root / "tokens" / encoder.hash
    sources = {item.source: item.model_dump(exclude={"files"}) for item in settings.inputs}
    sampled = fingerprint(sources, versions(["fastokens", "tokenizers"]))
    chosen = read_sealed(folder / "engine.json")
    if (
        chosen is None
        or chosen["sampled"] != sampled
        or not stands(folder, chosen.get("files", {}))
    ):
        sample = list(_sample(settings, shards))
        # Apart: both engines and their ids would stay in this process, 80 MB, while workers work.
        files = save(encoder, folder)
        try_engines = functools.partial(why_slow, folder / "tokenizer.json", sample)
        found = forks.apart(try_engines)
        meanwhile()
        chosen = {
            "engine": engine_of(encoder, why := found()),
            "why": why,
            "documents": len(sample),
            "sampled": sampled,
            "files": files,
        }
        write_sealed(folder / "engine.json", chosen)
    tell(settings.tokenizer.file, chosen)
    return make_job(root, settings, replace(encoder, engine=chosen["engine"]), bound)


def _sample(settings: CorpusSettings, shards: list[Shard]) -> Iterator[str]:
    """The first records of shards from all over, up to SAMPLE_BYTES of text."""
    chosen = shards[:: -(-len(shards) // SAMPLE_SHARDS)]
    share = SAMPLE_BYTES // max(1, len(chosen))
    sources = {item.source: item for item in settings.inputs}
    for shard in chosen:
        left = share
        records = read(shard.pieces[0], sources[shard.source], settings.extractor)
        with contextlib.suppress(Exception):  # a file that fails: ingest tells of it
            for record in itertools.islice(records, SAMPLE_RECORDS_A_SHARD):
                if left <= 0:
                    break
                if isinstance(record, Record):
                    text = normalize.normalize(record.text)[0][:left]
                    left -= len(text.encode())
                    yield text


def _id_bound(root: Path, settings: CorpusSettings, shards: list[Shard], limit: int) -> int:
    """The bound on ids below which `limit` records of all inputs lie; reads every record once."""
    remembered = read_sealed(root / "limit.json")
    versions_of_shards = [shard.version for shard in shards]
    if remembered is not None and remembered["shards"] == versions_of_shards:
        return int(remembered["bound"])
    sources = {item.source: item for item in settings.inputs}
    positions = (
        int.from_bytes(document_id(shard.source, piece.file, record.offset)[:8], "big")
        for shard in shards
        for piece in shard.pieces
        for record in read(piece, sources[shard.source], settings.extractor)
    )
    lowest = heapq.nsmallest(limit + 1, positions)
    bound = lowest[limit] if limit < len(lowest) else 1 << 64
    write_sealed(root / "limit.json", {"shards": versions_of_shards, "bound": str(bound)})
    return bound
