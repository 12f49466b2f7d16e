"""Shingles: hashes of n consecutive words of the folded view (dedup/folding.py).

A shingle is `ngram` words in order. A text with fewer words has one shingle, all its words with
their number mixed in, so that short texts are neither lost nor merged ("cat", "dog":
OpenDCAI/DataFlow PR #526; "hi": data-juicer PR #1051). No words, no shingles.

On the way, and nearly for nothing, each text has its folded hash: 128 bits of all its words in
order, equal for texts that differ in nothing but what folding does not see.

Hashes follow Python's Unicode version (`unicodedata.unidata_version`): it belongs in the
fingerprint of whatever stores them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from dedup.folding import BREAK, NOTHING, ONE, fold_table
from kernels.arrow import string_buffers
from kernels.compile import inner_kernel, kernel

Hashes = npt.NDArray[np.uint64]
Offsets = npt.NDArray[np.int64]
Array = npt.NDArray[Any]  # inside kernels, which numba types by what they are called with

MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)  # 2^64 / golden ratio, odd: spreads letters upward
BASE = np.uint64(0xD1342543DE82EF95)  # of the polynomial over words; odd (Steele & Vigna 2021)
BASE_2 = np.uint64(0xA0761D6478BD642F)  # of the second one; odd, a prime of wyhash
START = np.uint64(0x2545F4914F6CDD1D)  # hash of the empty word


def shingles(texts: pa.Array, ngram: int = 5) -> tuple[Hashes, Offsets]:
    """Hashes of the `ngram`-word shingles of each text, sorted and unique within a text.

    Text `i` has `hashes[offsets[i]:offsets[i + 1]]`. Time is linear in the bytes; memory is
    16 bytes per shingle, and 32 more per word of the longest text.

    Raises:
        ValueError: `ngram` is below 1, or there are nulls among the texts.
    """
    return folded_shingles(texts, ngram)[:2]


def folded_shingles(texts: pa.Array, ngram: int = 5) -> tuple[Hashes, Offsets, Hashes]:
    """As `shingles`, and the folded hash of each text: uint64[n, 2], zeros where it has no words.

    Raises:
        ValueError: as `shingles`.
    """
    if ngram < 1:
        raise ValueError(f"ngram = {ngram}: a shingle needs at least one word; 5 is usual")
    data, bounds = string_buffers(texts)
    table, expansions, words_per_byte = fold_table()
    # An upper bound: pages that are never written cost nothing.
    hashes = np.empty(words_per_byte * int(bounds[-1] - bounds[0]), np.uint64)
    folded = np.zeros((len(bounds) - 1, 2), np.uint64)
    offsets = _hash_shingles(data, bounds, table, expansions, ngram, hashes, folded)
    return hashes[: offsets[-1]], offsets, folded


@kernel
def mix(x: np.uint64) -> np.uint64:
    """The finalizer of MurmurHash3: a bijection in which every bit of `x` moves every bit."""
    x ^= x >> np.uint64(33)
    x *= np.uint64(0xFF51AFD7ED558CCD)
    x ^= x >> np.uint64(33)
    x *= np.uint64(0xC4CEB9FE1A85EC53)
    return x ^ (x >> np.uint64(33))


@kernel
def _hash_shingles(
    data: Array,
    bounds: Array,
    table: Array,
    expansions: Array,
    ngram: int,
    out: Array,
    folded: Array,
) -> Array:
    """Write the sorted distinct shingles of every text to `out`, its folded hash to `folded`;
    return where each text begins."""
    offsets = np.zeros(len(bounds), np.int64)
    scratch = np.empty(0, np.uint64)
    counts = np.empty(0, np.int32)
    size = 0
    for text in range(len(bounds) - 1):
        begin = size
        size = _hash_words(data, bounds[text], bounds[text + 1], table, expansions, out, begin)
        folded[text] = _hash_of(out, begin, size)
        size = _roll(out, begin, size, ngram)
        if size - begin > len(scratch):
            scratch = np.empty(2 * (size - begin), np.uint64)
            counts = np.empty(2 * len(scratch), np.int32)
        if size > begin:
            size = _sort_unique(out, begin, size, scratch, counts)
        offsets[text + 1] = size
    return offsets


@kernel
def _hash_words(
    data: Array, i: int, end: int, table: Array, expansions: Array, out: Array, size: int
) -> int:
    """Append the hash of every word of `data[i:end]` to `out[:size]`; return the new size."""
    word = START
    while i < end:
        if data[i] < 0x80:
            entry = table[data[i]]
            i += 1
            while entry > 0:  # letters of an ASCII word: the short way through the loop
                word = (word ^ np.uint64(entry)) * MULTIPLIER
                if i == end or data[i] >= 0x80:
                    break
                entry = table[data[i]]
                i += 1
            if entry == BREAK and word != START:
                out[size] = mix(word)
                size += 1
                word = START
            continue
        code, i = decode(data, i, end)
        entry = table[code]
        while entry >= ONE:  # Han and kana: likewise
            if word != START:
                out[size] = mix(word)
                size += 1
                word = START
            out[size] = mix((START ^ np.uint64(entry)) * MULTIPLIER)
            size += 1
            if i + 2 >= end or data[i] < 0xE0 or data[i] >= 0xF0:
                entry = NOTHING
                break
            code, i = _decode3(data, i)
            entry = table[code]
        at, last = 0, 0
        if entry < NOTHING:
            at = NOTHING - entry
            last = at + expansions[at - 1] - 1
            entry = expansions[at]
        while True:
            if 0 < entry < ONE:
                word = (word ^ np.uint64(entry)) * MULTIPLIER
            elif entry != NOTHING:
                if word != START:
                    out[size] = mix(word)
                    size += 1
                    word = START
                if entry >= ONE:
                    out[size] = mix((START ^ np.uint64(entry)) * MULTIPLIER)
                    size += 1
            if at == last:
                break
            at += 1
            entry = expansions[at]
    if word != START:
        out[size] = mix(word)
        size += 1
    return size


@inner_kernel
def _decode3(data: Array, i: int) -> tuple[int, int]:
    """`decode` of three bytes that are all there."""
    code = int(data[i] & 0x0F) << 12 | int(data[i + 1] & 0x3F) << 6 | int(data[i + 2] & 0x3F)
    return code, i + 3


@kernel
def decode(data: Array, i: int, end: int) -> tuple[int, int]:
    """The code point of two to four bytes at `i`, and where the next one is.

    Arrow text is valid UTF-8; what is not gives wrong code points, never a read outside.
    """
    code = int(data[i])
    width = 2 if code < 0xE0 else 3 if code < 0xF0 else 4
    if i + width > end:
        return 0, end
    code &= 0x7F >> width
    for k in range(1, width):
        code = code << 6 | int(data[i + k] & 0x3F)
    return code, i + width


@kernel
def _hash_of(words: Array, begin: int, end: int) -> tuple[np.uint64, np.uint64]:
    """Two polynomials over the word hashes, with their number; zeros for no words."""
    if begin == end:
        return np.uint64(0), np.uint64(0)
    first = second = np.uint64(end - begin)
    for i in range(begin, end):
        first = first * BASE + words[i]
        second = second * BASE_2 + words[i]
    return mix(first), mix(second)


@kernel
def _roll(words: Array, begin: int, end: int, ngram: int) -> int:
    """Turn the word hashes `words[begin:end]` into shingle hashes, in place; return the new end.

    A shingle is mix(polynomial over its word hashes + number of words), so order and count matter.
    """
    n = min(ngram, end - begin)
    if n == 0:
        return begin
    power = np.uint64(1)  # BASE ** (n - 1): what the oldest word is multiplied by
    total = np.uint64(0)
    for i in range(n):
        total = total * BASE + words[begin + i]
        if i > 0:
            power *= BASE
    for i in range(begin, end - n):
        oldest = words[i]
        words[i] = mix(total + np.uint64(n))
        total = (total - oldest * power) * BASE + words[i + n]
    words[end - n] = mix(total + np.uint64(n))
    return end - n + 1


@kernel
def _sort_unique(hashes: Array, begin: int, end: int, scratch: Array, counts: Array) -> int:
    """Sort `hashes[begin:end]` and close it up to its distinct values, in place; return the end.

    One pass into as many buckets as there are hashes, by their top bits, then insertion inside each
    bucket. Hashes are uniform, so buckets hold about one distinct value however often it repeats:
    linear, 5 ns per hash where numpy's AVX-512 sort takes 15 to 40.
    """
    bits = 1
    while (1 << bits) < end - begin:
        bits += 1
    shift = np.uint64(64 - bits)
    counts[: 1 << bits] = 0
    for i in range(begin, end):
        counts[hashes[i] >> shift] += 1
    at = 0
    for bucket in range(1 << bits):
        at += counts[bucket]
        counts[bucket] = at - counts[bucket]
    for i in range(begin, end):
        bucket = hashes[i] >> shift
        scratch[counts[bucket]] = hashes[i]
        counts[bucket] += 1
    size = begin
    for i in range(end - begin):
        x = scratch[i]
        j = size
        while j > begin and hashes[j - 1] > x:
            j -= 1
        if j == begin or hashes[j - 1] != x:
            for k in range(size, j, -1):
                hashes[k] = hashes[k - 1]
            hashes[j] = x
            size += 1
    return size
