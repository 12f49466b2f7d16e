"""Batches of documents to the two tables that ingest makes of them: `documents` and what
normalization counted.

Row groups are cut here, in one place, at a number of rows or bytes; every later table of the part
follows them. So the bytes of a part do not depend on workers or on how a read was buffered.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from filters import normalize
from pipeline import schema
from pipeline.files import replacing
from pipeline.tables import without

ROW_GROUP_ROWS = 2_048
ROW_GROUP_BYTES = 4_000_000  # what a sweep holds at once; long documents would fill 16 MB

OPTIONS: dict[str, Any] = {  # of the writer of `documents`
    "compression": "zstd",
    "compression_level": 1,
    "use_dictionary": ["source", "kind", "file", "domain", "charset", "licence", "truncated"],
}
COUNTS = pa.schema([(name, s.type) for name, s in normalize.COLUMNS.items()])
BATCH = pa.schema([*schema.DOCUMENTS, *COUNTS])

_NO_ITEMS = [pa.array([], pa.string())] * 2  # keys and values


def batch(columns: Mapping[str, Any], num_rows: int) -> pa.RecordBatch:
    """A batch of these columns of BATCH. Of the others those of DOCUMENTS are null, counts 0; one
    that no document fills is free."""
    no_meta = pa.MapArray.from_arrays(pa.array(np.zeros(num_rows + 1, np.int32)), *_NO_ITEMS)
    given = {"meta": no_meta, **columns}
    nothing = pa.array(np.zeros(num_rows, np.int32))
    arrays = [
        _array(given[field.name], field.type)
        if field.name in given
        else nothing
        if field.name in normalize.COLUMNS
        else pa.nulls(num_rows, field.type)
        for field in BATCH
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=BATCH)


def _array(values: Any, kind: pa.DataType) -> pa.Array:
    return values if isinstance(values, pa.Array) else pa.array(values, kind)


def strings(texts: Sequence[bytes]) -> pa.Array:
    """Texts that are known to be UTF-8, as a string column; Arrow would check each again."""
    ends = np.cumsum([0, *map(len, texts)], dtype=np.int32)
    data = pa.py_buffer(b"".join(texts))
    return pa.StringArray.from_buffers(len(texts), pa.py_buffer(ends), data)


def maps(rows: Sequence[Mapping[str, str]]) -> pa.Array:
    """Dictionaries as a map column, without a tuple an item: the garbage collector counts them."""
    ends = np.cumsum([0, *map(len, rows)], dtype=np.int32)
    keys = pa.array(chain.from_iterable(rows), pa.string())
    values = pa.array(chain.from_iterable(row.values() for row in rows), pa.string())
    return pa.MapArray.from_arrays(pa.array(ends), keys, values)


# What stays of a forgotten document, so that rows stay where they are; all else is null.
IDENTITY = ("id", "content_hash", "source", "kind", "file", "offset")


def forgotten(group: pa.RecordBatch, gone: npt.NDArray[np.bool_]) -> pa.RecordBatch:
    """Rows of DOCUMENTS, of BATCH or of counts, of which these are forgotten."""
    arrays = [
        values if name in IDENTITY else without(values, gone)
        for name, values in zip(group.schema.names, group.columns, strict=True)
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=group.schema)


def write(
    batches: Iterable[pa.RecordBatch],
    documents: Path,
    counts: Path,
    forget: Callable[[pa.RecordBatch], npt.NDArray[np.bool_]] | None = None,
) -> dict[str, int]:
    """Both tables, row by row the same documents; returns totals.

    Args:
        forget: tells which rows of a row group the corpus was told to forget.
    """
    totals = Counter(documents=0, bytes=0, chars=0)
    with (
        replacing(documents) as documents_file,
        replacing(counts) as counts_file,
        pq.ParquetWriter(documents_file, schema.DOCUMENTS, **OPTIONS) as documents_writer,
        pq.ParquetWriter(counts_file, COUNTS, compression="zstd") as counts_writer,
    ):
        for group in row_groups(batches):
            if forget is not None:
                group = forgotten(group, forget(group))
            documents_writer.write_batch(group.select(schema.DOCUMENTS.names), len(group))
            counts_writer.write_batch(group.select(COUNTS.names), len(group))
            totals["documents"] += len(group)
            totals["bytes"] += pc.sum(group["num_bytes"], min_count=0).as_py()
            totals["chars"] += pc.sum(group["num_chars"], min_count=0).as_py()
    return dict(totals)


def row_groups(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The rows in groups of ROW_GROUP_ROWS, or of those with which ROW_GROUP_BYTES of text are
    reached, whatever the batches."""
    waiting: list[pa.RecordBatch] = []
    num_rows = num_bytes = 0
    for found in batches:
        ends = np.cumsum(found["num_bytes"].to_numpy())
        begin = before = 0
        while begin < len(found):
            reached = int(np.searchsorted(ends, before + ROW_GROUP_BYTES - num_bytes)) + 1
            end = min(reached, begin + ROW_GROUP_ROWS - num_rows, len(found))
            waiting.append(found.slice(begin, end - begin))
            num_rows += end - begin
            num_bytes += int(ends[end - 1]) - before
            begin, before = end, int(ends[end - 1])
            if num_rows == ROW_GROUP_ROWS or num_bytes >= ROW_GROUP_BYTES:
                yield pa.concat_batches(waiting)
                waiting, num_rows, num_bytes = [], 0, 0
    if waiting:
        yield pa.concat_batches(waiting)
