"""Make the tokens of a tokenizer beside the first of a corpus, part by part, and say so in
corpus.json."""

from __future__ import annotations

import functools
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq

from pipeline import added_tokenizers, forks, launch, progress, publish, timings
from pipeline.accounts import Summed
from pipeline.added_tokenizers import Added
from pipeline.amounts import counted
from pipeline.config import ConfigError, check
from pipeline.corpus import CorpusError, manifest, part_paths
from pipeline.encoder import Encoder
from pipeline.engine_choice import engine_of, tell, why_slow
from pipeline.files import read_sealed, remove_temporaries, write_sealed
from pipeline.job import SAMPLE_BYTES, SAMPLE_RECORDS_A_SHARD, SAMPLE_SHARDS
from pipeline.settings import CorpusSettings, Tokenizer
from pipeline.stages import Job
from pipeline.staleness import Fingerprints, make_job, missing_parts, records
from pipeline.tokenizer import load, save
from pipeline.tokenizer_engines import Engine


def tokenize(root: Path, settings: Tokenizer, name: str | None, num_workers: int) -> None:
    """Add a tokenizer to the finished corpus at `root`, and make its tokens where they are missing.
    Call it while holding the corpus.

    Raises:
        ConfigError: the tokenizer cannot be used, or another one has its name.
        CorpusError: the documents are not as this version of assay would make them.
    """

    encoder = load(settings)
    name = name or added_tokenizers.name_of(settings.file)
    _check_name(root, settings, name, encoder.hash)
    if encoder.hash not in {added.hash for added in added_tokenizers.listed(root)}:
        engine = _save(root, settings.file, encoder)
        policy = settings.bos, settings.eos
        added_tokenizers.add(root, Added(name, encoder.hash, *policy, engine))
    _make(root, encoder.hash, num_workers)


def _check_name(root: Path, settings: Tokenizer, name: str, identity: str) -> None:
    found = manifest(root)
    if identity == found["tokenizer"]["hash"]:
        raise ConfigError(f"{settings.file} is the first tokenizer of {root}; nothing to add")
    for other, known in added_tokenizers.hashes(found):
        if (other == name) != (known == identity):
            remedy = "give it another --name" if other == name else f"it is there as {other!r}"
            raise ConfigError(
                f"{root} has {other!r} ({known}), and {settings.file} is {identity}: {remedy}"
            )


def _save(root: Path, file: str, encoder: Encoder) -> Engine:
    """Keep a copy in the corpus, with the engine that is right for it."""
    folder = root / "tokens" / encoder.hash
    files, texts = save(encoder, folder), list(_sample(root))
    why = forks.apart(functools.partial(why_slow, folder / "tokenizer.json", texts))()
    engine = engine_of(encoder, why)
    chosen = {
        "engine": engine,
        "why": why,
        "documents": len(texts),
        "sampled": "",
        "files": files,
    }
    write_sealed(folder / "engine.json", chosen)
    tell(file, chosen)
    return engine


def _make(root: Path, identity: str, num_workers: int) -> None:

    job = _job(root)
    stage = f"tokens/{identity}"
    if stale := missing_parts(job, "ingest"):
        raise CorpusError(
            f"{root}: {counted(len(stale), 'part')} of its documents would be made otherwise by "
            "this version of assay or from these inputs; call `assay prepare` first"
        )
    if missing := missing_parts(job, stage):
        remove_temporaries(root)
        publish.begin(root)
        shown = progress.shown(job, {stage: len(missing)})
        launch.run_sweep(job, (stage,), num_workers, shown)
        publish.gather(root)
        print(f"{root}: made {counted(len(missing), 'part')} of {stage}", file=sys.stderr)
    describe(root)


def _job(root: Path) -> Job:
    """The job that made the corpus, and what was added since."""

    found = manifest(root)
    settings = check(found["settings"], CorpusSettings, str(root / "corpus.json"))
    own = root / "tokens" / found["tokenizer"]["hash"] / "tokenizer.json"
    first = load(settings.tokenizer.model_copy(update={"file": str(own)}))
    limit = read_sealed(root / "limit.json")
    bound = int(limit["bound"]) if limit else None
    return make_job(root, settings, replace(first, engine=found["tokenizer"]["engine"]), bound)


def describe(root: Path) -> None:
    """Say in corpus.json which tokenizers the corpus has now."""

    job, found = _job(root), manifest(root)
    prints = Fingerprints(job)
    stages = {k: v for k, v in found["stages"].items() if not k.startswith("tokens/")}
    for added in job.added:
        summed = Summed(prints.own[added.stage])
        for record in records(job, prints, added.stage):
            assert record is not None, f"{added.stage} was not made"
            summed.add(record)
        stages[added.stage] = summed.entry()
    policies = added_tokenizers.policies(root, job.added)
    write_sealed(root / "corpus.json", found | {"tokenizers": policies, "stages": stages})
    timings.write(root)
    publish.finish(root)


def _sample(root: Path) -> Iterator[str]:
    """Documents from all over a corpus, up to SAMPLE_BYTES of text."""

    paths = part_paths(root, "documents")
    chosen = paths[:: -(-len(paths) // SAMPLE_SHARDS)] if paths else []
    for path in chosen:
        left = SAMPLE_BYTES // len(chosen)
        batches = pq.ParquetFile(path).iter_batches(SAMPLE_RECORDS_A_SHARD, columns=["text"])
        first = next(batches, None)
        for text in first["text"].drop_null().to_pylist() if first else ():
            if left <= 0:
                break
            yield text[:left]
            left -= len(text.encode())
