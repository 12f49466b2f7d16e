"""Which contents of a corpus stay when its near duplicates go, for any order of preference; and of
these, which stay when what others hold goes.

A content stays unless one that stays before it forms a verified pair with it. Clusters up to
dedup.clusters.MAX_STORED members have all their pairs on disk; larger ones have shingles, and are
verified here, among the contents that were asked for.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from dedup.postings import build_index
from dedup.selection import keep_unique, keep_unique_by_shingles
from dedup.shingles import Hashes, Offsets
from pipeline import schema
from pipeline.corpus import manifest, part_paths
from pipeline.forgotten import near_copies


def near_unique(root: Path, contents: pa.Array) -> npt.NDArray[np.bool_]:
    """Mask of the `contents` (schema.HASH, distinct, the most preferred first) that stay."""
    num = len(contents)
    _, left, right = _among(_read(root, "pairs", schema.PAIRS), contents)
    keep = keep_unique(np.arange(num), left, right, num)
    for places, shingles in _large_clusters(root, contents):
        threshold = manifest(root)["settings"]["near"]["threshold"]
        keep[places] = keep_unique_by_shingles(np.argsort(places), *_sets(shingles), threshold)
    return keep


def outermost(root: Path, contents: pa.Array) -> npt.NDArray[np.bool_]:
    """Mask of the `contents`, as of `near_unique`, that stay when those go that another one holds.

    The same rule, walked from the longest on: a text stays unless one that stays holds it. So a
    page never goes for a notice that it shows, however much the notice is preferred.
    """
    num = len(contents)
    pairs, inner, outer = _among(_read(root, "contained", schema.CONTAINED), contents)
    sizes = np.zeros(num, np.int64)
    sizes[inner] = np.asarray(pairs["num_shingles"])
    sizes[outer] = np.asarray(pairs["holder_shingles"])
    return keep_unique(np.argsort(-sizes, kind="stable"), inner, outer, num)


def holders(root: Path, content: bytes) -> dict[bytes, float]:
    """The contents that hold a content, and how much of it; of equal ones, each holds the other."""
    pairs, name = _read(root, "contained", schema.CONTAINED), pa.scalar(content, schema.HASH)
    equal = pairs.filter(pc.equal(pairs["num_shingles"], pairs["holder_shingles"]))
    found: dict[bytes, float] = {}
    for table, inside, outside in (
        (pairs, "content_hash", "holder"),
        (equal, "holder", "content_hash"),
    ):
        mine = table.filter(pc.equal(table[inside], name))
        shares = mine["containment"].to_pylist()
        found |= dict(zip(mine[outside].to_pylist(), shares, strict=True))
    return found


def _among(
    pairs: pa.Table, contents: pa.Array
) -> tuple[pa.Table, npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """The pairs of which both sides are asked for, and the places of these in `contents`."""
    left, right = (pc.index_in(side, value_set=contents) for side in pairs.columns[:2])
    both = pc.and_(left.is_valid(), right.is_valid())
    places = (np.asarray(side.filter(both)).astype(np.int64) for side in (left, right))
    return pairs.filter(both), *places


def partners(root: Path, content: bytes, others: Sequence[bytes]) -> dict[bytes, float]:
    """Those of `others` (distinct) that form a verified pair with a content, and their Jaccard."""
    pairs, wanted = _read(root, "pairs", schema.PAIRS), set(others)
    found: dict[bytes, float] = {}
    for here, there in (("a", "b"), ("b", "a")):
        mine = pairs.filter(pc.equal(pairs[here], pa.scalar(content, schema.HASH)))
        both = zip(mine[there].to_pylist(), mine["jaccard"].to_pylist(), strict=True)
        found |= {other: jaccard for other, jaccard in both if other in wanted}
    threshold = manifest(root)["settings"]["near"]["threshold"]
    for places, shingles in _large_clusters(root, pa.array([content, *others], schema.HASH)):
        (at,) = np.nonzero(places == 0)
        if len(at):
            ours = np.asarray(shingles[int(at[0])].values)
            for place, theirs in zip(places.tolist(), shingles, strict=True):
                shared = len(np.intersect1d(ours, np.asarray(theirs.values)))
                jaccard = shared / (len(ours) + len(theirs.values) - shared)
                if place and jaccard >= threshold:
                    found[others[place - 1]] = jaccard
    return found


def apart_from(root: Path, contents: pa.Array, given: pa.Array) -> npt.NDArray[np.bool_]:
    """Mask of the `contents` that form no verified pair with one of those `given`, which stay
    whatever they are to each other."""
    pairs = _read(root, "pairs", schema.PAIRS)
    apart = np.ones(len(contents), np.bool_)
    for near, far in (("a", "b"), ("b", "a")):
        near_given = pairs.filter(pc.is_in(pairs[far], value_set=given))[near]
        apart &= ~np.asarray(pc.is_in(contents, value_set=near_given.combine_chunks()))
    threshold = manifest(root)["settings"]["near"]["threshold"]
    for places, shingles in _large_clusters(root, pa.concat_arrays([contents, given])):
        is_given = places >= len(contents)
        index = build_index(*_sets(shingles.filter(pa.array(is_given))), threshold)
        asked = _sets(shingles.filter(pa.array(~is_given)))
        apart[places[~is_given][near_copies(index, *asked, threshold)]] = False
    return apart


def clustered(root: Path) -> pa.Array:
    """All contents that form a verified pair, or may."""
    return _read(root, "clusters", schema.CLUSTERS)["content_hash"].combine_chunks()


def _large_clusters(
    root: Path, contents: pa.Array
) -> Iterator[tuple[npt.NDArray[np.int64], pa.ListArray]]:
    """Of each large cluster, the members that are asked for: their places in `contents`, and their
    shingles. A cluster stands in one part, so that one part is held at a time."""
    clusters = _read(root, "clusters", schema.CLUSTERS)
    clusters = clusters.filter(clusters["large"])
    for path in part_paths(root, "clusters/shingles"):
        pieces: dict[bytes, list[tuple[pa.Array, pa.Array]]] = {}
        for batch in pq.ParquetFile(path).iter_batches():
            at = pc.index_in(batch["content_hash"], value_set=contents)
            which = pc.index_in(batch["content_hash"], value_set=clusters["content_hash"])
            names = clusters["cluster"].take(which).combine_chunks()
            for name in names.filter(at.is_valid()).unique():
                mine = pc.and_(pc.equal(names, name), at.is_valid())
                piece = at.filter(mine), batch["shingles"].filter(mine)
                pieces.setdefault(name.as_py(), []).append(piece)
        while pieces:
            yield _joined(pieces.popitem()[1])


def _sets(shingles: pa.ListArray) -> tuple[Hashes, Offsets]:
    offsets = np.asarray(shingles.offsets).astype(np.int64)
    return np.asarray(shingles.flatten()), offsets - offsets[0]


def _joined(pieces: list[tuple[pa.Array, pa.Array]]) -> tuple[npt.NDArray[np.int64], pa.ListArray]:
    places, shingles = map(pa.concat_arrays, zip(*pieces, strict=True))
    return np.asarray(places).astype(np.int64), shingles


def _read(root: Path, table: str, columns: pa.Schema) -> pa.Table:
    tables = [pq.read_table(path, schema=columns) for path in part_paths(root, table)]
    return pa.concat_tables(tables) if tables else columns.empty_table()
