"""One text inside another: who holds whom, and how such pairs are found among all texts.

Text a is contained in b where b has no fewer shingles and `|A & B| / |A|` reaches a threshold.
Bands of MinHash cannot find that: of a paragraph and the book that quotes it the Jaccard
similarity is next to nothing. So of each text its NUM_KEYS lowest shingle hashes are its keys, a
fair draw: who holds .9 of it has .9 of them, about. All keys together are a filter (a bit vector),
by which a text tells which of its own shingles are a key of some text: one in fifty beside those
that are. What is shuffled are these, 12 bytes each, by hash: keys of who may be inside, hits of who
may hold it.

A key that stands in many texts is a footer's or a template's. It is *hot*: it proposes the longest
few alone, and a text is asked by its cold keys. So two documents with one footer propose nothing,
and a text that stands in a million others costs what it does in 64.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from dedup.bands import Docs, Keys
from dedup.postings import shift_of
from dedup.shingles import Array, Hashes, Offsets, mix
from kernels.compile import inner_kernel, kernel

# Below this a text is a phrase, and a phrase is contained in anything. Nine shingles of five words
# are 13 words, the shortest overlap that GPT-3 counted as contamination (Brown et al. 2020,
# appendix C). What shorter texts would do: docs/dedup.md, Contained.
MIN_SHINGLES = 9

NUM_KEYS = 16  # of a text; of a page that is 70 % template 5 are its own, and none in 0.3 % of them
MAX_COLD = 64  # texts that have a key, above which it is hot
MAX_HOT = 16  # of these, the longest, that a hot key proposes
DEVIATIONS = 3  # below its mean, at which the number of shared keys is too low: see `needed`
FILTER_BITS = 16  # for a key, of which 2 are set: of other shingles 1 to 2 % are hits

Rows = npt.NDArray[np.int64]


class Proposals(NamedTuple):
    """Pairs of documents, sorted by (inner, outer), and how many keys of `inner` propose each. A
    document with itself: how many of its keys are hot."""

    inner: Docs
    outer: Docs
    cold: npt.NDArray[np.uint16]
    hot: npt.NDArray[np.uint16]


# --- keys and hits --------------------------------------------------------------------------------


def num_keys(sizes: Rows) -> Rows:
    """How many keys texts of so many shingles have."""
    return np.where(sizes >= MIN_SHINGLES, np.minimum(sizes, NUM_KEYS), 0)


def keys_of(hashes: Hashes, offsets: Offsets) -> tuple[Keys, Rows]:
    """The keys of all texts, and the text of each: the lowest hashes, mixed anew, for they lie
    close together and what is shuffled is dealt by its top bits."""
    num = num_keys(np.diff(offsets))
    rows = np.repeat(np.arange(len(num)), num)
    places = np.arange(len(rows)) - np.repeat(np.cumsum(num) - num, num)
    return _mixed(hashes[offsets[rows] + places]), rows


def make_filter(num: int) -> npt.NDArray[np.uint64]:
    """Room for so many keys: a power of two of words; what nobody marks takes no memory."""
    return np.zeros(1 << max(1, num * FILTER_BITS // 64).bit_length(), np.uint64)


@kernel
def mark(keys: Array, words: Array) -> None:
    """Add keys to a filter: two bits of one word each, so that a look-up is one cache line."""
    shift = shift_of(len(words))
    for key in keys:
        words[key >> shift] |= _bits(key)


def hits_of(hashes: Hashes, offsets: Offsets, words: npt.NDArray[np.uint64]) -> tuple[Keys, Rows]:
    """Which shingles of each text are in the filter, mixed as keys are, and the text of each. Its
    own keys are left out, and texts that hold nothing."""
    words.setflags(write=False)  # one kind of array for the kernel, mapped from a file or not
    found, rows = np.empty(len(hashes), np.uint64), np.empty(len(hashes), np.int64)
    size = _hits(hashes, offsets, words, found, rows)
    return found[:size].copy(), rows[:size].copy()


@kernel
def _mixed(hashes: Array) -> Array:
    mixed = np.empty(len(hashes), np.uint64)
    for i, h in enumerate(hashes):
        mixed[i] = mix(h)
    return mixed


@inner_kernel
def _bits(key: np.uint64) -> np.uint64:
    low, next_low = key & np.uint64(63), key >> np.uint64(6) & np.uint64(63)
    return np.uint64(1) << low | np.uint64(1) << next_low


@kernel
def _hits(hashes: Array, offsets: Array, words: Array, found: Array, rows: Array) -> int:
    shift = shift_of(len(words))
    size = 0
    for row in range(len(offsets) - 1):
        if offsets[row + 1] - offsets[row] < MIN_SHINGLES:
            continue
        for i in range(offsets[row] + NUM_KEYS, offsets[row + 1]):
            key = mix(hashes[i])
            bits = _bits(key)
            found[size], rows[size] = key, row
            size += int(words[key >> shift] & bits == bits)  # no branch: see contamination.py
    return size


# --- proposals ------------------------------------------------------------------------------------


def propose(
    keys: Keys,
    docs: Docs,
    is_key: npt.NDArray[np.bool_],
    sizes: npt.NDArray[np.uint32],
    lots: npt.NDArray[np.uint64],
) -> Proposals:
    """Who may be inside whom, from records of keys and hits.

    Args:
        keys: all that there are of each key that is here.
        is_key: is the record a key of its document, or a hit?
        sizes, lots: shingles of the document of each record, and a number that its content has
            alone. Of documents with one content the first is asked.
    """
    order = np.lexsort((docs, lots, np.iinfo(np.uint32).max - sizes, keys))
    keys, docs, is_key, lots = keys[order], docs[order], is_key[order], lots[order]
    new = np.ones(len(keys), np.bool_)
    new[1:] = (keys[1:] != keys[:-1]) | (lots[1:] != lots[:-1])
    keys, docs, is_key = keys[new], docs[new], is_key[new]
    bounds = np.append(np.flatnonzero(np.diff(keys, prepend=~keys[:1])), len(keys))
    num = _propose(docs, is_key, bounds, np.empty((0, 2), np.uint64), np.empty(0, np.bool_))
    pairs, hot = np.empty((num, 2), np.uint64), np.empty(num, np.bool_)
    _propose(docs, is_key, bounds, pairs, hot)
    return summed(pairs[:, 0], pairs[:, 1], ~hot, hot)


@kernel
def _propose(docs: Array, is_key: Array, bounds: Array, pairs: Array, hot: Array) -> int:
    """Write pairs, where there is room for them; returns how many there are. The texts of a key
    stand in order, the longest first."""
    size = 0
    for group in range(len(bounds) - 1):
        begin, end = bounds[group], bounds[group + 1]
        is_hot = end - begin > MAX_COLD
        for x in range(begin, end):
            if not is_key[x]:
                continue
            last = min(x, begin + MAX_HOT) if is_hot else x
            if len(pairs):
                for y in range(begin, last):
                    at = size + y - begin
                    pairs[at, 0], pairs[at, 1], hot[at] = docs[x], docs[y], is_hot
            size += last - begin
            if is_hot:
                if len(pairs):
                    pairs[size, 0], pairs[size, 1], hot[size] = docs[x], docs[x], True
                size += 1
    return size


def summed(inner: Docs, outer: Docs, cold: npt.NDArray[Any], hot: npt.NDArray[Any]) -> Proposals:
    """Proposals of which some speak of the same pair, as one each."""
    order = np.lexsort((outer, inner))
    inner, outer = inner[order], outer[order]
    new = np.ones(len(inner), np.bool_)
    new[1:] = (inner[1:] != inner[:-1]) | (outer[1:] != outer[:-1])
    first = np.flatnonzero(new)
    counts = [
        np.add.reduceat(column[order].astype(np.uint16), first) if len(first) else first
        for column in (cold, hot)
    ]
    return Proposals(inner[new], outer[new], *(c.astype(np.uint16) for c in counts))


def needed(num: int, threshold: float) -> int:
    """Of so many keys of a text those that who holds it has, but for one pair in a thousand."""
    deviation = math.sqrt(num * threshold * (1 - threshold))
    return max(1, math.floor(num * threshold - DEVIATIONS * deviation))


def proposed(containment: float, threshold: float, num: int = NUM_KEYS) -> float:
    """Chance that a pair of this containment is proposed by `num` cold keys.

    A draw without replacement does a little better: of keys that are all shingles there is no
    chance at all.
    """
    return sum(
        math.comb(num, k) * containment**k * (1 - containment) ** (num - k)
        for k in range(needed(num, threshold), num + 1)
    )


def chosen(all_of: Proposals, keys: Rows, threshold: float) -> npt.NDArray[np.bool_]:
    """Which proposals are worth a comparison.

    Args:
        all_of: all that there are of each inner document.
        keys: of the inner document of each, how many it has.
    """
    itself = all_of.inner == all_of.outer
    hot = np.zeros(len(itself), np.int64)  # of the inner one
    at = np.searchsorted(all_of.inner[itself], all_of.inner)
    known = at < itself.sum()
    known[known] = all_of.inner[itself][at[known]] == all_of.inner[known]
    hot[known] = all_of.hot[itself][at[known]]
    least = np.array([needed(max(1, num), threshold) for num in range(NUM_KEYS + 1)])
    by_cold = all_of.cold >= least[keys - hot]
    by_all = all_of.cold + all_of.hot >= least[keys]
    return np.asarray((by_cold | by_all) & ~itself, np.bool_)


# --- verification ---------------------------------------------------------------------------------


def num_shared(
    left: Hashes, left_offsets: Offsets, right: Hashes, right_offsets: Offsets, i: Rows, j: Rows
) -> Rows:
    """How many shingles text i[k] of the left has in common with text j[k] of the right."""
    for array in (left, left_offsets, right, right_offsets):  # one kind of array for the kernel
        array.setflags(write=False)
    return np.asarray(_num_shared(left, left_offsets, right, right_offsets, i, j))


@kernel
def _num_shared(
    left: Array, left_offsets: Array, right: Array, right_offsets: Array, i: Array, j: Array
) -> Array:
    shared = np.zeros(len(i), np.int64)
    for pair in range(len(i)):
        a = left[left_offsets[i[pair]] : left_offsets[i[pair] + 1]]
        b = right[right_offsets[j[pair]] : right_offsets[j[pair] + 1]]
        if len(a) > len(b):
            a, b = b, a
        at = 0
        if len(b) > 32 * len(a):  # then looking each up is shorter than reading all
            for h in a:
                at += np.searchsorted(b[at:], h)
                shared[pair] += at < len(b) and b[at] == h
            continue
        for h in a:
            while at < len(b) and b[at] < h:
                at += 1
            shared[pair] += at < len(b) and b[at] == h
    return shared
