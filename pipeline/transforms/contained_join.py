"""One document inside another, over all parts: keys to proposals, proposals to verified pairs.

What is in memory is the filter (32 bytes a text), one partition of the keys and hits, the shingles
of those documents of a range of parts that may be inside another, and 16 bytes a pair compared.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from dedup import bands, containment, sketches
from pipeline import schema
from pipeline.files import part_name
from pipeline.tables import rank_of, read_batch, read_columns, write_columns, write_table
from pipeline.transforms.contained import (
    DOCS,
    candidate_outputs,
    filter_output,
    hit_outputs,
    joins,
    key_outputs,
    of_parts,
    rows_of,
    shingle_outputs,
)
from pipeline.transforms.near import ROW

if TYPE_CHECKING:
    from pipeline.dedup_settings import Near


# --- filter, propose ------------------------------------------------------------------------------


def make_filter(root: Path, parts: list[int]) -> dict[str, Any]:
    """All keys of all parts as one bit vector."""
    paths = [key_outputs(root, part)[0] for part in parts]
    num = sum(len(read_batch(path, schema.BAND_KEYS)) for path in paths)
    words = containment.make_filter(num)
    for path in paths:
        containment.mark(read_columns(path, schema.BAND_KEYS)[0], words)
    write_columns(filter_output(root), schema.KEY_FILTER, [words])
    return {"keys": num, "bytes": words.nbytes}


def proposals_output(root: Path, partition: int) -> Path:
    return joins(root, "proposals", partition)


def propose(root: Path, parts: list[int], partition: int, num: int) -> dict[str, Any]:
    """Who has a key, of this partition of `num`, of whom."""
    keys, docs, is_key = [np.empty(0, np.uint64)], [np.empty(0, np.uint64)], [np.empty(0, bool)]
    for part in sorted(parts):
        for kind, path in ((True, key_outputs(root, part)[0]), (False, hit_outputs(root, part)[0])):
            all_keys, rows = read_columns(path, schema.BAND_KEYS)
            cut = bands.partition_slice(all_keys, partition, num)
            keys.append(all_keys[cut].copy())
            docs.append(rows[cut] | np.uint64(part << 32))
            is_key.append(np.full(len(keys[-1]), kind))
    records, of, kinds = np.concatenate(keys), np.concatenate(docs), np.concatenate(is_key)
    order = np.argsort(records, kind="stable")
    order = order[sketches.shared(records[order])]
    records, of, kinds = records[order], of[order], kinds[order]
    found = containment.propose(records, of, kinds, *_sizes(root, of))
    write_columns(proposals_output(root, partition), schema.PROPOSALS, list(found))
    return {"records": sum(map(len, keys)), "shared": len(records), "proposals": len(found.inner)}


def _sizes(root: Path, docs: bands.Docs) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.uint64]]:
    """Shingles and lot of each document."""
    sizes, lots = np.empty(len(docs), np.uint32), np.empty(len(docs), np.uint64)
    parts = (docs >> np.uint64(32)).astype(np.int64)
    for part in np.unique(parts).tolist():
        mine = np.flatnonzero(parts == part)
        of_part = read_columns(key_outputs(root, part)[1], schema.SIZES)
        sizes[mine], lots[mine] = (column[docs[mine] & ROW] for column in of_part)
    return sizes, lots


# --- join -----------------------------------------------------------------------------------------


def join(root: Path, near: Near, parts: list[int], num: int) -> dict[str, Any]:
    """Pairs that share enough keys, by (inner, outer), and the documents in them."""
    assert near.containment is not None
    files = [read_columns(proposals_output(root, p), schema.PROPOSALS) for p in range(num)]
    pairs = [np.empty((0, 2), np.uint64)]
    for part in sorted(parts):
        slices = [[c[of_parts(file[0], part, part)] for c in file] for file in files]
        columns = (np.concatenate(column) for column in zip(*slices, strict=True))
        found = containment.summed(*columns)
        sizes, _ = read_columns(key_outputs(root, part)[1], schema.SIZES)
        num_keys = containment.num_keys(sizes[found.inner & ROW].astype(np.int64))
        good = containment.chosen(found, num_keys, near.containment)
        pairs.append(np.stack([found.inner[good], found.outer[good]], axis=1))
    joined = np.concatenate(pairs)
    docs = np.unique(joined)
    pairs_path, docs_path = candidate_outputs(root)
    write_columns(pairs_path, schema.EDGES, [joined[:, 0], joined[:, 1]])
    write_columns(docs_path, DOCS, [docs])
    return {"pairs": len(joined), "documents": len(docs)}


# --- verify ---------------------------------------------------------------------------------------


def verify_output(root: Path, partition: int) -> Path:
    return root / "contained" / part_name(partition)


def verify(root: Path, near: Near, parts: list[int], partition: int, num: int) -> dict[str, Any]:
    """Pairs by true containment whose inner document stands in range `partition` of `num` of the
    parts; one part of outer ones is in memory at a time."""
    assert near.containment is not None
    parts = sorted(parts)
    mine = parts[len(parts) * partition // num : len(parts) * (partition + 1) // num]
    inner, outer = read_columns(candidate_outputs(root)[0], schema.EDGES)
    cut = of_parts(inner, mine[0], mine[-1]) if mine else slice(0)
    inner, outer = inner[cut].copy(), outer[cut].copy()
    order = np.argsort(outer, kind="stable")
    inner, outer = inner[order], outer[order]
    left = _gathered(root, np.unique(inner))
    tables = [schema.CONTAINED.empty_table()]
    num_compared = len(inner)
    for part in np.unique(outer >> np.uint64(32)).tolist():
        here = of_parts(outer, part, part)
        right = _gathered(root, np.unique(outer[here]))
        tables.append(_verified(left, right, inner[here], outer[here], near.containment))
    table = pa.concat_tables(tables).combine_chunks()
    names = [rank_of(table[name].combine_chunks()) for name in ("holder", "content_hash")]
    table = table.take(pa.array(np.lexsort(names)))
    write_table(verify_output(root, partition), schema.CONTAINED, table.columns)
    return {"compared": num_compared, "pairs": len(table)}


Gathered = tuple[bands.Docs, pa.Array, pa.LargeListArray]  # documents, contents, shingles


def _gathered(root: Path, docs: bands.Docs) -> Gathered:
    """Contents and shingles of documents, ascending."""
    contents, sets = [pa.array([], schema.HASH)], [pa.array([], pa.large_list(pa.uint64()))]
    for part in np.unique(docs >> np.uint64(32)).tolist():
        rows = (docs[of_parts(docs, part, part)] & ROW).astype(np.int64)
        batch = read_batch(shingle_outputs(root, part)[0], schema.COMPARED)
        batch = batch.take(pa.array(np.searchsorted(rows_of(root, part), rows)))
        contents.append(batch["content_hash"])
        sets.append(batch["shingles"])
    return docs, pa.concat_arrays(contents), pa.concat_arrays(sets)


def _verified(
    left: Gathered, right: Gathered, inner: bands.Docs, outer: bands.Docs, threshold: float
) -> pa.Table:
    (docs_a, names_a, sets_a), (docs_b, names_b, sets_b) = left, right
    i, j = np.searchsorted(docs_a, inner), np.searchsorted(docs_b, outer)
    sides = [(np.asarray(sets.values), np.asarray(sets.offsets)) for sets in (sets_a, sets_b)]
    shared = containment.num_shared(*sides[0], *sides[1], i, j)
    sizes_a, sizes_b = (np.diff(offsets)[k] for (_, offsets), k in zip(sides, (i, j), strict=True))
    share = shared / sizes_a
    good = share >= threshold
    columns = [
        names_a.take(pa.array(i[good])),
        names_b.take(pa.array(j[good])),
        pa.array(share[good].astype(np.float32)),
        pa.array(sizes_a[good].astype(np.int32)),
        pa.array(sizes_b[good].astype(np.int32)),
    ]
    return pa.table(columns, schema=schema.CONTAINED)
