"""The exact similarity join: which sets of shingles have Jaccard >= threshold.

Prefix filter (Chaudhuri et al. 2006; Xiao et al. 2008, PPJoin): number the shingles from the rarest
on and sort each set by that number. Two sets that are similar enough share `needed` of them, so
they share one of the first `size - needed + 1` of both; what a template has in common with its
other copies stands at the end and costs nothing. `needed` depends on both sizes. So what is indexed
of a set is grouped by shingle, size of the set and place in it: a group that stands too far back
for the set that looks it up is passed over as one, however many sets are in it.

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
    tokens, num_tokens = _rarest_first(hashes, offsets)
    kept, left, right, jaccards = _walk(tokens, num_tokens, offsets, threshold, order, greedy)
    return kept, left, right, jaccards


@kernel
def _rarest_first(hashes: Array, offsets: Array) -> tuple[Array, int]:
    """Each hash as its rank by how many sets have it, ascending inside every set; and how many
    distinct ones there are. Which of two equally rare ones is first makes no difference."""
    tokens, counts = _numbered(hashes)
    starts = np.zeros(len(offsets) + 1, np.int64)  # of the ranks of those with a count
    for count in counts:
        starts[count + 1] += 1
    starts = np.cumsum(starts)
    ranks = counts  # in its place
    for token, count in enumerate(counts):
        ranks[token] = starts[count]
        starts[count] += 1
    for i, token in enumerate(tokens):
        tokens[i] = ranks[token]
    for k in range(len(offsets) - 1):
        tokens[offsets[k] : offsets[k + 1]].sort()
    return tokens, len(ranks)


@kernel
def _numbered(hashes: Array) -> tuple[Array, Array]:
    """Distinct hashes numbered in the order in which they come, and how often each does.

    A hash table, for in a cluster most are copies: np.unique took 40 bytes a hash and ten times
    as long."""
    numbers = np.empty(len(hashes), np.uint32)
    distinct, counts = np.empty(1 << 10, np.uint64), np.zeros(1 << 10, np.uint32)
    slots = np.zeros(1 << 11, np.uint32)  # number + 1 of the hash that is there; 0: free
    num = 0
    for i, value in enumerate(hashes):
        slot = _slot(value, distinct, slots)
        if not slots[slot]:
            if num == len(distinct):
                distinct = np.concatenate((distinct, np.empty_like(distinct)))
                counts = np.concatenate((counts, np.zeros_like(counts)))
                slots = np.zeros(4 * num, np.uint32)
                for number in range(num):
                    slots[_slot(distinct[number], distinct, slots)] = number + 1
                slot = _slot(value, distinct, slots)
            distinct[num] = value
            num += 1
            slots[slot] = num
        numbers[i] = slots[slot] - 1
        counts[numbers[i]] += 1
    return numbers, counts[:num]


@kernel
def _slot(value: int, distinct: Array, slots: Array) -> int:
    """Where a hash is in the table, or the free slot where it will be: linear probing after
    Fibonacci hashing (Knuth 6.4), for values that need not be random."""
    mixed = np.uint64(value) * np.uint64(0x9E3779B97F4A7C15)
    slot = np.int64(mixed >> np.uint64(32)) & (len(slots) - 1)
    while slots[slot] and distinct[slots[slot] - 1] != value:
        slot = (slot + 1) & (len(slots) - 1)
    return int(slot)


@kernel
def _walk(
    tokens: Array, num_tokens: int, offsets: Array, threshold: float, order: Array, greedy: bool
) -> tuple[Array, Array, Array, Array]:
    num_sets = len(offsets) - 1
    kept = np.zeros(num_sets, np.bool_)
    left, right = np.empty(16, np.int64), np.empty(16, np.int64)
    jaccards = np.empty(16, np.float32)
    num_pairs = 0
    most = 0
    for x in order:
        most += _prefix(offsets[x + 1] - offsets[x], threshold)
    # What is indexed: of each token a list of groups, of each group a list of sets; -1 ends a list.
    # What nothing is written to takes no memory.
    heads = np.full(num_tokens, -1, np.int32)
    groups = np.empty((most, 4), np.int32)  # size, place, first entry, next group
    entries = np.empty((most, 2), np.int32)  # set, next entry
    used = np.zeros(2, np.int64)  # groups, entries
    seen = np.full(num_sets, -1, np.int32)  # with which x a set was last compared
    in_x = np.zeros(num_tokens, np.uint8)
    found, found_jaccards = np.empty(num_sets, np.int64), np.empty(num_sets, np.float32)
    for x in order:
        of_x = tokens[offsets[x] : offsets[x + 1]]
        in_x[of_x] = 1
        num_found = 0
        for place in range(_prefix(len(of_x), threshold)):
            group = heads[of_x[place]]
            while group >= 0 and not (greedy and num_found):
                size, place_y, entry, next_group = groups[group]
                needed = _needed(len(of_x), size, threshold)
                if place > len(of_x) - needed or place_y > size - needed:
                    entry = -1
                while entry >= 0 and not (greedy and num_found):
                    y, entry = entries[entry]
                    if seen[y] == x:
                        continue
                    seen[y] = x
                    # Before its place y has nothing of x, or they would have met there.
                    rest = tokens[offsets[y] + place_y : offsets[y + 1]]
                    shared = _shared(rest, in_x, needed)
                    jaccard = shared / (len(of_x) + size - shared)
                    if shared >= needed and jaccard >= threshold:
                        found[num_found], found_jaccards[num_found] = y, jaccard
                        num_found += 1
                group = next_group
        in_x[of_x] = 0
        while num_pairs + num_found > len(left):
            left = np.concatenate((left, left))
            right = np.concatenate((right, right))
            jaccards = np.concatenate((jaccards, jaccards))
        for i in range(num_found):
            left[num_pairs], right[num_pairs] = x, found[i]
            jaccards[num_pairs] = found_jaccards[i]
            num_pairs += 1
        if not (greedy and num_found):
            kept[x] = True
            prefix = of_x[: _prefix(len(of_x), threshold)]
            _insert(x, prefix, len(of_x), heads, groups, entries, used)
    return kept, left[:num_pairs], right[:num_pairs], jaccards[:num_pairs]


@kernel
def _insert(
    x: int, prefix: Array, size: int, heads: Array, groups: Array, entries: Array, used: Array
) -> None:
    """Put x under every token of its prefix, into the group of its size and the token's place."""
    for place, token in enumerate(prefix):
        group = heads[token]
        while group >= 0 and (groups[group, 0] != size or groups[group, 1] != place):
            group = groups[group, 3]
        if group < 0:
            group = used[0]
            used[0] += 1
            groups[group, 0], groups[group, 1] = size, place
            groups[group, 2], groups[group, 3] = -1, heads[token]
            heads[token] = group
        entry = used[1]
        used[1] += 1
        entries[entry, 0], entries[entry, 1] = x, groups[group, 2]
        groups[group, 2] = entry


@kernel
def _prefix(size: int, threshold: float) -> int:
    """The longest prefix that a set of any other size can ask for."""
    return size - math.ceil(threshold * size - _SLACK) + 1 if size > 0 else 0


@kernel
def _needed(size_x: int, size_y: int, threshold: float) -> int:
    """How many tokens sets of these sizes share at least if their Jaccard is `threshold`."""
    return math.ceil(threshold / (1 + threshold) * (size_x + size_y) - _SLACK)


@kernel
def _shared(tokens: Array, in_x: Array, needed: int) -> int:
    """How many of `tokens` are in x; given up, with what is found, once fewer than `needed`."""
    shared = 0
    for block in range(0, len(tokens), 32):
        stop = min(block + 32, len(tokens))
        for i in range(block, stop):
            shared += in_x[tokens[i]]
        if shared + len(tokens) - stop < needed:
            break
    return shared
