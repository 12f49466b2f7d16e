"""The exact similarity join: which sets of shingles have Jaccard >= threshold.

Prefix filter (Chaudhuri et al. 2006; Xiao et al. 2008, PPJoin): number the shingles from the rarest
on and sort each set by that number. Two sets that are similar enough share at least one of the
first `size - ceil(threshold * size) + 1` numbers of both, so only these are indexed and looked up;
what a template has in common with its other copies stands at the end and costs nothing. Pairs that
share too few of them, or differ too much in size, are passed over; the others are counted out, and
given up as soon as they cannot succeed.

The same walk answers two questions. All pairs: look up, report, index. Greedy: index (keep) only
what is similar to nothing kept so far; rule 2 of the design in the order given.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from dedup.shingles import Array, Hashes, Offsets
from kernels.compile import kernel

# Taken off real-valued bounds before rounding them up: 0.07 * 100 is 7.000000000000001, and a bound
# that is one too low costs a comparison while one too high costs a pair.
_SLACK = 1e-6


def similarity_join(
    hashes: Hashes, offsets: Offsets, threshold: float, order: npt.NDArray[np.int64], greedy: bool
) -> tuple[
    npt.NDArray[np.bool_],
    npt.NDArray[np.int64],
    npt.NDArray[np.int64],
    npt.NDArray[np.float32],
]:
    """Walk the sets `order`; each is `hashes[offsets[i]:offsets[i + 1]]`, distinct values.

    Returns: what was kept (a mask over all sets: with `greedy` those similar to no earlier kept
    one, else all of `order`), then the pairs (left, right, Jaccard) met on the way, unordered. An
    empty set is similar to nothing.

    Raises:
        ValueError: `threshold` is not in (0, 1].
    """
    if not 0 < threshold <= 1:
        raise ValueError(f"threshold = {threshold}: a Jaccard similarity is above 0, at most 1")
    kept, left, right, jaccards = _walk(
        _rarest_first(hashes, offsets), offsets, threshold, order, greedy
    )
    return kept, left, right, jaccards


def _rarest_first(hashes: Hashes, offsets: Offsets) -> npt.NDArray[np.uint32]:
    """Each hash as its rank by (how many sets have it, value); ascending inside every set."""
    distinct, place, counts = np.unique(hashes, return_inverse=True, return_counts=True)
    rank = np.empty(len(distinct), np.int64)
    rank[np.argsort(counts, kind="stable")] = np.arange(len(distinct))
    owner = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    return np.sort(owner << 32 | rank[place]).astype(np.uint32)  # the low half


@kernel
def _walk(
    tokens: Array, offsets: Array, threshold: float, order: Array, greedy: bool
) -> tuple[Array, Array, Array, Array]:
    num_sets = len(offsets) - 1
    kept = np.zeros(num_sets, np.bool_)
    left, right = np.empty(16, np.int64), np.empty(16, np.int64)
    jaccards = np.empty(16, np.float32)
    num_pairs = 0
    starts = _posting_starts(tokens, offsets, threshold, order)
    ends = starts[:-1].copy()
    postings = np.empty(starts[-1], np.uint32)  # sets kept so far, by the tokens of their prefixes
    common = np.zeros(num_sets, np.int32)  # tokens that the prefixes of x and y share
    candidates = np.empty(num_sets, np.uint32)
    in_x = np.zeros(len(ends), np.uint8)
    for x in order:
        begin, end = offsets[x], offsets[x + 1]
        prefix_end = begin + _prefix(end - begin, threshold)
        num_candidates = 0
        for token in tokens[begin:prefix_end]:
            for y in postings[starts[token] : ends[token]]:
                if common[y] == 0:
                    candidates[num_candidates] = y
                    num_candidates += 1
                common[y] += 1
        if num_candidates > 0:
            in_x[tokens[begin:end]] = 1
        similar = False
        for y in candidates[:num_candidates]:
            known, common[y] = common[y], 0
            if greedy and similar:
                continue
            found = _jaccard(tokens, offsets, threshold, x, y, known, in_x)
            if found < threshold:
                continue
            similar = True
            if num_pairs == len(left):
                left = np.concatenate((left, left))
                right = np.concatenate((right, right))
                jaccards = np.concatenate((jaccards, jaccards))
            left[num_pairs], right[num_pairs], jaccards[num_pairs] = x, y, found
            num_pairs += 1
        if num_candidates > 0:
            in_x[tokens[begin:end]] = 0
        if greedy and similar:
            continue
        kept[x] = True
        for token in tokens[begin:prefix_end]:
            postings[ends[token]] = x
            ends[token] += 1
    return kept, left[:num_pairs], right[:num_pairs], jaccards[:num_pairs]


@kernel
def _posting_starts(tokens: Array, offsets: Array, threshold: float, order: Array) -> Array:
    """Where the postings of each token begin if every set of `order` is kept, and their end."""
    starts = np.zeros(tokens.max() + 2 if len(tokens) else 1, np.int64)
    for x in order:
        for i in range(offsets[x], offsets[x] + _prefix(offsets[x + 1] - offsets[x], threshold)):
            starts[tokens[i] + 1] += 1
    return np.cumsum(starts)


@kernel
def _prefix(size: int, threshold: float) -> int:
    return size - math.ceil(threshold * size - _SLACK) + 1 if size > 0 else 0


@kernel
def _jaccard(
    tokens: Array, offsets: Array, threshold: float, x: int, y: int, known: int, in_x: Array
) -> float:
    """Jaccard of the sets x and y, or 0 once it must fall below `threshold`.

    `known`: how many tokens their prefixes share; in_x[token]: is it in x.
    """
    begin, end = offsets[y], offsets[y + 1]
    size_x, size_y = offsets[x + 1] - offsets[x], end - begin
    if min(size_x, size_y) / max(size_x, size_y) < threshold:
        return 0.0
    needed = math.ceil(threshold / (1 + threshold) * (size_x + size_y) - _SLACK)
    # What is shared up to the smaller of the two last prefix tokens stands in both prefixes; the
    # rest comes after the prefix that ends with it.
    prefix_x, prefix_y = _prefix(size_x, threshold), _prefix(size_y, threshold)
    x_ends_first = tokens[offsets[x] + prefix_x - 1] <= tokens[begin + prefix_y - 1]
    if known + (size_x - prefix_x if x_ends_first else size_y - prefix_y) < needed:
        return 0.0
    shared = 0
    for block in range(begin, end, 64):
        stop = min(block + 64, end)
        for i in range(block, stop):
            shared += in_x[tokens[i]]
        if shared + end - stop < needed:
            return 0.0
    return float(shared / (size_x + size_y - shared))
