"""Parquet: one record a row, cut at row groups. Strings are decoded here, value by value: one
invalid byte costs its row, where Arrow's own conversion would fail the whole batch.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from pipeline.ranges import open_file
from pipeline.readers import Bad, Piece, Record, excerpt, is_of_disk, pieces_of, place_of
from pipeline.readers.rows import as_text, from_row
from pipeline.settings import Input

BATCH_ROWS = 1024


def cut(path: str, file: str, size: int, shard_bytes: int) -> list[Piece]:
    """Ranges of row groups; a file without a readable footer is one piece, a reject."""
    try:
        with open_file(path) as stream:
            metadata = pq.read_metadata(stream)
    except (pa.ArrowException, OSError) as error:
        if is_of_disk(error):
            raise
        return [Piece(path, file, num_bytes=size)] if size else []
    groups = [metadata.row_group(index).total_byte_size for index in range(metadata.num_row_groups)]
    return pieces_of(path, file, groups, shard_bytes)


def read(piece: Piece, source: Input, extractor: str) -> Iterator[Record | Bad]:
    """Records of the piece's row groups, offset = row number in the file."""
    del extractor
    try:
        with open_file(piece.path) as stream:
            if not stream.read(1):
                return
            table = pq.ParquetFile(stream)
            sizes = [table.metadata.row_group(i).num_rows for i in range(table.num_row_groups)]
            for group in range(len(sizes))[piece.begin : piece.end]:
                yield from _row_group(table, group, sum(sizes[:group]), source)
    except (pa.ArrowException, OSError) as error:
        if is_of_disk(error):
            raise
        yield Bad(place_of(piece), 0, "bad_parquet", f"{piece.file}: not readable: {error}")


def _row_group(
    table: pq.ParquetFile, group: int, begin: int, source: Input
) -> Iterator[Record | Bad]:
    """The rows of one row group, which begins at row `begin`; what is broken of it is one reject,
    at the first row that cannot be read."""
    metadata = table.metadata.row_group(group)
    end = begin + metadata.num_rows
    names = table.schema_arrow.names
    if source.text not in names:
        for offset in range(begin, end):
            yield from_row(dict.fromkeys(names), offset, 0, source)
        return
    wanted = {source.text, source.id, source.url, *source.keep}
    columns = [name for name in names if name in wanted]
    row = begin
    try:
        for batch in table.iter_batches(BATCH_ROWS, [group], columns):
            yield from _records(batch, row, source)
            row += len(batch)
    except (pa.ArrowException, OSError) as error:
        if is_of_disk(error):
            raise
        detail = f"{end - row:,} rows from row {row} of row group {group} not readable: {error}"
        yield Bad(row, metadata.total_byte_size, "bad_parquet", detail)


def row_text(path: str, row: int, num_bytes: int) -> str:
    """One row as JSON, undecodable bytes as U+FFFD; empty where it cannot be read."""
    del num_bytes
    try:
        with open_file(path) as stream:
            table = pq.ParquetFile(stream)
            for group in range(table.num_row_groups):
                num_rows = table.metadata.row_group(group).num_rows
                if row < num_rows:
                    found = table.read_row_group(group).slice(row, 1).combine_chunks()
                    names = table.schema_arrow.names
                    values = [_values(column.chunk(0))[0] for column in found.columns]
                    return as_text(
                        {
                            name: str(value, "utf-8", "replace")
                            if isinstance(value, bytes)
                            else value
                            for name, value in zip(names, values, strict=True)
                        }
                    )
                row -= num_rows
    except (pa.ArrowException, OSError):
        pass
    return ""


def _records(batch: pa.RecordBatch, row: int, source: Input) -> Iterator[Record | Bad]:
    names = batch.schema.names
    columns = [_values(column) for column in batch.columns]
    for offset, values in enumerate(zip(*columns, strict=True), row):
        raw = dict(zip(names, values, strict=True))
        text = raw[source.text]
        size = len(text) if isinstance(text, bytes) else 0
        try:
            yield from_row({k: _decoded(v) for k, v in raw.items()}, offset, size, source)
        except UnicodeDecodeError as error:
            detail = f"byte {error.start} of a string is not UTF-8: {error.reason}"
            yield Bad(offset, size, "bad_utf8", detail, excerpt(error.object))


def _values(column: pa.Array) -> list[Any]:
    """Strings as `_Utf8`, not yet decoded; anything else as its Python value."""
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        binary = column.cast(pa.large_binary())
        return [None if value is None else _Utf8(value) for value in binary.to_pylist()]
    return list(column.to_pylist())


class _Utf8(bytes):
    """Bytes of a string column, told from those of a binary column."""


def _decoded(value: Any) -> Any:
    return value.decode() if isinstance(value, _Utf8) else value
