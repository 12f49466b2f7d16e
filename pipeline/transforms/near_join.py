"""Near duplicates over all parts: band keys to components, components to verified pairs.

Each join is made in partitions, of which one at a time is in memory: about PARTITION_BYTES of text
each, whatever the size of the corpus. A partition reads a slice of each part's file, and lets go of
the file at once. `join` sees everything, so it keeps one number a document and streams the edges.
"""

from __future__ import annotations

import bisect
import itertools
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from dedup import bands, clusters, sketches
from dedup.contraction import Names, begins, scattered
from pipeline import schema
from pipeline.files import part_name, replacing
from pipeline.tables import rank_of, read_batch, read_columns, write_columns, write_table
from pipeline.transforms.near import ROW, components_output, shingle_outputs, sign_outputs

if TYPE_CHECKING:
    from pipeline.dedup_settings import Near

# Text of one partition, about. Band keys are 0.1 to 0.5 of it (16 bytes in memory, 21 a document of
# 700 to 3,000 bytes), shingles of Chinese 2.7 times it if every document had a near copy.
PARTITION_BYTES = 128_000_000
# From so many on their number and what each holds grow with the root of the text, for every one
# reads a slice of every part: 3 TB are 8,192 of .4 GB instead of 32,768, 300 TB 65,536 of 5 GB.
MANY_PARTITIONS = 1_024
SLICE_ROWS = 4_096  # members of large components whose shingles are copied together: 8 MB of pages


def partitions(text_bytes: int) -> int:
    """How many partitions a corpus of so much text is joined in: a power of two."""
    num = -(-text_bytes // PARTITION_BYTES)
    if num > MANY_PARTITIONS:
        num = math.isqrt(num * MANY_PARTITIONS)
    return 1 << max(0, num - 1).bit_length()


# --- forest, join ---------------------------------------------------------------------------------


def forest_output(root: Path, partition: int) -> Path:
    return root / "joins" / "forest" / part_name(partition, "arrow")


def forest(
    root: Path,
    near: Near,
    parts: list[int],
    partition: int,
    num: int,
    known: Sequence[Sequence[int]] = (),
) -> dict[str, Any]:
    """Documents that share a band key of this partition of `num` and have like sketches, as a
    spanning forest of edges.

    Args:
        known: groups of these parts whose forests stand already: keys that no part outside the
            group has join nothing new.
    """
    slices = [(np.empty(0, np.uint64), np.empty(0, np.uint64))]
    for part in sorted(parts):
        keys, rows = read_columns(sign_outputs(root, part)[0], schema.BAND_KEYS)
        cut = bands.partition_slice(keys, partition, num)
        slices.append((keys[cut].copy(), rows[cut] | np.uint64(part << 32)))
    keys, docs = bands.sort_records(
        np.concatenate([k for k, _ in slices]), np.concatenate([d for _, d in slices])
    )
    num_keys, shared = len(keys), sketches.shared(keys)
    keys, docs = keys[shared], docs[shared]
    if known:
        met = _met(keys, docs, known)
        keys, docs = keys[met], docs[met]
    bits = _sketches(root, docs, sketches.num_words(near.permutations))
    most = sketches.most_different(near.permutations, near.threshold)
    edges = clusters.spanning_forest(sketches.similar_edges(keys, docs, bits, most))
    write_columns(forest_output(root, partition), schema.EDGES, [edges[:, 0], edges[:, 1]])
    return {"band_keys": num_keys, "edges": len(edges)}


def _met(
    keys: bands.Keys, docs: bands.Docs, known: Sequence[Sequence[int]]
) -> npt.NDArray[np.bool_]:
    """Which records have a key that stands outside of one known group."""
    group_of = np.zeros(1 + max(map(max, known)), np.int64)
    for number, group in enumerate(known, 1):
        group_of[list(group)] = number
    parts = (docs >> np.uint64(32)).astype(np.int64)
    groups = np.where(parts < len(group_of), group_of[np.minimum(parts, len(group_of) - 1)], 0)
    starts = np.flatnonzero(np.append(True, keys[1:] != keys[:-1])[: len(keys)])
    if not len(starts):
        return np.zeros(0, np.bool_)
    least, most = (ufunc.reduceat(groups, starts) for ufunc in (np.minimum, np.maximum))
    sizes = np.diff(np.append(starts, len(keys)))
    return np.repeat((least == 0) | (least != most), sizes)


def _sketches(root: Path, docs: bands.Docs, num_words: int) -> sketches.Sketches:
    """The sketch of each document."""
    found = np.empty((len(docs), num_words), np.uint64)
    parts = (docs >> np.uint64(32)).astype(np.int64)
    order = np.argsort(parts, kind="stable")
    for rows in np.split(order, np.flatnonzero(np.diff(parts[order])) + 1) if len(docs) else []:
        (bits,) = read_columns(sign_outputs(root, int(parts[rows[0]]))[1], schema.SKETCHES)
        found[rows] = bits.reshape(-1, num_words)[docs[rows] & ROW]
    return found


def join(root: Path, num: int) -> dict[str, Any]:
    """One union-find over the forests: documents sorted, with their component. Of more edges
    than one process unites contraction.py makes the same."""

    def edges() -> Iterator[bands.Edges]:
        for partition in range(num):
            yield np.stack(read_columns(forest_output(root, partition), schema.EDGES), axis=1)

    docs, components = clusters.streamed_components(edges)
    write_columns(components_output(root), schema.COMPONENTS, [docs, components])
    return {"candidates": len(docs), "components": int((scattered(docs) == components).sum())}


# --- verify ---------------------------------------------------------------------------------------


def verify_outputs(root: Path, partition: int) -> list[Path]:
    name = part_name(partition)
    return [root / "pairs" / name, root / "clusters" / name, root / "clusters" / "shingles" / name]


def verify(root: Path, near: Near, parts: list[int], partition: int, num: int) -> dict[str, Any]:
    """Pairs by true Jaccard inside each candidate component of this partition of `num`.

    A content that stands in several parts counts once. A component above MAX_STORED members keeps
    its shingles instead of its pairs: it is verified when a mixture selects. They are copied slice
    by slice, so that a component of a million near-equal pages takes 40 bytes a page here.
    """
    labels, names, places = _members(root, parts, partition, num)
    bounds = np.append(np.flatnonzero(begins(labels)), len(labels))
    sizes = np.diff(bounds)
    in_large = np.repeat(sizes > clusters.MAX_STORED, sizes)
    sets = _shingles(root, places[~in_large])
    hashes, offsets = np.asarray(sets.values), np.asarray(sets.offsets)
    small = np.cumsum(~in_large) - 1  # of a member: which of `sets` is its
    found = [(np.empty(0, np.int32), np.empty(0, np.int32), np.empty(0, np.float32))]
    for begin, end in itertools.pairwise(bounds):
        if 1 < end - begin <= clusters.MAX_STORED:
            inside = offsets[small[begin] : small[end - 1] + 2]
            i, j, jaccards = clusters.verified_pairs(
                hashes[inside[0] : inside[-1]], inside - inside[0], near.threshold
            )
            pair = ((begin + side).astype(np.int32) for side in (i, j))
            found.append((*pair, jaccards))
    first, second, jaccard = (np.concatenate(column) for column in zip(*found, strict=True))
    del found
    # Rows of a component stand together, contents ascending: the smallest row has the smallest.
    rows, leaders = clusters.united(first, second, len(labels))
    large = np.flatnonzero(in_large)
    rows, leaders = np.append(rows, large), np.append(leaders, np.repeat(bounds[:-1], sizes)[large])
    members = np.bincount(leaders, minlength=len(labels))[leaders].astype(np.int32)

    pairs_path, clusters_path, shingles_path = verify_outputs(root, partition)
    rank = rank_of(names).astype(np.uint32)
    by_content = np.argsort(rank[first].astype(np.uint64) << np.uint64(32) | rank[second])
    columns = [names.take(pa.array(side[by_content])) for side in (first, second)]
    write_table(pairs_path, schema.PAIRS, [*columns, pa.array(jaccard[by_content])])
    by_content = np.argsort(rank[rows], kind="stable")
    columns = [names.take(pa.array(side[by_content])) for side in (rows, leaders)]
    columns += [pa.array(members[by_content]), pa.array(in_large[rows][by_content])]
    write_table(clusters_path, schema.CLUSTERS, columns)
    large = large[np.argsort(rank[large])]
    with (
        replacing(shingles_path) as temporary,
        pq.ParquetWriter(temporary, schema.LARGE_CLUSTER_SHINGLES, compression="zstd") as writer,
    ):
        for begin in range(0, len(large), SLICE_ROWS):
            some = large[begin : begin + SLICE_ROWS]
            columns = [names.take(pa.array(some)), _shingles(root, places[some])]
            types = schema.LARGE_CLUSTER_SHINGLES.types
            arrays = [column.cast(kind) for column, kind in zip(columns, types, strict=True)]
            writer.write_table(pa.table(arrays, schema=schema.LARGE_CLUSTER_SHINGLES))
    return {"pairs": len(first), "clustered": len(rows), "large": len(large)}


PLACE = np.dtype([("part", "<u4"), ("row", "<u4")])  # of a candidate, in the file of its part
Places = npt.NDArray[Any]  # of PLACE


def _members(
    root: Path, parts: list[int], partition: int, num: int
) -> tuple[Names, pa.Array, Places]:
    """Candidates of a partition, each content once, by component and content: their components,
    contents, and places."""
    labels, places = [np.empty(0, np.uint64)], [np.empty(0, PLACE)]
    contents = [pa.array([], schema.HASH)]
    for part in sorted(parts):
        batch = read_batch(shingle_outputs(root, part)[0], schema.CANDIDATES)
        components = np.asarray(batch["component"])
        begin, end = (
            bisect.bisect_left(components, border, key=lambda component: component % num)
            for border in (partition, partition + 1)
        )
        rows = np.arange(begin, end)  # copied, so that nothing holds the file
        labels.append(components[rows])
        contents.append(batch["content_hash"].take(pa.array(rows)))
        mine = np.empty(len(rows), PLACE)
        mine["part"], mine["row"] = part, rows
        places.append(mine)
    label, content = np.concatenate(labels), pa.concat_arrays(contents)
    rank = rank_of(content)
    order = np.lexsort((rank, label))
    label, rank = label[order], rank[order]
    is_new = begins(label) | begins(rank)
    order = order[is_new]
    return label[is_new], content.take(pa.array(order)), np.concatenate(places)[order]


def _shingles(root: Path, places: Places) -> pa.LargeListArray:
    """Shingles of candidates, in this order; the file of a part is let go of at once."""
    found = [pa.array([], pa.large_list(pa.uint64()))]
    order = np.argsort(places["part"], kind="stable")
    ordered = places[order]
    for part in np.unique(ordered["part"]).tolist():
        rows = ordered["row"][slice(*np.searchsorted(ordered["part"], [part, part + 1]))]
        sets = read_batch(shingle_outputs(root, part)[0], schema.CANDIDATES)["shingles"]
        found.append(sets.take(pa.array(rows)))
    return pa.concat_arrays(found).take(pa.array(np.argsort(order)))
