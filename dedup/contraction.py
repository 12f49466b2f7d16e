"""Connected components in rounds, of graphs that no process holds: large-star and small-star.

Kiveris et al. 2014, "Connected Components in MapReduce and Beyond". Every vertex has an owner, who
sees the edges of its vertices alone. Large-star joins the larger neighbours of a vertex to the
smallest one, small-star the smaller ones; in turn, until nothing changes: then each component is a
star around its smallest vertex. Neither adds an edge. A path, whose ends are as far apart as can
be, takes a number of rounds that grows with the logarithm of its length (17 of 1e6 vertices).

Vertices have scattered names, a bijection of documents: so the owner of a range of names has as
many as any other, and which vertex is the smallest is a lot. In the order of documents a cluster
would gather in the first parts, and a chain in the order of the input would take its length.

Records are (to, other): what the owner of `to` is told. An edge is told to both ends, or to its
larger one.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from dedup.bands import Docs

Names = npt.NDArray[np.uint64]

_FIRST, _SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_FIRST_BACK, _SECOND_BACK = (np.uint64(pow(int(m), -1, 1 << 64)) for m in (_FIRST, _SECOND))


class Records(NamedTuple):
    """Each once, ordered by `to`, then `other`."""

    to: Names
    other: Names


def scattered(docs: Docs) -> Names:
    """Names of documents: the finalizer of splitmix64 (Steele et al. 2014)."""
    x = (docs ^ (docs >> np.uint64(30))) * _FIRST
    x = (x ^ (x >> np.uint64(27))) * _SECOND
    return x ^ (x >> np.uint64(31))


def gathered(names: Names) -> Docs:
    """The documents of names."""
    x = (names ^ (names >> np.uint64(31)) ^ (names >> np.uint64(62))) * _SECOND_BACK
    x = (x ^ (x >> np.uint64(27)) ^ (x >> np.uint64(54))) * _FIRST_BACK
    docs: Docs = x ^ (x >> np.uint64(30)) ^ (x >> np.uint64(60))
    return docs


def to_both(a: Names, b: Names) -> Records:
    """Edges, told to both ends."""
    return _records(np.concatenate([a, b]), np.concatenate([b, a]))


def merged(pieces: list[Records]) -> Records:
    """What several have to tell."""
    return _records(*map(np.concatenate, zip(*pieces, strict=True)))


def large_star(told: Records) -> tuple[Records, int]:
    """Of edges told to both ends: each vertex joins its larger neighbours to the smallest of all,
    itself included. Edges, told to the larger end; and how many are other than before."""
    smallest = np.minimum(_smallest(told), told.to)
    larger = told.other > told.to
    changed = int((smallest[larger] != told.to[larger]).sum())
    return _records(told.other[larger], smallest[larger]), changed


def small_star(told: Records) -> tuple[Records, int]:
    """Of edges told to the larger end: each vertex joins its neighbours and itself to the smallest
    of them. Edges, told to both ends; and how many are other than before."""
    smallest = _smallest(told)
    others = told.other != smallest
    to = np.concatenate([told.to, told.other[others]])
    return to_both(to, np.concatenate([smallest, smallest[others]])), int(others.sum())


def stars(told: Records) -> Records:
    """Of stars told to both ends: every vertex with the centre of its star, itself if it is one."""
    first = begins(told.to)
    return Records(told.to[first], np.minimum(told.to[first], told.other[first]))


def _records(to: Names, other: Names) -> Records:
    order = np.lexsort((other, to))
    to, other = to[order], other[order]
    is_new = begins(to) | begins(other)
    return Records(to[is_new], other[is_new])


def begins(values: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    """Which values are other than the one before them."""
    found = np.ones(len(values), np.bool_)
    found[1:] = values[1:] != values[:-1]
    return found


def _smallest(told: Records) -> Names:
    """Of each record the smallest neighbour of its vertex: the first that it is told."""
    first = begins(told.to)
    smallest: Names = told.other[first][np.cumsum(first) - 1]
    return smallest
