"""in = kept + rejected + forgotten: the sums that are checked after every run, and the totals of
each stage."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from pipeline import store, timings
from pipeline.corpus import CorpusError
from pipeline.files import part_name, read_json, read_sealed
from pipeline.planning import too_many
from pipeline.ranges import open_file
from pipeline.settings import CorpusSettings
from pipeline.shards import unreadable_files
from pipeline.stages import JOINS, Job, is_text_stage
from pipeline.staleness import Fingerprints, records

# Reasons of streams.BrokenStream, and of what ends early without being packed.
BROKEN = re.compile("truncated_|damaged_|not_(gzip|zstd|bzip2|xz)$")
FATES = ("kept", "rejected", "not_sampled", "forgotten")  # each record has one


@dataclass
class Accounts:
    """What the commit records of a finished run say. Each is read once, and let go of: 140,000 of
    10,000 parts would be 500 MB."""

    bad_files: list[dict[str, str]]  # source, file and reason of each input file that failed
    # Source, file and detail of each compressed file whose stream broke: what stands behind the
    # fault is missing, and what stands before it may be spoilt (gzip checks a member at its end).
    broken_files: list[dict[str, str]] = field(default_factory=list)
    files: dict[str, Counter[str]] = field(default_factory=dict)  # by source/file: see add_files
    reasons: Counter[str] = field(default_factory=Counter)  # of rejects
    parts: dict[int, tuple[int, int]] = field(default_factory=dict)  # documents, bytes of text
    hashes: dict[str, str] = field(default_factory=dict)  # of what part stages made, by path
    stages: dict[str, dict[str, Any]] = field(default_factory=dict)  # as corpus.json keeps them
    timings: dict[str, pa.Table] = field(default_factory=dict)  # rows, by folder of the records


@dataclass
class Summed:
    """The records of a stage, added up."""

    fingerprint: str
    totals: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0
    cpu_seconds: float = 0.0

    def add(self, record: dict[str, Any]) -> None:
        self.totals.update({k: v for k, v in record["counters"].items() if isinstance(v, int)})
        self.seconds += record["seconds"]
        self.cpu_seconds += record["cpu_seconds"]

    def entry(self) -> dict[str, Any]:
        """As corpus.json keeps it."""
        return {
            "fingerprint": self.fingerprint,
            "totals": dict(self.totals),
            "seconds": round(self.seconds, 3),
            "cpu_seconds": round(self.cpu_seconds, 3),
        }


def add_up(job: Job) -> Accounts:
    """Every record of every input file is kept, rejected or forgotten, and every stage saw every
    document.

    Raises:
        CorpusError: a sum does not add up; names the file or part. More input files failed than
            `max_bad_files`; names them.
    """
    found = Accounts(unreadable_files(job.root))
    prints = Fingerprints(job)
    for stage in job.stages:
        rows = []
        summed = Summed(prints.own[stage])
        for record in records(job, prints, stage):
            assert record is not None, f"{stage} was not made"
            if stage == "ingest":
                _add_ingested(job, found, record)
            elif is_text_stage(stage):
                _check_documents(job, found, record)
            text_bytes = None
            if stage not in JOINS:
                found.hashes |= {path: o["xxh3"] for path, o in record["outputs"].items()}
                text_bytes = found.parts[record["part"]][1]
            summed.add(record)
            rows.append(timings.row(record, text_bytes))
        found.stages[stage] = summed.entry()
        found.timings[job.record_name(stage)] = timings.table(rows)
        if stage == "ingest":
            _close_ingest(job, found)
    return found


def add_files(files: dict[str, Counter[str]], ingested: dict[str, Any]) -> None:
    """Add what a record of ingest says to the records of each `source/file`, and to what became of
    them: see FATES."""
    counters = ingested["counters"]
    for file, counts in counters["files"].items():
        files.setdefault(f"{counters['source']}/{file}", Counter()).update(counts)


def _add_ingested(job: Job, found: Accounts, record: dict[str, Any]) -> None:
    name, counters = part_name(record["part"]), record["counters"]
    kept = _rows(job, record, f"documents/{name}")
    rejected = _rows(job, record, f"rejects/{name}")
    if kept != counters["documents"] or rejected != sum(counters["reasons"].values()):
        raise CorpusError(
            f"{job.root}: part {record['part']} holds {kept} documents and {rejected} rejects, "
            f"its record says {counters['documents']} and {sum(counters['reasons'].values())}"
        )
    add_files(found.files, record)
    found.reasons.update(counters["reasons"])
    found.parts[record["part"]] = counters["documents"], counters["bytes"]
    found.bad_files += [{"source": counters["source"], **b} for b in counters.get("bad_files", ())]
    if any(map(BROKEN.match, counters["reasons"])):
        path = f"rejects/{name}"
        with open_file(store.location(job.root, path, record["outputs"][path])) as file:
            rejects = pq.read_table(file, columns=["source", "file", "reason", "detail"])
        found.broken_files += [r for r in rejects.to_pylist() if BROKEN.match(r.pop("reason"))]


def _close_ingest(job: Job, found: Accounts) -> None:
    """All input files have been read: what stands of each over all its shards."""
    once = {(bad["source"], bad["file"]): bad for bad in reversed(found.bad_files)}
    found.bad_files = [once[key] for key in sorted(once)]
    found.broken_files.sort(key=lambda row: (row["source"], row["file"]))
    bad = [f"{b['source']}/{b['file']}: {b['reason']}" for b in found.bad_files]
    if len(bad) > job.settings.max_bad_files:
        raise CorpusError(too_many(bad, job.settings.max_bad_files))
    for file, counts in sorted(found.files.items()):
        if counts["records"] != sum(counts[fate] for fate in FATES):
            raise CorpusError(f"{job.root}: input {file} does not add up: {dict(counts)}")
    found.stages["ingest"]["totals"] |= {
        key: sum(counts[key] for counts in found.files.values()) for key in ("records", *FATES)
    } | {"reasons": dict(sorted(found.reasons.items()))}


def _check_documents(job: Job, found: Accounts, record: dict[str, Any]) -> None:
    measured, (documents, _) = record["counters"]["documents"], found.parts[record["part"]]
    if measured != documents:
        raise CorpusError(
            f"{job.root}: stage {record['stage']} measured {measured} of {documents} documents of "
            f"part {record['part']}"
        )


def _rows(job: Job, record: dict[str, Any], name: str) -> int:
    """Rows of a file by its footer, which a store gives without the rest."""
    with open_file(store.location(job.root, name, record["outputs"][name])) as file:
        rows: int = pq.read_metadata(file).num_rows
    return rows


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
