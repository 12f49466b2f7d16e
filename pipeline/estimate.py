"""`assay prepare --estimate`: the stages on a sample of the input, scaled to all of it."""

from __future__ import annotations

import contextlib
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import xxhash

from pipeline.amounts import counted
from pipeline.commits import record_path
from pipeline.files import read_json
from pipeline.inputs import input_files
from pipeline.job import plan_job
from pipeline.preconditions import check
from pipeline.readers import Piece
from pipeline.readers.files import file_size
from pipeline.readers.formats import READERS, cut, format_of
from pipeline.readers.streams import BrokenStream, chunks
from pipeline.run import run_part, run_sweep
from pipeline.settings import CorpusSettings
from pipeline.shards import Key, load_shards, spill_folder, write_shards
from pipeline.stages import JOINS, Job, text_stage
from pipeline.tokenizer import load

SAMPLE_BYTES = 16_000_000  # of text, about: some seconds
EXPANSION = 3  # bytes of text in a byte of a large compressed file, about


def estimate(settings: CorpusSettings, workers: int) -> str:
    """Run the stages of a part on pieces of every source and say what all of it would take.

    Of each source pieces are taken by a hash of their names, its share of SAMPLE_BYTES, at least
    one. Joins (near duplicates, held-out text) and start-up are not in it: on 72 MB of real text
    they were a tenth of the time and 6 seconds.
    """
    check(settings)
    files = input_files(settings)
    with tempfile.TemporaryDirectory(prefix="assay-estimate-") as folder:
        root = Path(folder)
        pieces, totals = _pieces(files, settings.shard_bytes, root)
        sample = _sample(pieces, totals)
        write_shards(root, files, sample)
        job = plan_job(root, settings, load(settings.tokenizer), load_shards(root))
        for shard in job.shards:
            run_part(job, "ingest", shard)
            run_sweep(job, ("signals/language",), shard)
            run_sweep(job, _swept(job), shard)
        rows = [_row(job, source, totals[source]) for source in totals]
    everything = {key: sum(row[key] for row in rows) for key in rows[0] if key != "source"}
    lines = [
        f"sample: {len(sample)} of {counted(len(pieces), 'piece')}, "
        f"{counted(everything['seen'], 'record')}",
        "all of it, about, before joins:",
        *(_line(row["source"], row) for row in rows),
        _line("all", everything),
        f"time   at least {everything['cpu_seconds'] / workers:,.0f} s "
        f"with {counted(workers, 'worker')}",
        f"disk   {everything['disk'] / 1e6:,.0f} MB, packed windows apart",
    ]
    return "\n".join(lines)


def _swept(job: Job) -> tuple[str, ...]:
    """All of the sweep that needs no join."""
    return tuple(stage for stage in job.sweep if JOINS.keys().isdisjoint(text_stage(stage).after))


def _row(job: Job, source: str, text_bytes: int) -> dict[str, Any]:
    """What a source would take: the counters of its sample, scaled to all of its text."""
    shards = [shard for shard in job.shards if shard.source == source]
    scale = text_bytes / max(1, sum(shard.text_bytes for shard in shards))
    records = {
        stage: [read_json(record_path(job.root, job.record_name(stage), s.part)) for s in shards]
        for stage in ("ingest", "signals/language", *_swept(job))
    }
    made = [record for stage in records.values() for record in stage]
    files = [c for record in records["ingest"] for c in record["counters"]["files"].values()]
    seen = sum(counts["records"] for counts in files)
    return {
        "source": source,
        "seen": seen,
        "records": seen * scale,
        "documents": sum(counts["kept"] for counts in files) * scale,
        "bytes": sum(record["counters"]["bytes"] for record in records["ingest"]) * scale,
        "tokens": sum(record["counters"]["tokens"] for record in records["tokens"]) * scale,
        "disk": sum(o["bytes"] for record in made for o in record["outputs"].values()) * scale,
        "cpu_seconds": sum(record["cpu_seconds"] for record in made) * scale,
    }


def _line(name: str, row: dict[str, Any]) -> str:
    kept = row["documents"] / max(1, row["records"])
    return (
        f"  {name:<20}{row['records']:>14,.0f} records, {kept:6.1%} kept, "
        f"{row['bytes'] / 1e6:>10,.1f} MB, {row['tokens']:>16,.0f} tokens"
    )


def _pieces(
    files: dict[Key, str], shard_bytes: int, root: Path
) -> tuple[list[tuple[str, Piece]], dict[str, int]]:
    """All pieces with their sources, and the bytes of text of each source, about. Of a stream that
    would have to be written out first, the head stands for the whole."""
    pieces: list[tuple[str, Piece]] = []
    totals = Counter[str]()
    for (source, file), path in files.items():
        found = cut(path, file, shard_bytes)
        if found is None:
            found = [_head(path, file, root / spill_folder((source, file)))]
            totals[source] += EXPANSION * file_size(path)
        else:
            totals[source] += sum(piece.num_bytes for piece in found)
        pieces += [(source, piece) for piece in found]
    return pieces, dict(totals)


def _head(path: str, file: str, folder: Path) -> Piece:
    """The first SAMPLE_BYTES of a compressed stream, to the end of a record, as a plain file."""
    borders = READERS[format_of(file)].borders
    assert borders is not None, f"{file}: `cut` says that it is to be spilled"
    folder.mkdir(parents=True)
    head = folder / "head"
    with open(head, "wb") as written, contextlib.suppress(BrokenStream):
        for chunk in borders(chunks(path), SAMPLE_BYTES):
            if chunk is None:
                break
            written.write(chunk)
    return Piece(str(head), file, num_bytes=head.stat().st_size, spilled=True)


def _sample(pieces: list[tuple[str, Piece]], totals: dict[str, int]) -> list[tuple[str, Piece]]:
    """Of each source, pieces in order of a hash of their names until they hold its share."""
    share = {s: SAMPLE_BYTES * n / max(1, sum(totals.values())) for s, n in totals.items()}
    chosen: list[tuple[str, Piece]] = []
    for source, piece in sorted(pieces, key=_hash):
        if share[source] > 0:
            chosen.append((source, piece))
            share[source] -= piece.num_bytes
    return chosen


def _hash(entry: tuple[str, Piece]) -> bytes:
    source, piece = entry
    return xxhash.xxh3_64_digest(f"{source}\0{piece.file}\0{piece.begin}".encode())
