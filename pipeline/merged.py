"""Narrow copies of tables with very many parts, so that SQL opens few files.

DuckDB takes 0.15 ms for every Parquet file and 0.1 to 0.8 ms more for the footer of a part of
`documents` (25 columns, 1 to 8 row groups): 19 CPU seconds for one average over 10,000 parts. So
from MANY_PARTS parts on, `prepare` keeps each BLOCK_PARTS parts of a table as one file more, which
has `part` and `file_row_number` as columns, but no text; corpus.json names the tables. It costs
about a tenth of the text on disk. Attached groups are narrow, and read from their parts.
Of a corpus on a store columns are read by ranges, so that no text comes to the machine that merges.
"""

from __future__ import annotations

import functools
import itertools
import shutil
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from pipeline.commits import Read, location, once, record_path
from pipeline.files import part_name, part_number, read_json, replacing
from pipeline.fingerprint import fingerprint
from pipeline.groups import editors, groups
from pipeline.ranges import open_file
from pipeline.relations import NOT_MERGED, merged_folder
from pipeline.stages import Job
from pipeline.staleness import fingerprints_of
from pipeline.store import REQUESTS

VERSION = 1  # of the form of a block: part of its fingerprint
MANY_PARTS = 1_000
BLOCK_PARTS = 256
ROW_GROUP_ROWS = 122_880  # DuckDB's own
RANGE_BYTES = 1 << 16  # of a store: the columns beside the text, not the text between them
PLACE = pa.schema([("part", pa.int32()), ("file_row_number", pa.int64())])


def renew(job: Job, hashes: Mapping[str, str]) -> list[str]:
    """Merge what came or changed since, where there are many parts; returns the tables merged.

    Call it while holding the corpus, after all stages.

    Args:
        hashes: of every file of a part, by its path inside the corpus.
    """
    if len(job.parts) < MANY_PARTS:
        for unused in ("merged", "stats/merged"):
            shutil.rmtree(job.root / unused, ignore_errors=True)
        return []
    stages = {f"signals/{group}": f"signals/{group}" for group in groups(job.settings)}
    stages |= {f"edits/{name}": f"edits/{name}" for name in editors(job.settings)}
    stages |= dict.fromkeys(("documents", "signals/normalize", "rejects"), "ingest")
    stages |= {f"{job.record_name('tokens')}/counts": "tokens", "heldout/matches": "matches"}
    stages |= {"copies": "signatures"}
    kept = set()
    for table, stage in stages.items():
        for block, group in itertools.groupby(job.parts, key=lambda part: part // BLOCK_PARTS):
            parts = list(group)
            paths = [f"{table}/{part_name(part)}" for part in parts]
            reads = _reads(job, stage, block)
            wanted = fingerprint(VERSION, [(path, hashes[path]) for path in paths])
            output = job.root / merged_folder(table) / part_name(block)
            work = functools.partial(_merge, job.root, job.record_name(stage), table, parts, output)
            own = (f"{table}/",)
            once(job.root, merged_folder(table), block, wanted, [output], work, reads, own)
            kept.add(f"{merged_folder(table)}/{output.stem}")
    for above in (job.root, job.root / "stats"):
        for path in (above / "merged").rglob("part-*"):
            if str(path.relative_to(above).with_suffix("")) not in kept:
                path.unlink()
    return sorted(stages)


def renew_parts(root: Path, tables: list[str], parts: list[int], changed: list[int]) -> None:
    """Merge the blocks of these tables that hold a part that `changed`, of all `parts`, again."""
    for table in tables:
        stage = _stage_of(root, table)
        for block in sorted({part // BLOCK_PARTS for part in changed}):
            inside = [part for part in parts if part // BLOCK_PARTS == block]
            paths = [f"{table}/{part_name(part)}" for part in inside]
            records = [read_json(record_path(root, stage, part)) for part in inside]
            hashes = [r["outputs"][path]["xxh3"] for r, path in zip(records, paths, strict=True)]
            wanted = fingerprint(VERSION, list(zip(paths, hashes, strict=True)))
            output = root / merged_folder(table) / part_name(block)
            work = functools.partial(_merge, root, stage, table, inside, output)
            once(root, merged_folder(table), block, wanted, [output], work)


def _stage_of(root: Path, table: str) -> str:
    """The folder of the commit records of a table."""
    if table in ("documents", "signals/normalize", "rejects"):
        return "ingest"
    named = {"heldout/matches": "matches", "copies": "signatures"}
    return named[table] if table in named else table.removesuffix("/counts")


def _reads(job: Job, stage: str, block: int) -> Iterator[Read]:
    """The commit records of the parts of a block; worked out where it has to be made."""
    prints = fingerprints_of(job)
    for shard in prints.shards:
        if shard.part // BLOCK_PARTS == block:
            yield job.record_name(stage), shard.part, prints.part(stage, shard)


def _merge(root: Path, stage: str, table: str, parts: list[int], output: Path) -> dict[str, Any]:
    names = [f"{table}/{part_name(part)}" for part in parts]
    return merge([location(root, stage, *of) for of in zip(parts, names, strict=True)], output)


def merge(places: list[str], output: Path) -> dict[str, Any]:
    """One block of the parts at `places`; returns counters."""
    rows = 0
    writer: pq.ParquetWriter | None = None
    with replacing(output) as temporary:
        for table in _row_groups(places):
            writer = writer or pq.ParquetWriter(temporary, table.schema, compression="zstd")
            writer.write_table(table, row_group_size=max(1, len(table)))
            rows += len(table)
        assert writer is not None, "a block has a part"
        writer.close()
    return {"rows": rows}


def _row_groups(places: list[str]) -> Iterator[pa.Table]:
    waiting: list[pa.Table] = []
    with ThreadPoolExecutor(REQUESTS) as pool:
        for begin in range(0, len(places), REQUESTS):  # memory holds what is asked for at once
            waiting += pool.map(_placed, places[begin : begin + REQUESTS])
            if sum(map(len, waiting)) >= ROW_GROUP_ROWS:
                yield pa.concat_tables(waiting)
                waiting = []
    if waiting:
        yield pa.concat_tables(waiting)


def _placed(place: str) -> pa.Table:
    """A part without text, and where each row stands."""
    with open_file(place, RANGE_BYTES) as opened:
        file = pq.ParquetFile(opened, pre_buffer=True)
        table = file.read([name for name in file.schema_arrow.names if name not in NOT_MERGED])
    part = pa.array([part_number(Path(place))] * len(table), pa.int32())
    for field, values in zip(PLACE, [part, pa.array(range(len(table)))], strict=True):
        table = table.append_column(field, values.cast(field.type))
    return table
