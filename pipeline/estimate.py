"""`assay prepare --estimate`: the stages on a sample of the input, scaled to all of it."""

from __future__ import annotations

import contextlib
import tempfile
from pathlib import Path

import xxhash

from pipeline.accounts import file_accounts
from pipeline.corpus import record_path
from pipeline.files import read_json
from pipeline.prepare import check, plan_job
from pipeline.readers import Piece
from pipeline.readers.files import file_size
from pipeline.readers.formats import cut
from pipeline.readers.streams import BrokenStream, chunks
from pipeline.run import run_part
from pipeline.settings import CorpusSettings
from pipeline.shards import Key, input_files, load_shards, spill_folder, write_shards

SAMPLE_BYTES = 16_000_000  # of text, about: some seconds
EXPANSION = 3  # bytes of text in a byte of a large compressed file, about


def estimate(settings: CorpusSettings, workers: int) -> str:
    """Run the stages of a part on pieces of the input and say what all of it would take.

    Pieces are taken by a hash of their names until they hold SAMPLE_BYTES. Joins (near duplicates,
    held-out text) are not in it: on 72 MB of real text they were a tenth of the time.
    """
    check(settings)
    files = input_files(settings)
    with tempfile.TemporaryDirectory(prefix="assay-estimate-") as folder:
        root = Path(folder)
        pieces, total = _pieces(files, settings.shard_bytes, root)
        sample = _sample(pieces)
        write_shards(root, files, sample)
        shards = load_shards(root)
        job = plan_job(root, settings, shards)
        for shard in shards:
            for stage in job.part_stages:
                run_part(job, stage, shard)
        records = {
            stage: [
                read_json(record_path(root, job.record_name(stage), shard.part)) for shard in shards
            ]
            for stage in job.part_stages
        }
    scale = total / max(1, sum(piece.num_bytes for _, piece in sample))
    everything = [record for made in records.values() for record in made]
    cpu_seconds = sum(record["cpu_seconds"] for record in everything)
    disk = sum(o["bytes"] for record in everything for o in record["outputs"].values())
    accounts = file_accounts(records["ingest"]).values()
    seen = sum(counts["records"] for counts in accounts)
    kept = sum(counts["kept"] for counts in accounts)
    text = sum(record["counters"]["bytes"] for record in records["ingest"])
    tokens = sum(record["counters"]["tokens"] for record in records["tokens"])
    lines = [
        f"sample: {len(sample)} of {len(pieces)} pieces, {seen:,} records, {text / 1e6:,.1f} MB of "
        f"text, {cpu_seconds:.1f} CPU seconds",
        f"all of it, about: {seen * scale:,.0f} records, {text * scale / 1e6:,.0f} MB of text, "
        f"{tokens * scale:,.0f} tokens",
        f"  time  {cpu_seconds * scale / workers:,.0f} s with {workers} workers, before joins",
        f"  disk  {disk * scale / 1e6:,.0f} MB",
        f"  kept  {kept / max(1, seen):.1%} of the records become documents",
    ]
    return "\n".join(lines)


def _pieces(
    files: dict[Key, str], shard_bytes: int, root: Path
) -> tuple[list[tuple[str, Piece]], int]:
    """All pieces with their sources, and the bytes of text in all files, about. Of a stream that
    would have to be written out first, the head stands for the whole."""
    pieces: list[tuple[str, Piece]] = []
    total = 0
    for (source, file), path in files.items():
        found = cut(path, file, shard_bytes)
        if found is None:
            found = [_head(path, file, root / spill_folder((source, file)))]
            total += EXPANSION * file_size(path)
        else:
            total += sum(piece.num_bytes for piece in found)
        pieces += [(source, piece) for piece in found]
    return pieces, total


def _head(path: str, file: str, folder: Path) -> Piece:
    """The first SAMPLE_BYTES of a compressed stream, to the last line end, as a plain file."""
    head = bytearray()
    with contextlib.suppress(BrokenStream):
        for chunk in chunks(path):
            head += chunk
            if len(head) >= SAMPLE_BYTES:
                break
    whole = head[: head.rfind(b"\n") + 1]
    folder.mkdir(parents=True)
    (folder / "head").write_bytes(whole)
    return Piece(str(folder / "head"), file, num_bytes=len(whole))


def _sample(pieces: list[tuple[str, Piece]]) -> list[tuple[str, Piece]]:
    """Pieces in order of a hash of their names until they hold SAMPLE_BYTES of text."""
    chosen: list[tuple[str, Piece]] = []
    for source, piece in sorted(pieces, key=_hash):
        chosen.append((source, piece))
        if sum(p.num_bytes for _, p in chosen) >= SAMPLE_BYTES:
            break
    return chosen


def _hash(entry: tuple[str, Piece]) -> bytes:
    source, piece = entry
    return xxhash.xxh3_64_digest(f"{source}\0{piece.file}\0{piece.begin}".encode())
