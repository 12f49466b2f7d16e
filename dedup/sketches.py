"""One bit of each value of a signature: which texts that share a band are worth a look.

Bands alone propose too much where a corpus is large. At a Jaccard similarity of .2 two texts share
a band of 21 x 6 with probability .0013; so of texts that resemble 300 others that little, one in
three is a candidate, and such edges chain what has nothing in common. Two texts agree in a bit with
probability (1 + Jaccard) / 2 (Li and Koenig 2010, "b-bit minwise hashing"): 128 bits leave two in
100,000 of those pairs, 3 % at .4, and lose three in 100,000 of the pairs at .8.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from dedup.bands import Docs, Edges, Keys
from dedup.minhash import Signatures
from dedup.shingles import Array
from kernels.compile import kernel

Sketches = npt.NDArray[np.uint64]  # shape (texts, words)

# Different sketches of one key up to which each is compared with each; the texts of a key with more
# are joined as they are: that many agree in a whole band because they come of one template.
MAX_COMPARED = 256
DEVIATIONS = 4  # below its mean, at which agreement is lost at the threshold itself

_MULTIPLIER = np.uint32(0x9E3779B1)
_ODD, _PAIRS = np.uint64(0x5555555555555555), np.uint64(0x3333333333333333)
_NIBBLES, _BYTES = np.uint64(0x0F0F0F0F0F0F0F0F), np.uint64(0x0101010101010101)


def num_words(num_values: int) -> int:
    """64-bit words of a sketch."""
    return -(-num_values // 64)


def sketches(signatures: Signatures) -> Sketches:
    """A bit of each value, the first the lowest of the first word; bits beyond are 0."""
    bits = np.zeros((len(signatures), 64 * num_words(signatures.shape[1])), np.uint8)
    bits[:, : signatures.shape[1]] = (signatures * _MULTIPLIER) >> np.uint32(31)
    return np.packbits(bits, axis=1, bitorder="little").view("<u8")


def most_different(num_values: int, threshold: float) -> int:
    """Bits in which two sketches may differ, so that hardly a pair at `threshold` is lost."""
    agree = (1 + threshold) / 2
    mean, deviation = num_values * (1 - agree), math.sqrt(num_values * agree * (1 - agree))
    return math.ceil(mean + DEVIATIONS * deviation)


def shared(sorted_keys: Keys) -> npt.NDArray[np.bool_]:
    """Which records have a key that another record has."""
    repeats = sorted_keys[1:] == sorted_keys[:-1]
    found = np.zeros(len(sorted_keys), np.bool_)
    found[1:] |= repeats
    found[:-1] |= repeats
    return found


def similar_edges(keys: Keys, docs: Docs, bits: Sketches, most: int) -> Edges:
    """Edges between texts that share a key and differ in at most `most` bits.

    They span what all such pairs would join, with fewer edges than there are records. `keys` are
    sorted, and record i has the sketch `bits[i]`. What is joined does not depend on how often a
    text stands there.
    """
    edges = np.empty((len(keys), 2), np.int64)
    return docs[edges[: _connect(keys, bits, most, edges)]]


@kernel
def _connect(keys: Array, bits: Array, most: int, edges: Array) -> int:
    different = np.empty(MAX_COMPARED, np.int64)  # records of a key, of each sketch the first
    labels = np.empty(MAX_COMPARED, np.int64)  # which of them are joined
    end = num_edges = 0
    while end < len(keys):
        begin, before, num = end, num_edges, 0
        while end < len(keys) and keys[end] == keys[begin]:
            end += 1
        for x in range(begin, end):
            twin = -1
            for d in range(num):
                if _num_different(bits[different[d]], bits[x]) == 0:
                    twin = d
                    break
            if twin >= 0:
                edges[num_edges, 0], edges[num_edges, 1] = different[twin], x
                num_edges += 1
                continue
            if num == MAX_COMPARED:
                num_edges = before
                for other in range(begin + 1, end):
                    edges[num_edges, 0], edges[num_edges, 1] = begin, other
                    num_edges += 1
                break
            different[num], labels[num] = x, num
            for d in range(num):
                old = labels[d]
                if old != num and _num_different(bits[different[d]], bits[x]) <= most:
                    edges[num_edges, 0], edges[num_edges, 1] = different[d], x
                    num_edges += 1
                    for other in range(num):
                        if labels[other] == old:
                            labels[other] = num
            num += 1
    return num_edges


@kernel
def _num_different(a: Array, b: Array) -> np.uint64:
    """Bits in which two sketches differ."""
    total = np.uint64(0)
    for word in range(len(a)):
        x = a[word] ^ b[word]
        x -= (x >> np.uint64(1)) & _ODD
        x = (x & _PAIRS) + ((x >> np.uint64(2)) & _PAIRS)
        x = (x + (x >> np.uint64(4))) & _NIBBLES
        total += (x * _BYTES) >> np.uint64(56)
    return total
