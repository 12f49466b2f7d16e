"""`assay attach CORPUS scores.parquet --on id`: anyone's columns, as a signal group.

The group is row-aligned with the documents, like any other, and is seen by SQL, mixtures and
`assay inspect` as `<name>.<column>`. Documents that the file does not name get NULL, counted.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.json
import pyarrow.parquet as pq

from filters.presets import PRESETS
from filters.signals import GROUPS
from pipeline import schema
from pipeline.corpus import CorpusError, locked, manifest, part_paths
from pipeline.files import replacing, write_json
from pipeline.views import DERIVED

READERS = {
    ".parquet": pq.read_table,
    ".csv": pyarrow.csv.read_csv,
    ".jsonl": pyarrow.json.read_json,
    ".ndjson": pyarrow.json.read_json,
}
RESERVED = {
    *schema.DOCUMENTS.names,
    *schema.TOKEN_COUNTS.names,
    *(name for group, found in GROUPS.items() for name in (group, *found.columns)),
    *PRESETS,
    *DERIVED,
    *("normalize", "part", "corpus"),
}
RESERVED_COLUMNS = {"pass", "part", "filename", "file_row_number"}
EXAMPLE = """example:
  assay attach runs/web scores.parquet --on id --name quality
  assay sql runs/web "select avg(quality.score) from documents"

The key column holds 32 hex digits, as `assay sql` shows them."""


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="assay attach", epilog=EXAMPLE, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("corpus", type=Path, help="folder of a corpus")
    parser.add_argument("file", type=Path, help="Parquet, CSV or JSONL with the key and columns")
    parser.add_argument("--on", choices=["id", "content_hash"], required=True, help="key column")
    parser.add_argument("--name", help="of the group (default: the file's name)")
    parser.add_argument("--replace", action="store_true", help="replace a group attached before")
    options = parser.parse_args(argv)
    name = options.name or options.file.stem
    counts = attach(options.corpus, options.file, options.on, name, replace=options.replace)
    print(
        f"wrote {options.corpus / 'signals' / name}: {counts['documents']:,} documents, "
        f"{counts['missing']:,} of them NULL (not in the file); "
        f"{counts['unused']:,} keys of the file are in no document"
    )
    return 0


def attach(root: Path, file: Path, on: str, name: str, *, replace: bool = False) -> dict[str, int]:
    """Write `signals/<name>` and record it in corpus.json.

    Returns: documents; missing, those of them that the file does not name; unused, keys of the
    file that no document has.

    Raises:
        CorpusError: the file, its keys or a name cannot be used.
    """
    with locked(root):
        found = manifest(root)
        _check_name(name, found["signals"], replace)
        keys, columns = _read(file, on)
        parts = part_paths(root, "documents")
        used = pa.chunked_array(
            [chunk for part in parts for chunk in pq.read_table(part, columns=[on])[on].chunks],
            schema.HASH,
        )
        if pc.any(pc.is_in(used, value_set=keys)).as_py() is not True:
            raise CorpusError(
                f"{file}: none of its {len(keys):,} keys is the {on} of a document of {root} "
                f"(the first: {keys[0].as_py().hex() if len(keys) else 'none'}); "
                f"is the key {'content_hash' if on == 'id' else 'id'}, or another corpus meant?"
            )
        missing = 0
        for part in parts:
            with replacing(root / "signals" / name / part.name) as temporary:
                missing += _write(part, on, keys, columns, temporary)
        if name not in found["signals"]:
            found["signals"].append(name)
        write_json(root / "corpus.json", found)
    unused = len(keys) - pc.sum(pc.is_in(keys, value_set=used.unique())).as_py()
    return {"documents": len(used), "missing": missing, "unused": unused}


def _write(part: Path, on: str, keys: pa.Array, columns: pa.Table, path: Path) -> int:
    """One part of the group, in the row groups of its documents; returns the rows without a key."""
    missing = 0
    documents = pq.ParquetFile(part)
    with pq.ParquetWriter(path, columns.schema) as writer:
        for ids in _row_groups(documents, on):
            rows = pc.index_in(ids, value_set=keys)
            missing += rows.null_count
            writer.write_table(columns.take(rows), row_group_size=max(len(ids), 1))
    return missing


def _row_groups(documents: pq.ParquetFile, column: str) -> Iterator[pa.Array]:
    for group in range(documents.num_row_groups):
        yield documents.read_row_group(group, columns=[column])[column].combine_chunks()


def _read(file: Path, on: str) -> tuple[pa.Array, pa.Table]:
    """Keys (schema.HASH, distinct) and the other columns of the file."""
    reader = READERS.get(file.suffix.lower())
    if reader is None:
        raise CorpusError(f"{file}: no reader for this suffix; known: {', '.join(READERS)}")
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
        if column.lower() in RESERVED_COLUMNS or lower.count(column.lower()) > 1:
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
            f"{file}: {len(twice):,} keys stand more than once, the first {on} "
            f"{twice[0]['values'].as_py().hex()}; keep one row for each key"
        )
    return keys, columns


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


def _check_name(name: str, signals: list[str], replace: bool) -> None:
    if re.fullmatch(r"[a-z][a-z0-9_]*", name) is None:
        raise CorpusError(
            f"group name {name!r}: give one of lower-case letters, digits and _ with --name"
        )
    if name in RESERVED:
        raise CorpusError(f"group name {name!r} is taken by assay itself; give another with --name")
    if name in signals and not replace:
        raise CorpusError(
            f"group {name!r} is attached already; give another --name, or --replace it"
        )
