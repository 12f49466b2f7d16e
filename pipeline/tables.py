"""Tables of a corpus as files (whole or absent), and their columns as arrays."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from pipeline.files import part_name, replacing


def read_arrow(path: Path) -> pa.Table:
    """All of an Arrow IPC file, memory-mapped."""
    return pa.ipc.open_file(pa.memory_map(str(path))).read_all()


def read_columns(path: Path) -> list[npt.NDArray[Any]]:
    """The columns of a packed Arrow file of numbers; without a copy where it is one batch."""
    return [column.to_numpy() for column in read_arrow(path).columns]


def write_columns(path: Path, schema: pa.Schema, columns: list[npt.NDArray[Any]]) -> None:
    """A packed Arrow file: one batch of numbers."""
    arrays = [pa.array(c, field.type) for c, field in zip(columns, schema, strict=True)]
    with (
        replacing(path) as temporary,
        pa.OSFile(str(temporary), "wb") as sink,
        pa.ipc.new_file(sink, schema) as writer,
    ):
        writer.write_batch(pa.RecordBatch.from_arrays(arrays, schema=schema))


def write_table(path: Path, schema: pa.Schema, columns: list[pa.Array]) -> None:
    """A Parquet table of whole columns."""
    table = pa.table([c.cast(f.type) for c, f in zip(columns, schema, strict=True)], schema=schema)
    with replacing(path) as temporary:
        pq.write_table(table, temporary, compression="zstd")


def write_rows(path: Path, schema: pa.Schema, rows: list[dict[str, Any]]) -> None:
    """A small Parquet table."""
    with replacing(path) as temporary:
        pq.write_table(pa.Table.from_pylist(rows, schema), temporary, compression="zstd")


def column(file: pq.ParquetFile, row_group: int, name: str) -> pa.Array:
    """One column of one row group as one array."""
    chunked = file.read_row_group(row_group, columns=[name]).column(0)
    return chunked.combine_chunks() if chunked.num_chunks != 1 else chunked.chunk(0)


def text_groups(
    root: Path, part: int, with_languages: bool
) -> Iterator[tuple[pa.Array, pa.Array, pa.Array]]:
    """Of each row group of a part: texts, content hashes, languages ("" where not asked for)."""
    documents = pq.ParquetFile(root / "documents" / part_name(part))
    path = root / "signals" / "language" / part_name(part)
    languages = pq.ParquetFile(path) if with_languages else None
    for i in range(documents.num_row_groups):
        texts = column(documents, i, "text")
        lang = column(languages, i, "lang") if languages else pa.array([""] * len(texts))
        yield texts, column(documents, i, "content_hash"), lang


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


def halves_of(hashes: pa.Array) -> npt.NDArray[np.uint64]:
    """Hashes as rows of two numbers, the upper 64 bits first."""
    halves = np.frombuffer(hashes.buffers()[1] or b"", ">u8").reshape(-1, 2)
    return halves[hashes.offset : hashes.offset + len(hashes)]
