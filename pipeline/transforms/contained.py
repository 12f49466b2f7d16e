"""One document inside another, in seven steps of which none shuffles text (dedup/containment.py).

    find_keys   a part: the keys of its texts, sorted; shingles and lot of each document
    filter      all keys, as a bit vector
    find_hits   a part: the shingles of its texts that are in the filter, sorted
    propose     a partition of the keys: who has a key of whom
    join        all proposals: pairs that share enough keys
    shingle     a part: shingles of its documents that are in such a pair
    verify      a range of the parts: pairs by true containment

`contained_join.py` has the steps over all parts. Made where corpus.yaml names `near.containment`:
the texts are read and shingled a second time.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from dedup import bands, containment
from dedup.shingles import shingles
from pipeline import schema
from pipeline.files import part_name
from pipeline.tables import (
    column,
    first_of_each,
    halves_of,
    read_columns,
    write_batch,
    write_columns,
)
from pipeline.transforms.near import ROW, sets_of

if TYPE_CHECKING:
    from pipeline.dedup_settings import Near
    from pipeline.transforms.sweep import Stage


def joins(root: Path, table: str, part: int) -> Path:
    return root / "joins" / "contained" / table / part_name(part, "arrow")


# --- keys -----------------------------------------------------------------------------------------


def key_outputs(root: Path, part: int) -> list[Path]:
    return [joins(root, "keys", part), joins(root, "sizes", part)]


def find_keys(root: Path, part: int) -> Stage:
    """Sorted keys of the contents of a part; of all its documents, shingles and lot."""
    keys, rows = [np.empty(0, np.uint64)], [np.empty(0, np.int64)]
    sizes, contents = [np.empty(0, np.int64)], [pa.array([], schema.HASH)]
    begin = 0
    while (batch := (yield)) is not None:
        found, texts = containment.keys_of(*batch.shingles)
        keys.append(found)
        rows.append(begin + texts)
        sizes.append(np.diff(batch.shingles[1]))
        contents.append(batch.contents)
        begin += len(batch.contents)
    names = pa.chunked_array(contents).combine_chunks()
    first = np.zeros(begin, np.bool_)
    first[first_of_each(pa.chunked_array([names]))] = True
    all_keys, all_rows = np.concatenate(keys), np.concatenate(rows)
    mine = first[all_rows]
    _write_records(key_outputs(root, part)[0], all_keys[mine], all_rows[mine])
    columns = [np.concatenate(sizes) * first, halves_of(names)[:, 0].astype(np.uint64)]
    write_columns(key_outputs(root, part)[1], schema.SIZES, columns)
    num_texts = len(np.unique(all_rows[mine]))
    return {"documents": begin, "texts": num_texts, "keys": int(mine.sum())}


# --- hits -----------------------------------------------------------------------------------------


def filter_output(root: Path) -> Path:
    return joins(root, "filter", 0)


def hit_outputs(root: Path, part: int) -> list[Path]:
    return [joins(root, "hits", part)]


def find_hits(root: Path, near: Near, part: int) -> dict[str, Any]:
    """Shingles of the contents of a part that may be a key of another text, sorted."""
    (words,) = read_columns(filter_output(root), schema.KEY_FILTER)
    sizes, _ = read_columns(key_outputs(root, part)[1], schema.SIZES)
    documents = pq.ParquetFile(root / "documents" / part_name(part))
    keys, rows = [np.empty(0, np.uint64)], [np.empty(0, np.int64)]
    begin = 0
    for group in range(documents.num_row_groups):
        end = begin + documents.metadata.row_group(group).num_rows
        long = np.flatnonzero(sizes[begin:end] > containment.NUM_KEYS)
        texts = column(documents, group, "text").take(pa.array(long)).fill_null("")
        found, of = containment.hits_of(*shingles(texts, near.ngram), words)
        keys.append(found)
        rows.append(begin + long[of])
        begin = end
    _write_records(hit_outputs(root, part)[0], np.concatenate(keys), np.concatenate(rows))
    return {"shingles": int(sizes.sum()), "hits": sum(map(len, keys))}


def _write_records(path: Path, keys: bands.Keys, rows: npt.NDArray[np.int64]) -> None:
    order = np.argsort(keys, kind="stable")
    write_columns(path, schema.BAND_KEYS, [keys[order], rows[order].astype(np.uint32)])


# --- shingles -------------------------------------------------------------------------------------


def candidate_outputs(root: Path) -> list[Path]:
    return [joins(root, "candidates", 0), joins(root, "documents", 0)]


def rows_of(root: Path, part: int) -> npt.NDArray[np.int64]:
    """Rows of a part that are compared, ascending."""
    (docs,) = read_columns(candidate_outputs(root)[1], DOCS)
    return (docs[of_parts(docs, part, part)] & ROW).astype(np.int64)


DOCS = pa.schema([("doc", pa.uint64())])


def of_parts(docs: bands.Docs, first: int, last: int) -> slice:
    """Of sorted documents those that stand in these parts, the last included."""
    borders = np.array([first << 32, (last + 1) << 32], np.uint64)
    begin, end = np.searchsorted(docs, borders).tolist()
    return slice(begin, end)


def shingle_outputs(root: Path, part: int) -> list[Path]:
    return [joins(root, "shingles", part)]


def shingle(root: Path, near: Near, part: int) -> dict[str, Any]:
    """Contents and shingles of `rows_of` a part."""
    columns = sets_of(root, near.ngram, part, rows_of(root, part))
    batch = pa.RecordBatch.from_arrays(list(columns), schema=schema.COMPARED)
    write_batch(shingle_outputs(root, part)[0], batch)
    return {"compared": len(batch)}
