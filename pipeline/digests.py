"""A digest of each table of a corpus that no shard size, order of rows or Parquet version changes.

A row is hashed, with the id of its document where its table is row-aligned; the sum of the hashes
of all rows, in two lanes of 64 bits, is the digest. So it streams: one row group is in memory. It
tells of an accident or a change, not of an attack.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
import xxhash

from pipeline.corpus import manifest, part_paths
from pipeline.dedup_settings import KEPT_ONCE
from pipeline.files import part_name, part_number

Lanes = npt.NDArray[np.uint64]  # [rows, 2]
BASE = np.array([0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F], np.uint64)  # odd; they part the lanes
NULL = np.array([0x165667B19E3779F9, 0x27D4EB2F165667C5], np.uint64)
BYTES = (
    pa.types.is_string,
    pa.types.is_large_string,
    pa.types.is_binary,
    pa.types.is_large_binary,
    pa.types.is_fixed_size_binary,
)
PLAIN = ("rejects", "pairs", "clusters", "heldout/matches")


def table_digests(root: Path) -> dict[str, dict[str, Any]]:
    """Table -> {rows, digest}: documents, all that is row-aligned with them, and the joins."""
    found = manifest(root)
    tokens = f"tokens/{found['tokenizer']['hash']}"
    aligned = [f"signals/{group}" for group in found["signals"]] + [f"{tokens}/counts", tokens]
    digests = {"documents": digest(map(_columns, _batches(part_paths(root, "documents"))))}
    aligned += ["copies"] if part_paths(root, "copies") else []  # an older corpus has none
    for table in aligned:
        digests[table] = digest(_with_ids(root, table))
    plain = [*PLAIN, *(["substrings"] if "substrings" in found["signals"] else [])]
    plain += ["contained"] if found["settings"]["near"].get("containment") is not None else []
    plain += [f"places/{name}" for name in KEPT_ONCE if name in found.get("edits", ())]
    for table in (*plain, *(f"edits/{name}" for name in found.get("edits", ()))):
        digests[table] = digest(map(_columns, _batches(part_paths(root, table))))
    held = root / "heldout" / "documents.parquet"
    digests["heldout/documents"] = digest(map(_columns, _batches([held])))
    return dict(sorted(digests.items()))


def digest(batches: Iterator[dict[str, pa.Array]]) -> dict[str, Any]:
    """Rows and digest of batches of columns."""
    rows, total, names = 0, np.zeros(2, np.uint64), ""
    for columns in batches:
        names = str([(name, str(column.type)) for name, column in columns.items()])
        hashes = row_hashes(list(columns.values()))
        rows += len(hashes)
        total += hashes.sum(axis=0, dtype=np.uint64)
    return {
        "rows": rows,
        "digest": xxhash.xxh3_128_hexdigest(f"{names} {rows}".encode() + total.tobytes()),
    }


def row_hashes(columns: list[pa.Array]) -> Lanes:
    """One hash for each row over all columns, in their order."""
    hashes = np.zeros((len(columns[0]), 2), np.uint64)
    for column in columns:
        hashes = _mixed(hashes * BASE + _column_hashes(column))
    return hashes


def _column_hashes(column: pa.Array) -> Lanes:
    if column.null_count == len(column):
        return np.broadcast_to(NULL, (len(column), 2))
    kind = column.type
    if pa.types.is_boolean(kind):
        hashes = _of_numbers(column.cast(pa.uint8()))
    elif pa.types.is_primitive(kind) and not pa.types.is_interval(kind):
        hashes = _of_numbers(column)
    elif pa.types.is_large_list(kind) and pa.types.is_primitive(kind.value_type):
        hashes = _of_lists(column)
    elif any(is_kind(kind) for is_kind in BYTES):
        binary = column if pa.types.is_fixed_size_binary(kind) else column.cast(pa.large_binary())
        hashes = _of_values([value or b"" for value in binary.to_pylist()])
    else:  # nested; and of what `assay attach` was given decimals, categories ...
        hashes = _of_values([repr(value).encode() for value in column.to_pylist()])
    if column.null_count:
        hashes = np.where(np.asarray(column.is_null())[:, None], NULL, hashes)
    return hashes


def _of_numbers(column: pa.Array) -> Lanes:
    """By the bits of each number; those under a null are overwritten by the caller."""
    width = column.type.bit_width // 8
    at = column.offset * width
    bits = np.frombuffer(column.buffers()[1], np.uint8)[at : at + len(column) * width]
    numbers = bits.view(f"u{width}").astype(np.uint64)
    return _mixed(numbers[:, None] + BASE)


def _of_lists(column: pa.Array) -> Lanes:
    offsets = np.asarray(column.offsets)
    width = column.type.value_type.bit_width // 8
    start = column.values.offset * width
    raw = memoryview(column.values.buffers()[1] or b"")[start:]
    return _of_values([raw[a * width : b * width] for a, b in itertools.pairwise(offsets)])


def _of_values(values: list[Any]) -> Lanes:
    joined = b"".join(map(xxhash.xxh3_128_digest, values))
    return np.frombuffer(joined, np.uint64).reshape(-1, 2)


def _mixed(numbers: Lanes) -> Lanes:
    """splitmix64's finalizer (Steele, Lea, Flood 2014)."""
    numbers = (numbers ^ (numbers >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    numbers = (numbers ^ (numbers >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return numbers ^ (numbers >> np.uint64(31))


# --- what is read ---------------------------------------------------------------------------------


def _with_ids(root: Path, table: str) -> Iterator[dict[str, pa.Array]]:
    """Batches of a row-aligned table, with the ids of their documents."""
    for path in part_paths(root, table):
        documents = root / "documents" / part_name(part_number(path))
        ids = pq.read_table(documents, columns=["id"])["id"].combine_chunks()
        at = 0
        for batch in _batches([path]):
            yield {"id": ids.slice(at, batch.num_rows)} | _columns(batch)
            at += batch.num_rows


def _batches(paths: list[Path]) -> Iterator[pa.RecordBatch]:
    for path in paths:
        if path.suffix == ".arrow":
            reader = pa.ipc.open_file(pa.memory_map(str(path)))
            yield from (reader.get_batch(n) for n in range(reader.num_record_batches))
        else:
            file = pq.ParquetFile(path)
            for group in range(file.num_row_groups):
                yield from file.read_row_group(group).combine_chunks().to_batches()


def _columns(batch: pa.RecordBatch) -> dict[str, pa.Array]:
    return dict(zip(batch.schema.names, batch.columns, strict=True))
