"""Anyone's Parquet, CSV or JSONL file as keys and columns: what `assay attach` takes in."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.json
import pyarrow.parquet as pq

from pipeline import schema
from pipeline.amounts import counted
from pipeline.corpus import CorpusError

READERS = {
    ".parquet": pq.read_table,
    ".csv": pyarrow.csv.read_csv,
    ".jsonl": pyarrow.json.read_json,
    ".ndjson": pyarrow.json.read_json,
}
RESERVED_COLUMNS = {"pass", "part", "filename", "file_row_number"}


def read_keyed(file: Path, on: str) -> pa.Table:
    """The file sorted by its key: the column `on` first, as distinct schema.HASH, then the others.

    Raises:
        CorpusError: the file, its keys or the name of a column cannot be used.
    """
    reader = READERS.get(file.suffix.lower())
    if reader is None:
        raise CorpusError(f"{file}: no reader for this suffix; known: {', '.join(READERS)}")
    if not file.exists():
        raise CorpusError(f"{file}: no such file; is the path relative to {Path.cwd()}?")
    try:
        table = reader(str(file))
    except pa.ArrowInvalid as error:
        raise CorpusError(f"{file}: not readable: {error}") from None
    if on not in table.column_names:
        raise CorpusError(
            f"{file}: no key column {on!r}; its columns: {', '.join(table.column_names)}"
        )
    columns = table.drop_columns([on])
    lower = [column.lower() for column in columns.column_names]
    for column in columns.column_names:
        if column.lower() in {on, *RESERVED_COLUMNS} or lower.count(column.lower()) > 1:
            raise CorpusError(
                f"{file}: a column cannot be called {column!r} (reserved, or there twice); "
                "rename it in the file"
            )
    if not lower:
        raise CorpusError(f"{file}: nothing beside the key column {on!r}; add a column")
    keys = _hashes(table[on].combine_chunks(), f"{file}: column {on!r}")
    counts = keys.value_counts()
    twice = counts.filter(pc.greater(counts.field("counts"), 1))
    if len(twice):
        raise CorpusError(
            f"{file}: {counted(len(twice), 'key')} with more than one row, the first {on} "
            f"{twice[0]['values'].as_py().hex()}; keep one row for each key"
        )
    # without the metadata of the file: pandas leaves its own there
    return columns.add_column(0, on, keys).replace_schema_metadata().sort_by(on)


def _hashes(keys: pa.Array, place: str) -> pa.Array:
    """32 hex digits or 16 bytes to schema.HASH."""
    if pa.types.is_string(keys.type) or pa.types.is_large_string(keys.type):
        bad = pc.invert(pc.match_substring_regex(keys, "^[0-9a-fA-F]{32}$").fill_null(False))
        if pc.any(bad).as_py():
            value = keys.filter(bad)[0].as_py()
            raise CorpusError(f"{place}: {value!r} is not a hash; expected 32 hex digits")
        return pa.array([bytes.fromhex(key) for key in keys.to_pylist()], schema.HASH)
    if pa.types.is_binary(keys.type) and pc.all(pc.equal(pc.binary_length(keys), 16)).as_py():
        keys = keys.cast(schema.HASH)
    if keys.type == schema.HASH and keys.null_count == 0:
        return keys
    raise CorpusError(f"{place}: type {keys.type}, nulls {keys.null_count}; expected 32 hex digits")
