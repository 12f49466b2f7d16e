"""in = kept + rejected: the sums that are checked after every run, and the totals of each stage."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from pipeline import store
from pipeline.corpus import CorpusError, record_path
from pipeline.files import part_name, read_json, read_sealed
from pipeline.planning import too_many
from pipeline.ranges import open_file
from pipeline.settings import CorpusSettings
from pipeline.shards import unreadable_files
from pipeline.stages import JOINS, Job

# Reasons of streams.BrokenStream, and of what ends early without being packed.
BROKEN = re.compile("truncated_|damaged_|not_(gzip|zstd|bzip2|xz)$")


def records_of(job: Job, stage: str) -> list[dict[str, Any]]:
    """The commit records of a stage, by part or partition."""
    parts = range(JOINS[stage].partitions(job)) if stage in JOINS else job.parts
    return [read_json(record_path(job.root, job.record_name(stage), part)) for part in parts]


def file_accounts(ingested: list[dict[str, Any]]) -> dict[str, dict[str, int]]:
    """Records, kept, rejected (and not_sampled) of each `source/file` over all its shards."""
    accounts: dict[str, Counter[str]] = {}
    for record in ingested:
        counters = record["counters"]
        for file, counts in counters["files"].items():
            accounts.setdefault(f"{counters['source']}/{file}", Counter()).update(counts)
    return {file: dict(counts) for file, counts in sorted(accounts.items())}


def bad_files(job: Job) -> list[dict[str, str]]:
    """Source, file and reason of each input file that failed, once."""
    found = {(b["source"], b["file"]): b for b in unreadable_files(job.root)}
    for record in records_of(job, "ingest"):
        source = record["counters"]["source"]
        for bad in record["counters"].get("bad_files", ()):
            found.setdefault((source, bad["file"]), {"source": source, **bad})
    return [found[key] for key in sorted(found)]


def broken_files(job: Job) -> list[dict[str, str]]:
    """Source, file and detail of each compressed file whose stream broke: what stands behind the
    fault is missing, and what stands before it may be spoilt (gzip checks a member at its end)."""
    found: list[dict[str, str]] = []
    for record in records_of(job, "ingest"):
        if any(map(BROKEN.match, record["counters"]["reasons"])):
            name = f"rejects/{part_name(record['part'])}"
            with open_file(store.location(job.root, name, record["outputs"][name])) as file:
                rejects = pq.read_table(file, columns=["source", "file", "reason", "detail"])
            found += [row for row in rejects.to_pylist() if BROKEN.match(row.pop("reason"))]
    return sorted(found, key=lambda row: (row["source"], row["file"]))


def parts_with_bad_files(root: Path) -> list[int]:
    """Parts in which an input file failed when they were made."""
    records = map(read_sealed, (root / "stats" / "ingest").glob("part-*.json"))
    return [r["part"] for r in records if r and r["counters"].get("bad_files")]


def empty_fields(root: Path, settings: CorpusSettings) -> list[tuple[str, str]]:
    """(source, field) of each field to `keep` that no document of its source has: misspelt?"""
    filled: dict[str, Counter[str]] = {}
    for path in (root / "stats" / "ingest").glob("part-*.json"):
        counters = read_json(path)["counters"]
        if counters["documents"]:
            filled.setdefault(counters["source"], Counter()).update(counters["kept_fields"])
    return [
        (item.source, field)
        for item in settings.inputs
        for field in item.keep
        if item.source in filled and not filled[item.source][field]
    ]


def check(job: Job) -> None:
    """Every record of every input file is kept or rejected, and every stage saw every document.

    Raises:
        CorpusError: a sum does not add up; names the file or part. More input files failed than
            `max_bad_files`; names them.
    """
    bad = [f"{b['source']}/{b['file']}: {b['reason']}" for b in bad_files(job)]
    if len(bad) > job.settings.max_bad_files:
        raise CorpusError(too_many(bad, job.settings.max_bad_files))
    ingested = records_of(job, "ingest")
    for file, c in file_accounts(ingested).items():
        if c["records"] != c["kept"] + c["rejected"] + c.get("not_sampled", 0):
            raise CorpusError(f"{job.root}: input {file} does not add up: {c}")
    for record in ingested:
        name, counters = part_name(record["part"]), record["counters"]
        kept = _rows(job, record, f"documents/{name}")
        rejected = _rows(job, record, f"rejects/{name}")
        if kept != counters["documents"] or rejected != sum(counters["reasons"].values()):
            raise CorpusError(
                f"{job.root}: part {record['part']} holds {kept} documents and {rejected} rejects, "
                f"its record says {counters['documents']} and {sum(counters['reasons'].values())}"
            )
    documents = {r["part"]: r["counters"]["documents"] for r in ingested}
    for stage in ("signals/language", *job.sweep):
        for record in records_of(job, stage):
            if record["counters"]["documents"] != documents[record["part"]]:
                raise CorpusError(
                    f"{job.root}: stage {stage} measured {record['counters']['documents']} of "
                    f"{documents[record['part']]} documents of part {record['part']}"
                )


def totals(job: Job) -> dict[str, dict[str, Any]]:
    """What corpus.json keeps of each stage: fingerprint, summed counters, seconds."""
    stages: dict[str, dict[str, Any]] = {}
    for stage in job.stages:
        records = records_of(job, stage)
        summed: Counter[str] = Counter()
        for record in records:
            summed.update({k: v for k, v in record["counters"].items() if isinstance(v, int)})
        stages[stage] = {
            "fingerprint": dict(job.prints)[stage],
            "totals": dict(summed),
            "seconds": round(sum(r["seconds"] for r in records), 3),
            "cpu_seconds": round(sum(r["cpu_seconds"] for r in records), 3),
        }
    ingested = records_of(job, "ingest")
    accounts = file_accounts(ingested).values()
    reasons: Counter[str] = Counter()
    for record in ingested:
        reasons.update(record["counters"]["reasons"])
    stages["ingest"]["totals"] |= {
        key: sum(c.get(key, 0) for c in accounts)
        for key in ("records", "kept", "rejected", "not_sampled")
    } | {"reasons": dict(sorted(reasons.items()))}
    return stages


def _rows(job: Job, record: dict[str, Any], name: str) -> int:
    """Rows of a file by its footer, which a store gives without the rest."""
    with open_file(store.location(job.root, name, record["outputs"][name])) as file:
        rows: int = pq.read_metadata(file).num_rows
    return rows
