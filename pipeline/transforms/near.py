"""Near duplicates, in four steps of which none shuffles text; the two that go part by part.

    sign        a part: band keys of its signatures, sorted by key, and a sketch of each; and the
                hashes by which other copies are told
    forest      a partition of the keys: who shares a band and has a like sketch, as a forest
    join        all forests: candidate components
    shingle     a part: shingle hashes of its candidates only
    verify      a partition of the components: pairs by true Jaccard, clusters

`near_join.py` has the steps over all parts. Exact copies are collapsed as soon as they are met: of
each content, the first document of a part has band keys. So a text that stands a million times
joins once a part.

Steps hand each other files; only part and partition numbers travel through Beam.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from dedup import bands, minhash, sketches
from dedup.shingles import Hashes, shingles
from filters.canonical_urls import canonical
from pipeline import schema
from pipeline.files import part_name
from pipeline.tables import (
    column,
    first_of_each,
    read_columns,
    write_batch,
    write_columns,
    write_table,
)

if TYPE_CHECKING:
    from pipeline.dedup_settings import Near
    from pipeline.transforms.sweep import Batch, Stage

SETS = pa.large_list(pa.uint64())  # of shingles
ROW = np.uint64(0xFFFFFFFF)  # the half of a `doc` that is its row


# --- sign -----------------------------------------------------------------------------------------


def sign_outputs(root: Path, part: int) -> list[Path]:
    joins = [root / f"joins/{table}/{part_name(part, 'arrow')}" for table in ("keys", "sketches")]
    return [*joins, root / "copies" / part_name(part)]


def sign(root: Path, near: Near, part: int) -> Stage:
    """Sorted band keys of the contents of a part, the sketches of its documents, and their COPIES.
    Signatures are not kept: they would be a fifth to a third of the text, and nothing else is made
    of them."""
    keys: list[npt.NDArray[np.uint64]] = [np.empty((0, near.bands), np.uint64)]
    bits: list[npt.NDArray[np.uint64]] = [np.empty(0, np.uint64)]
    signed: list[npt.NDArray[np.bool_]] = [np.empty(0, np.bool_)]
    contents = [pa.array([], schema.HASH)]
    copies = [schema.COPIES.empty_table()]
    num_shingles = 0
    while (batch := (yield)) is not None:
        of_batch = _keys_and_sketches(batch, near)
        keys.append(of_batch[0])
        bits.append(of_batch[1].reshape(-1))
        sizes = np.diff(batch.shingles[1])
        signed.append(sizes > 0)
        contents.append(batch.contents)
        copies.append(copy_hashes(batch.folded, batch.columns["url"]))
        num_shingles += int(sizes.sum())
    first = first_of_each(pa.chunked_array(contents))
    has_shingles = np.concatenate(signed)
    has_keys = np.zeros(len(has_shingles), np.bool_)
    has_keys[first] = has_shingles[first]
    records = bands.key_records(np.concatenate(keys), has_keys, part)
    rows = (records[1] & ROW).astype(np.uint32)
    keys_path, sketches_path, copies_path = sign_outputs(root, part)
    write_columns(keys_path, schema.BAND_KEYS, [records[0], rows])
    write_columns(sketches_path, schema.SKETCHES, [np.concatenate(bits)])
    write_table(copies_path, schema.COPIES, pa.concat_tables(copies).columns)
    return {
        "documents": len(has_keys),
        "contents": len(first),
        "shingles": num_shingles,
        "band_keys": len(records[0]),
    }


def _keys_and_sketches(batch: Batch, near: Near) -> tuple[bands.Keys, sketches.Sketches]:
    signatures = minhash.signatures(*batch.shingles, near.permutations)
    return bands.band_keys(signatures, near.bands, near.rows), sketches.sketches(signatures)


def copy_hashes(folded: Hashes, urls: pa.Array) -> pa.Table:
    """COPIES of documents, from their folded hashes and addresses."""
    known = folded.any(axis=1)
    hashes = pa.py_buffer(np.ascontiguousarray(folded[known], ">u8"))
    values = pa.Array.from_buffers(schema.HASH, int(known.sum()), [None, hashes])
    places = pa.array(np.cumsum(known) - 1, mask=~known)
    pages = [schema.text_hash(canonical(u).encode()) if u else None for u in urls.to_pylist()]
    return pa.table([values.take(places), pa.array(pages, schema.HASH)], schema=schema.COPIES)


# --- shingle --------------------------------------------------------------------------------------


def components_output(root: Path) -> Path:
    return root / "joins" / "components" / part_name(0, "arrow")


def indexed_path(root: Path, part: int) -> Path:
    """Where an index stands for the text of a part: see pipeline/copy_index.py."""
    return root / "indexed" / part_name(part)


def shingle_outputs(root: Path, part: int) -> list[Path]:
    return [root / f"joins/candidates/{part_name(part, 'arrow')}"]


def shingle(root: Path, near: Near, part: int, partitions: int) -> dict[str, Any]:
    """Shingle hashes of those documents of a part that are in a candidate component.

    Ordered by the partition of their component, so that each partition is a slice.
    """
    batch = _candidates(root, near, part)
    order = np.argsort(np.asarray(batch["component"]) % partitions, kind="stable")
    write_batch(shingle_outputs(root, part)[0], batch.take(pa.array(order)))
    return {"candidates": len(batch)}


def _candidates(root: Path, near: Near, part: int) -> pa.RecordBatch:
    """By row."""
    docs, labels = read_columns(components_output(root), schema.COMPONENTS)
    first, last = np.searchsorted(docs, np.array([part << 32, (part + 1) << 32], np.uint64))
    rows = (docs[first:last] & ROW).astype(np.int64)
    labels = labels[first:last]
    found = sets_of(root, near.ngram, part, rows)
    batch = pa.RecordBatch.from_arrays([pa.array(labels), *found], schema=schema.CANDIDATES)
    return batch.filter(batch["shingles"].is_valid())  # null: an index did not keep the document


def sets_of(
    root: Path, ngram: int, part: int, rows: npt.NDArray[np.int64]
) -> tuple[pa.Array, pa.LargeListArray]:
    """Content hashes and shingles of these rows of a part, ascending."""
    indexed = indexed_path(root, part)
    documents = pq.ParquetFile(indexed if indexed.exists() else root / "documents" / indexed.name)
    contents = [pa.array([], schema.HASH)]
    sets = [pa.array([], SETS)]
    begin = 0
    for i in range(documents.num_row_groups):
        end = begin + documents.metadata.row_group(i).num_rows
        inside = slice(*np.searchsorted(rows, [begin, end]))
        if inside.start < inside.stop:
            chosen = pa.array(rows[inside] - begin)
            if indexed.exists():
                sets.append(column(documents, i, "shingles").cast(SETS).take(chosen))
            else:
                texts = column(documents, i, "text").take(chosen).fill_null("")  # null: forgotten
                hashes, offsets = shingles(texts, ngram)
                sets.append(pa.LargeListArray.from_arrays(pa.array(offsets), pa.array(hashes)))
            contents.append(column(documents, i, "content_hash").take(chosen))
        begin = end
    return pa.concat_arrays(contents), pa.concat_arrays(sets)
