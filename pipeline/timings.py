"""What each part of each stage took, as one table: `stats/timings.parquet`, view `timings` in SQL.

Written from the commit records whenever a corpus is finished, so that a question does not open
100,000 small files; where it is missing, the records are read.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from pipeline.files import read_json, replacing

TIMINGS = pa.schema(
    [
        ("stage", pa.string()),
        ("part", pa.int32()),  # of a join: its partition
        ("documents", pa.int64()),  # NULL for joins
        ("text_bytes", pa.int64()),  # UTF-8 text of these documents; NULL for joins
        ("bytes", pa.int64()),  # of the files written
        ("seconds", pa.float64()),
        ("cpu_seconds", pa.float64()),
        ("mb_per_cpu_second", pa.float64()),  # of text
        ("host", pa.string()),  # which machine made it
        ("finished", pa.timestamp("s", "UTC")),
    ]
)


def write(root: Path) -> None:
    """Write the table anew; call it while holding the corpus."""
    with replacing(path_of(root)) as temporary:
        temporary.write_bytes(_table(root))


def stands(root: Path) -> bool:
    """Whether the table that stands is the one that the records give."""
    return path_of(root).read_bytes() == _table(root)


def _table(root: Path) -> bytes:
    """The table as a file, some MB of it."""
    file = io.BytesIO()
    pq.write_table(read_records(root), file, compression="zstd")
    return file.getvalue()


def path_of(root: Path) -> Path:
    return root / "stats" / "timings.parquet"


def read_records(root: Path) -> pa.Table:
    """One row per commit record, by stage and part."""
    from pipeline.stages import JOINS  # loads numba: 0.5 s, and most questions never come here

    # Records are read one at a time: those of 10,000 parts would be 500 MB.
    text = {r["part"]: r["counters"].get("bytes") for r in _records(root, "ingest")}
    rows = [_row(r, None if r["stage"] in JOINS else text.get(r["part"])) for r in _records(root)]
    return pa.Table.from_pylist(rows, TIMINGS)


def _records(root: Path, stage: str = "") -> Iterator[dict[str, Any]]:
    for path in sorted((root / "stats" / stage).rglob("part-*.json")):
        if "merged" not in path.relative_to(root).parts:  # blocks of parts, not stages
            yield read_json(path)


def _row(record: dict[str, Any], text_bytes: int | None) -> dict[str, Any]:
    cpu_seconds, known = record["cpu_seconds"], text_bytes is not None
    return {
        "stage": record["stage"],
        "part": record["part"],
        "documents": record["counters"].get("documents") if known else None,
        "text_bytes": text_bytes,
        "bytes": sum(output["bytes"] for output in record["outputs"].values()),
        "seconds": record["seconds"],
        "cpu_seconds": cpu_seconds,
        "mb_per_cpu_second": text_bytes / 1e6 / cpu_seconds if text_bytes and cpu_seconds else None,
        "host": record.get("host"),
        "finished": record.get("finished"),
    }
