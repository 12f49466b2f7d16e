"""Which contents of a corpus stay when its near duplicates go, for any order of preference.

A content stays unless one that stays before it forms a verified pair with it. Clusters up to
dedup.clusters.MAX_STORED members have all their pairs on disk; larger ones have shingles, and are
verified here, among the contents that were asked for.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from dedup.selection import keep_unique, keep_unique_by_shingles
from pipeline import schema
from pipeline.corpus import manifest, part_paths


def near_unique(root: Path, contents: pa.Array) -> npt.NDArray[np.bool_]:
    """Mask of the `contents` (schema.HASH, distinct, the most preferred first) that stay."""
    num = len(contents)
    pairs = _read(root, "pairs", schema.PAIRS)
    first, second = (pc.index_in(pairs[name], value_set=contents) for name in ("a", "b"))
    both = pc.and_(first.is_valid(), second.is_valid())
    left, right = (np.asarray(side.filter(both)).astype(np.int64) for side in (first, second))
    keep = keep_unique(np.arange(num), left, right, num)
    for members, shingles in _large_clusters(root, contents):
        hashes = np.asarray(shingles.combine_chunks().flatten())
        offsets = np.concatenate([[0], np.cumsum(np.asarray(pc.list_value_length(shingles)))])
        threshold = manifest(root)["settings"]["near"]["threshold"]
        order = np.arange(len(members))
        keep[members] = keep_unique_by_shingles(order, hashes, offsets, threshold)
    return keep


def _large_clusters(
    root: Path, contents: pa.Array
) -> list[tuple[npt.NDArray[np.int64], pa.ChunkedArray]]:
    """Places in `contents`, ascending, and shingles of the members of each large cluster."""
    clusters = _read(root, "clusters", schema.CLUSTERS)
    clusters = clusters.filter(clusters["large"])
    table = _read(root, "clusters/shingles", schema.LARGE_CLUSTER_SHINGLES)
    table = table.append_column("at", pc.index_in(table["content_hash"], value_set=contents))
    table = table.filter(table["at"].is_valid()).sort_by("at")
    if not table.num_rows:
        return []
    which = pc.index_in(table["content_hash"], value_set=clusters["content_hash"])
    names = np.asarray(clusters["cluster"].take(which).combine_chunks().dictionary_encode().indices)
    return [
        (np.asarray(members["at"]).astype(np.int64), members["shingles"])
        for members in (table.filter(pa.array(names == name)) for name in np.unique(names))
    ]


def _read(root: Path, table: str, columns: pa.Schema) -> pa.Table:
    tables = [pq.read_table(path, schema=columns) for path in part_paths(root, table)]
    return pa.concat_tables(tables) if tables else columns.empty_table()
