"""`assay prepare --estimate`: the stages on a sample of the input, scaled to all of it."""

from __future__ import annotations

import tempfile
from pathlib import Path

import xxhash

from pipeline.accounts import file_accounts
from pipeline.corpus import record_path
from pipeline.files import read_json
from pipeline.prepare import make
from pipeline.settings import CorpusSettings
from pipeline.shards import Shard, plan_shards
from pipeline.stages import run_part

SAMPLE_BYTES = 16_000_000  # of text, about: some seconds


def estimate(settings: CorpusSettings, workers: int) -> str:
    """Run the stages of a part on some shards and say what all of the input would take.

    Shards are taken by a hash of their names, at least one, so that the sample is a fair one of a
    large input; a small input is measured whole. Joins (near duplicates, held-out text) are not in
    it: on a corpus of 100 MB they were a tenth of the time.
    """
    with tempfile.TemporaryDirectory(prefix="assay-estimate-") as folder:
        root = Path(folder)
        shards = plan_shards(root, settings)
        sample = _sample(shards)
        job = make(root, settings, shards)
        for shard in sample:
            for stage in job.part_stages:
                run_part(job, stage, shard)
        records = {
            stage: [read_json(record_path(root, stage, shard.part)) for shard in sample]
            for stage in job.part_stages
        }
    scale = sum(s.text_bytes for s in shards) / max(1, sum(s.text_bytes for s in sample))
    everything = [record for made in records.values() for record in made]
    cpu_seconds = sum(record["cpu_seconds"] for record in everything)
    disk = sum(o["bytes"] for record in everything for o in record["outputs"].values())
    accounts = file_accounts(records["ingest"]).values()
    seen = sum(counts["records"] for counts in accounts)
    kept = sum(counts["kept"] for counts in accounts)
    text = sum(record["counters"]["bytes"] for record in records["ingest"])
    tokens = sum(record["counters"]["tokens"] for record in records["tokens"])
    lines = [
        f"sample: {len(sample)} of {len(shards)} shards, {seen:,} records, {text / 1e6:,.1f} MB of "
        f"text, {cpu_seconds:.1f} CPU seconds",
        f"all of it, about: {seen * scale:,.0f} records, {text * scale / 1e6:,.0f} MB of text, "
        f"{tokens * scale:,.0f} tokens",
        f"  time  {cpu_seconds * scale / workers:,.0f} s with {workers} workers, before joins",
        f"  disk  {disk * scale / 1e6:,.0f} MB",
        f"  kept  {kept / max(1, seen):.1%} of the records become documents",
    ]
    return "\n".join(lines)


def _sample(shards: list[Shard]) -> list[Shard]:
    """Shards in order of a hash of their pieces until they hold SAMPLE_BYTES of text."""
    ordered = sorted(shards, key=lambda s: xxhash.xxh3_64_digest(repr(s.pieces).encode()))
    chosen: list[Shard] = []
    for shard in ordered:
        chosen.append(shard)
        if sum(s.text_bytes for s in chosen) >= SAMPLE_BYTES:
            break
    return chosen
