"""Tables of a corpus as files (whole or absent), and their columns as arrays."""

from __future__ import annotations

import mmap
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from pipeline.files import part_name, replacing

Rows = TypeVar("Rows", pa.Array, pa.RecordBatch)


def read_batch(path: Path, schema: pa.Schema) -> pa.RecordBatch:
    """What `write_batch` wrote, memory-mapped; the file is let go of with the last array of it.

    A join opens every part once a partition, 180,000 files for 20 GB of text. pyarrow's reader of
    files takes 130 us for each, the batch that stands behind the schema is read in 20.
    """
    with open(path, "rb", buffering=0) as file:
        mapped = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
    behind_schema = _HEAD_BYTES + int.from_bytes(mapped[_HEAD_BYTES - 4 : _HEAD_BYTES], "little")
    message = pa.ipc.read_message(pa.py_buffer(mapped)[behind_schema:])
    return pa.ipc.read_record_batch(message, schema)


# Before the schema of an Arrow IPC file: "ARROW1", padded to 8 bytes, then 4 that begin a message
# and 4 that hold the size of what describes it.
_HEAD_BYTES = 16


def read_columns(path: Path, schema: pa.Schema) -> list[npt.NDArray[Any]]:
    """The columns of a packed Arrow file of numbers, without a copy."""
    return [column.to_numpy() for column in read_batch(path, schema).columns]


def write_columns(path: Path, schema: pa.Schema, columns: list[npt.NDArray[Any]]) -> None:
    """A packed Arrow file of numbers."""
    arrays = [pa.array(c, field.type) for c, field in zip(columns, schema, strict=True)]
    write_batch(path, pa.RecordBatch.from_arrays(arrays, schema=schema))


def write_batch(path: Path, batch: pa.RecordBatch) -> None:
    """An Arrow IPC file of one batch."""
    with (
        replacing(path) as temporary,
        pa.OSFile(str(temporary), "wb") as sink,
        pa.ipc.new_file(sink, batch.schema) as writer,
    ):
        writer.write_batch(batch)


def write_table(path: Path, schema: pa.Schema, columns: list[pa.Array]) -> None:
    """A Parquet table of whole columns."""
    table = pa.table([c.cast(f.type) for c, f in zip(columns, schema, strict=True)], schema=schema)
    with replacing(path) as temporary:
        pq.write_table(table, temporary, compression="zstd")


def write_aligned(path: Path, documents: pq.ParquetFile, batch: pa.RecordBatch) -> None:
    """A table with a row for each document, in the row groups of the documents."""
    begin = 0
    with (
        replacing(path) as temporary,
        pq.ParquetWriter(temporary, batch.schema, compression="zstd") as writer,
    ):
        for group in range(documents.num_row_groups):
            num = documents.metadata.row_group(group).num_rows
            writer.write_batch(batch.slice(begin, num), row_group_size=max(1, num))
            begin += num


def write_rows(path: Path, schema: pa.Schema, rows: list[dict[str, Any]]) -> None:
    """A small Parquet table."""
    with replacing(path) as temporary:
        pq.write_table(pa.Table.from_pylist(rows, schema), temporary, compression="zstd")


def column(file: pq.ParquetFile, row_group: int, name: str) -> pa.Array:
    """One column of one row group as one array."""
    chunked = file.read_row_group(row_group, columns=[name]).column(0)
    return chunked.combine_chunks() if chunked.num_chunks != 1 else chunked.chunk(0)


def without(batch: Rows, gone: npt.NDArray[np.bool_]) -> Rows:
    """An array or batch in which these rows are null, of any type; the number of rows stays."""
    if not gone.any():
        return batch
    return batch.take(pa.array(np.arange(len(batch)), mask=gone))


def text_groups(
    root: Path, part: int, with_languages: bool, reads: Iterable[str] = ()
) -> Iterator[tuple[pa.Array, pa.Array, dict[str, pa.Array]]]:
    """Of each row group of a part: texts (null where forgotten), content hashes, `lang` ("" where
    not asked for) and the columns `reads` of documents."""
    documents = pq.ParquetFile(root / "documents" / part_name(part))
    path = root / "signals" / "language" / part_name(part)
    languages = pq.ParquetFile(path) if with_languages else None
    for i in range(documents.num_row_groups):
        texts = column(documents, i, "text")
        found = {name: column(documents, i, name) for name in reads}
        found["lang"] = (
            column(languages, i, "lang").fill_null("") if languages else pa.array([""] * len(texts))
        )
        yield texts, column(documents, i, "content_hash"), found


def first_of_each(hashes: pa.ChunkedArray) -> npt.NDArray[np.int64]:
    """Rows, ascending, in which each hash of a column stands first."""
    codes = hashes.combine_chunks().dictionary_encode().indices
    rows: npt.NDArray[np.int64] = np.unique(np.asarray(codes), return_index=True)[1]
    return np.sort(rows)


def rank_of(hashes: pa.Array) -> npt.NDArray[np.int64]:
    """Place of each hash among the distinct ones, ascending."""
    halves = halves_of(hashes)
    order = np.lexsort((halves[:, 1], halves[:, 0]))
    is_new = (np.diff(halves[order], axis=0) != 0).any(axis=1)
    rank = np.empty(len(hashes), np.int64)
    rank[order] = np.cumsum(np.append(0, is_new)[: len(hashes)])
    return rank


def names_of(hashes: pa.Array | pa.ChunkedArray) -> npt.NDArray[np.bytes_]:
    """Hashes, none of them null, as S16, which numpy compares as 16 bytes; without a copy."""
    values = hashes.combine_chunks() if isinstance(hashes, pa.ChunkedArray) else hashes
    assert not values.null_count
    raw = np.frombuffer(values.buffers()[1] or b"", "S16")
    return raw[values.offset : values.offset + len(values)]


def spread(
    rows: npt.NDArray[np.int64], firsts: npt.NDArray[np.int64]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """What holds for the first of equal documents, for all of them.

    Args:
        rows: ascending; each the first row of its content, as often as something holds for it.
        firsts: of each row of a part the first one of its content.

    Returns: rows of the part, ascending, and for each which of `rows` it is that holds for it.
    """
    begins, ends = (np.searchsorted(rows, firsts, side) for side in ("left", "right"))
    counts = ends - begins
    every = np.repeat(np.arange(len(firsts)), counts)
    within = np.arange(len(every)) - np.repeat(np.cumsum(counts) - counts, counts)
    return every, np.repeat(begins, counts) + within


def halves_of(hashes: pa.Array) -> npt.NDArray[np.uint64]:
    """Hashes as rows of two numbers, the upper 64 bits first."""
    halves = np.frombuffer(hashes.buffers()[1] or b"", ">u8").reshape(-1, 2)
    return halves[hashes.offset : hashes.offset + len(hashes)]
