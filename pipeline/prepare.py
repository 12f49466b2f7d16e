"""One run of `prepare`: shards, fingerprints, the pipeline if anything is missing, the accounts."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from filters import normalize
from pipeline import accounts, corpus, progress
from pipeline.config import ConfigError
from pipeline.files import read_json, remove_temporaries, write_json
from pipeline.readers import Record
from pipeline.readers.formats import read
from pipeline.schema import FORMAT_VERSION, document_id
from pipeline.settings import CorpusSettings
from pipeline.shards import Shard, plan_shards
from pipeline.stages import Job, make_job, missing
from pipeline.tokenizer import choose_engine, find, load, save

SAMPLE_BYTES = 1_000_000  # of text on which the fast tokenizer must agree with the reference
SAMPLE_RECORDS_A_SHARD = 50


@dataclass(frozen=True)
class Prepared:
    root: Path
    manifest: dict[str, Any]
    made: dict[str, int]  # parts that each stage made in this run; empty: all stood already
    seconds: float


def prepare(
    settings: CorpusSettings, workers: int, limit: int | None = None, refresh: bool = False
) -> Prepared:
    """Make or complete a corpus; what stands with the same fingerprint is not made again."""
    began = time.perf_counter()
    assert settings.output is not None, "load_corpus sets the output"
    root = Path(settings.output)
    if limit is not None:
        root = root.with_name(f"{root.name}-limit-{limit}")
    with corpus.locked(root):
        shards = plan_shards(root, settings, refresh)
        job = make(root, settings, shards, limit)
        made = missing(job)
        stands = (root / "corpus.json").exists()
        if made or not stands or read_json(root / "corpus.json")["settings"] != _settings(job):
            (root / "corpus.json").unlink(missing_ok=True)
            remove_temporaries(root)
            if made:
                _run(job, workers)
            left = missing(job)
            assert not left, f"stages not made: {left}"
            accounts.check(job)
            _prune(job)
            write_json(root / "corpus.json", _manifest(job))
        return Prepared(root, corpus.manifest(root), made, time.perf_counter() - began)


def _run(job: Job, workers: int) -> None:
    from pipeline.runners import run_local  # Beam takes 2 seconds to load: only where it runs

    with progress.shown(job):
        run_local(job, workers)


def make(
    root: Path, settings: CorpusSettings, shards: list[Shard], limit: int | None = None
) -> Job:
    """The job: tokenizer chosen and saved, stages fingerprinted."""
    bound = _id_bound(settings, shards, limit) if limit is not None else None
    encoder = load(settings.tokenizer)
    folder = root / "tokens" / encoder.hash
    if not (folder / "policy.json").exists():
        sample = list(_sample(settings, shards))
        engine = choose_engine(find(settings.tokenizer.file), sample)
        save(load(settings.tokenizer, engine), folder)
        write_json(folder / "engine.json", {"engine": engine, "agreed_on_documents": len(sample)})
    engine = read_json(folder / "engine.json")["engine"]
    return make_job(root, settings, load(settings.tokenizer, engine), shards, bound)


def _sample(settings: CorpusSettings, shards: list[Shard]) -> Iterator[str]:
    """The first records of every shard, up to SAMPLE_BYTES of text over all."""
    share = max(1, SAMPLE_BYTES // max(1, len(shards)))
    sources = {item.source: item for item in settings.inputs}
    for shard in shards:
        left = share
        records = read(shard.pieces[0], sources[shard.source], settings.extractor)
        for record in itertools.islice(records, SAMPLE_RECORDS_A_SHARD):
            if isinstance(record, Record) and left > 0:
                text = normalize.normalize(record.text)[0][:left]
                left -= len(text.encode())
                yield text


def _id_bound(settings: CorpusSettings, shards: list[Shard], limit: int) -> int:
    """The bound on ids below which `limit` records of all inputs lie; reads every record once."""
    sources = {item.source: item for item in settings.inputs}
    positions = sorted(
        int.from_bytes(document_id(shard.source, piece.file, record.offset)[:8], "big")
        for shard in shards
        for piece in shard.pieces
        for record in read(piece, sources[shard.source], settings.extractor)
    )
    return positions[limit] if limit < len(positions) else 1 << 64


def _settings(job: Job) -> dict[str, Any]:
    dumped: dict[str, Any] = job.settings.model_dump(mode="json")
    return dumped


def _manifest(job: Job) -> dict[str, Any]:
    policy = read_json(job.root / "tokens" / job.tokenizer_hash / "policy.json")
    return {
        "format": FORMAT_VERSION,
        "name": job.root.name,
        "settings": _settings(job),
        "tokenizer": policy | {"engine": job.engine},
        "signals": ["normalize", *job.settings.signals, *_attached(job)],
        "meta": sorted({field for item in job.settings.inputs for field in item.keep}),
        "parts": job.parts,
        "stages": accounts.totals(job),
        "finished": True,
    }


def _attached(job: Job) -> list[str]:
    """Signal groups that `assay attach` added, as long as they cover every part."""
    own = {"normalize", *job.settings.signals}
    groups = sorted(p.name for p in (job.root / "signals").iterdir() if p.name not in own)
    return [g for g in groups if len(corpus.part_paths(job.root, f"signals/{g}")) == len(job.parts)]


def _prune(job: Job) -> None:
    """Delete what belongs to parts that no input has any more, and the spent files of joins."""
    parts = set(job.parts)
    by_part = ["documents", "rejects", "signatures", "signatures/keys", "heldout/matches"]
    by_part += [f"signals/{p.name}" for p in (job.root / "signals").iterdir()]
    by_part += [f"tokens/{p.name}" for p in (job.root / "tokens").iterdir()]
    by_part += [f"tokens/{p.name}/counts" for p in (job.root / "tokens").iterdir()]
    by_part += [f"stats/{stage}" for stage in (*job.part_stages, "candidates", "matches")]
    for table in by_part:
        for path in (job.root / table).glob("part-*"):
            if corpus.part_number(path) not in parts:
                path.unlink()


def require_documents(prepared: Prepared) -> None:
    """Refuse a corpus of nothing.

    Raises:
        ConfigError: every record was rejected; names the reasons.
    """
    counted = prepared.manifest["stages"]["ingest"]["totals"]
    if counted["kept"] == 0:
        raise ConfigError(
            f"{prepared.root}: none of {counted['records']:,} records became a document; "
            f"reasons: {counted['reasons']}; see `assay sql {prepared.root} 'from rejects'`"
        )
