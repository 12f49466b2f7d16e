"""Candidate edges to connected components, and a component to its verified pairs.

Candidates say where to look, true Jaccard over shingles decides: with plain LSH and transitive
closure 63.6 % of audited removals were false, and one source of templates fell from 859,092
documents to 2 (marin PR #7591, issue #6854).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
import numpy.typing as npt

from dedup.bands import Docs, Edges
from dedup.contraction import Names, scattered
from dedup.join import similarity_join
from dedup.shingles import Array, Hashes, Offsets
from kernels.compile import kernel

# Members up to which a component's pairs are verified and stored. 1,000 members have at most
# 499,500 pairs (18 MB of schema.PAIRS, about a second to verify); a cluster as large as marin's
# would have 3.7e11. Larger ones keep their shingles and are verified at selection time
# (dedup/selection.py, `keep_unique_by_shingles`).
MAX_STORED = 1000


def components(edges: Edges) -> tuple[Docs, npt.NDArray[np.int64]]:
    """Connected components: the nodes, ascending, and for each the index of the smallest node of
    its component. The result does not depend on the order of edges."""
    nodes, ends = np.unique(edges, return_inverse=True)
    parents, _ = _unite(ends.reshape(-1, 2), len(nodes))
    return nodes, parents


def streamed_components(
    edges: Callable[[], Iterable[Edges]],
) -> tuple[Docs, Names]:
    """Components of edges between `part << 32 | row` that come in pieces; called twice.

    Returns: the nodes, ascending, and for each the name of its component: the smallest scattered
    name in it (dedup/contraction.py). Memory is 4 bytes for each row of a part
    up to the last that is a node (8 from 2^31 rows on), and 40 a node; never all edges.
    """
    heights = np.zeros(0, np.int64)  # of each part, rows up to the last that is a node
    for piece in edges():
        parts, rows = _part_and_row(piece.reshape(-1))
        heights = np.pad(heights, (0, max(0, parts.max(initial=-1) + 1 - len(heights))))
        np.maximum.at(heights, parts, rows + 1)
    starts = np.append(0, np.cumsum(heights))
    narrow = starts[-1] < 1 << 31
    parents = np.arange(starts[-1], dtype=np.int32 if narrow else np.int64)
    is_node = np.zeros(len(parents), np.bool_)
    for piece in edges():
        parts, rows = _part_and_row(piece.reshape(-1))
        ends = starts[parts] + rows
        is_node[ends] = True
        _unite_all(ends.reshape(-1, 2), parents)
    _resolve(parents)
    places = np.flatnonzero(is_node)
    parts = np.searchsorted(starts, places, side="right") - 1
    nodes = parts.astype(np.uint64) << np.uint64(32) | (places - starts[parts]).astype(np.uint64)
    roots = np.searchsorted(places, parents[places])  # of each node its root, as a place in nodes
    names = scattered(nodes)
    smallest = np.full(len(nodes), ~np.uint64(0))
    np.minimum.at(smallest, roots, names)
    return nodes, smallest[roots]


def _part_and_row(docs: Docs) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    return (docs >> np.uint64(32)).astype(np.int64), (docs & np.uint64(0xFFFFFFFF)).astype(np.int64)


def united(
    left: npt.NDArray[np.int32], right: npt.NDArray[np.int32], num: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Components of pairs of numbers below `num`: those in a pair, ascending, and for each the
    smallest of its component. Memory is 9 bytes a number, and nothing a pair."""
    in_pair = np.zeros(num, np.bool_)
    in_pair[left] = in_pair[right] = True
    parents = np.arange(num)
    _unite_pairs(left, right, parents)
    _resolve(parents)
    found = np.flatnonzero(in_pair)
    return found, parents[found]


def spanning_forest(edges: Edges) -> Edges:
    """Edges that keep all components and no cycle: at most one less than there are nodes."""
    nodes, ends = np.unique(edges, return_inverse=True)
    _, joins = _unite(ends.reshape(-1, 2), len(nodes))
    return edges[joins]


def jaccard(a: Hashes, b: Hashes) -> float:
    """|A & B| / |A | B| of two arrays of distinct hashes; 0.0 when both are empty."""
    shared = len(np.intersect1d(a, b, assume_unique=True))
    return shared / max(1, len(a) + len(b) - shared)


def verified_pairs(
    hashes: Hashes, offsets: Offsets, threshold: float
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.float32]]:
    """All pairs (i, j, Jaccard) of a component's texts with Jaccard >= threshold; i < j, sorted.

    Exact. `hashes` and `offsets` as from `shingles`. The Jaccard is rounded to float32 and may so
    fall below `threshold`: do not compare it again.
    """
    everyone = np.arange(len(offsets) - 1)
    _, left, right, jaccards = similarity_join(hashes, offsets, threshold, everyone, greedy=False)
    i, j = np.minimum(left, right), np.maximum(left, right)
    order = np.lexsort((j, i))
    return i[order], j[order], jaccards[order]


@kernel
def _unite(ends: Array, num_nodes: int) -> tuple[Array, Array]:
    """Union-find; the smallest node is the root. Also which edges joined."""
    parents = np.arange(num_nodes)
    joins = _unite_all(ends, parents)
    _resolve(parents)
    return parents, joins


@kernel
def _unite_all(ends: Array, parents: Array) -> Array:
    """Join the two ends of every edge, with path halving; returns which edges joined."""
    joins = np.zeros(len(ends), np.bool_)
    for e in range(len(ends)):
        a = _root(parents, ends[e, 0])
        b = _root(parents, ends[e, 1])
        joins[e] = a != b
        parents[max(a, b)] = min(a, b)
    return joins


@kernel
def _unite_pairs(left: Array, right: Array, parents: Array) -> None:
    for k in range(len(left)):
        a, b = _root(parents, left[k]), _root(parents, right[k])
        parents[max(a, b)] = min(a, b)


@kernel
def _resolve(parents: Array) -> None:
    for node in range(len(parents)):
        parents[node] = parents[parents[node]]  # parents are smaller, so already roots


@kernel
def _root(parents: Array, node: int) -> int:
    while parents[node] != node:
        parents[node] = parents[parents[node]]
        node = parents[node]
    return node
