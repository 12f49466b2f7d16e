"""At most so much of a source from one value of a column: one site must not be half of a corpus.

The documents of a value are walked in the order of `prefer`, then of content hashes; each stays
that the value still has room for. So a document too large for what is left goes, and smaller ones
behind it stay. Documents without a value are not one group: all stay. What stands several times
counts as often in tokens, once in documents.

`max_share: s` is of the tokens that the source has when it is capped, which capping changes itself.
Where each value has room for L tokens, let k(L) tokens stay, k_v(L) of value v. The limit is the
largest L that is at most s * k(L); so no value has more than its share of what stays, and with no
larger limit that would hold. It is found from above:

  - Room for more never means that less stays, k_v does not fall: at the first document where two
    walks differ, the roomier one took what the other had no room for.
  - So for all L' <= L, k(L') is at most f(L') = sum over v of min(k_v(L), L'). As f is concave and
    not below 0 at 0, the L' <= s * f(L') go from 0 to one largest, which bisection finds. No limit
    above that can be right. Walk with it, and so on, until the limit stays.

It is 0, and nothing stays, where there are fewer than 1 / s values: ten cannot have .05 each.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pyarrow as pa

from filters.addresses import parse, site
from mixtures.sources import Cap

SHOWN = 5  # of the values that lost most


@dataclass(frozen=True)
class Cut:
    """What one value lost to a cap."""

    value: str
    documents: int  # that it had, each once
    num_tokens: int
    left_documents: int
    left_tokens: int


@dataclass(frozen=True)
class Capped:
    """What a cap did to a source."""

    documents: int = 0  # left out
    num_tokens: int = 0  # of these, as often as they would stand
    values: int = 0  # of the column
    cut: int = 0  # values that lost documents
    without: int = 0  # documents without a value; all stay
    limit: int | None = None  # tokens that one value may have
    most: tuple[Cut, ...] = ()  # the values that lost most tokens


NO_CAP = Capped()


def capped(
    cap: Cap, values: pa.ChunkedArray, num_tokens: np.ndarray, rank: np.ndarray
) -> tuple[np.ndarray, Capped, tuple[Cut, ...]]:
    """Mask of the documents that stay, what is to be said of the others, and all cut values.

    Args:
        values: string, of each document, as the corpus says them.
        num_tokens: int64, of each document, as often as it stands.
        rank: int64, its place in the order of preference.
    """
    names, codes = grouped(cap, values)
    order = np.lexsort((rank, codes))
    order = order[codes[order] >= 0]
    groups, sizes = codes[order], num_tokens[order]
    most = cap.max_documents
    free = int(num_tokens.sum()) - int(sizes.sum())
    limit = cap.max_tokens
    if cap.max_share is not None:
        limit = _limit(Fraction(repr(cap.max_share)), groups, sizes, free, limit, most)
    stays = _walked(groups, sizes, limit, most)
    keep = np.ones(len(codes), bool)
    keep[order[~stays]] = False
    cuts = _cuts(names, groups, sizes, stays)
    found = Capped(
        documents=int((~stays).sum()),
        num_tokens=int(sizes[~stays].sum()),
        values=len(names),
        cut=len(cuts),
        without=len(codes) - len(order),
        limit=limit,
        most=cuts[:SHOWN],
    )
    return keep, found, cuts


def grouped(cap: Cap, values: pa.ChunkedArray) -> tuple[list[str], np.ndarray]:
    """The values that a cap tells apart, and the number of each document's, -1 where it has none:
    NULL, or an empty text."""
    encoded = values.combine_chunks().dictionary_encode()
    found = [name or "" for name in encoded.dictionary.to_pylist()]
    if cap.by.strip().lower() == "domain":
        found = list(map(_registered, found))
    names = sorted({*found} - {""})
    number = {name: at for at, name in enumerate(names)} | {"": -1}
    numbers = np.array([*map(number.__getitem__, found), -1])  # of null the last
    return names, numbers[np.asarray(encoded.indices.fill_null(len(found)))]


def _registered(host: str) -> str:
    """The domain that one owner registered, in punycode; an address of numbers is its own."""
    return host if ":" in host else site(parse(host)[0]) or host


def _limit(
    share: Fraction,
    groups: np.ndarray,
    sizes: np.ndarray,
    free: int,
    at_most: int | None,
    most: int | None,
) -> int:
    """The largest L <= share * k(L), at most `at_most`; `free` tokens stay in any case."""
    totals = _totals(groups, sizes)
    limit = _highest(share, totals, free, int(totals.sum()) if at_most is None else at_most)
    while True:
        stays = _walked(groups, sizes, limit, most)
        lower = _highest(share, _totals(groups[stays], sizes[stays]), free, limit)
        if lower == limit:
            return limit
        limit = lower


def _totals(groups: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    return np.bincount(groups, sizes).astype(np.int64)  # exact below 2**53


def _highest(share: Fraction, totals: np.ndarray, free: int, at_most: int) -> int:
    """The largest L <= share * (free + sum of min(totals, L)), from 0 to `at_most`."""
    totals = np.sort(totals)
    below = np.append(0, np.cumsum(totals)).tolist()
    low, high = 0, at_most
    while low < high:
        middle = (low + high + 1) // 2
        under = int(np.searchsorted(totals, middle))
        stays = free + below[under] + middle * (len(totals) - under)
        if middle * share.denominator <= share.numerator * stays:
            low = middle
        else:
            high = middle - 1
    return low


def _walked(
    groups: np.ndarray, sizes: np.ndarray, limit: int | None, most: int | None
) -> np.ndarray:
    """Mask of the documents, ordered by group and preference, that their group has room for: with
    `limit` tokens of each, and of these the first `most`."""
    taken = np.ones(len(groups), bool)
    if limit is not None:
        taken[:] = False
        room = np.full(int(groups.max(initial=-1)) + 1, limit, np.int64)
        left = np.arange(len(groups))
        while len(left):
            # A document without room now has none later; the first of those left has it
            left = left[sizes[left] <= room[groups[left]]]
            behind = np.cumsum(sizes[left])
            first = np.flatnonzero(np.diff(groups[left], prepend=-1))
            before = np.zeros(len(room), np.int64)
            before[groups[left[first]]] = behind[first] - sizes[left[first]]
            fits = behind - before[groups[left]] <= room[groups[left]]
            taken[left[fits]] = True
            np.subtract.at(room, groups[left[fits]], sizes[left[fits]])
            left = left[~fits]
    if most is not None:
        (here,) = np.nonzero(taken)
        first = np.flatnonzero(np.diff(groups[here], prepend=-1))
        number = np.arange(len(here)) - np.repeat(first, np.diff(np.append(first, len(here))))
        taken[here[number >= most]] = False
    return taken


def _cuts(
    names: list[str], groups: np.ndarray, sizes: np.ndarray, stays: np.ndarray
) -> tuple[Cut, ...]:
    """The values that lost documents, those that lost most tokens first."""
    columns = []
    for which in (np.ones(len(groups), bool), stays):
        columns.append(np.bincount(groups[which], minlength=len(names)))
        columns.append(np.bincount(groups[which], sizes[which], len(names)).astype(np.int64))
    documents, tokens, left_documents, left_tokens = columns
    lost = np.flatnonzero(documents > left_documents)
    lost = lost[np.argsort(left_tokens[lost] - tokens[lost], kind="stable")]
    return tuple(Cut(names[at], *(int(column[at]) for column in columns)) for at in lost.tolist())
