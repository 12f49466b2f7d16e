"""What each part of each stage took, as one table: `stats/timings.parquet`, view `timings` in SQL.

Written from the commit records whenever a corpus is finished, so that a question does not open
100,000 small files; where it is missing, the records are read.
"""

from __future__ import annotations

import io
import os
from collections.abc import Mapping
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


def write(root: Path, known: Mapping[str, pa.Table] | None = None) -> None:
    """Write the table anew; call it while holding the corpus.

    Args:
        known: rows of some folders of records, which are not read again.
    """
    with replacing(path_of(root)) as temporary:
        temporary.write_bytes(_as_file(read_records(root, known)))


def stands(root: Path) -> bool:
    """Whether the table that stands is the one that the records give."""
    return path_of(root).read_bytes() == _as_file(read_records(root))


def _as_file(table: pa.Table) -> bytes:
    """Some MB."""
    file = io.BytesIO()
    pq.write_table(table, file, compression="zstd")
    return file.getvalue()


def path_of(root: Path) -> Path:
    return root / "stats" / "timings.parquet"


def read_records(root: Path, known: Mapping[str, pa.Table] | None = None) -> pa.Table:
    """One row per commit record, by stage and part; `known` as in `write`."""
    from pipeline.stages import JOINS  # loads numba: 0.5 s, and most questions never come here

    tables = dict(known or {})
    if "ingest" not in tables:
        tables["ingest"] = _read(root, "ingest", None)
    text = dict(
        zip(*(tables["ingest"][c].to_pylist() for c in ("part", "text_bytes")), strict=True)
    )
    folders = _folders(root)
    for folder in folders:
        if folder not in tables:
            tables[folder] = _read(root, folder, {} if folder in JOINS else text)
    found = pa.concat_tables([TIMINGS.empty_table(), *(tables[folder] for folder in folders)])
    return found.combine_chunks()


def _folders(root: Path) -> list[str]:
    """Folders under stats/ with records of stages."""
    stats = root / "stats"
    found = (Path(place).relative_to(stats) for place, _, files in os.walk(stats) if files)
    blocks = "merged"  # of parts, not stages
    return [str(folder) for folder in sorted(found) if folder.parts and folder.parts[0] != blocks]


def _read(root: Path, folder: str, text: Mapping[int, int] | None) -> pa.Table:
    """The rows of a folder. Records are read one at a time: those of 10,000 parts would be 500 MB.

    Args:
        text: bytes of text of each part; None: the records say it.
    """
    rows = []
    for path in sorted((root / "stats" / folder).glob("part-*.json")):
        record = read_json(path)
        said = record["counters"].get("bytes")
        rows.append(row(record, said if text is None else text.get(record["part"])))
    return table(rows)


def table(rows: list[dict[str, Any]]) -> pa.Table:
    return pa.Table.from_pylist(rows, TIMINGS)


def row(record: dict[str, Any], text_bytes: int | None) -> dict[str, Any]:
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
