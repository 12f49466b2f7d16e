"""How much of a text repeats itself: lines, paragraphs, word n-grams (MassiveText, table A1).

Shares are of characters that are there: of lines (or paragraphs) after stripping, and of words for
n-grams, whose joining space Chinese does not have. So every share lies in 0..1, where datatrove's
exceed 1 in Chinese (reference formula: n-gram joined by spaces, divided by the whole text).
A *duplicate* is an occurrence after the first; an n-gram that occurs once never counts; characters
under overlapping occurrences count once. tests/filters/gopher_definition.py says the same in plain
Python.

All is linear in the length of the text. An n-gram can repeat only where its first and last n-1
words do, so each size looks only at the places where the size before found repeats.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from kernels.compile import kernel

TOP_SIZES = (2, 3, 4)  # the most frequent n-gram of these sizes
DUP_SIZES = (5, 6, 7, 8, 9, 10)  # all duplicate n-grams of these sizes

Keys = npt.NDArray[np.uint64]
Positions = npt.NDArray[np.int32]


@kernel
def first_occurrences(keys: Keys) -> Positions:
    """For each key, the index of its first occurrence: [7, 8, 7, 8] -> [0, 1, 0, 1]."""
    bits = 4
    while (1 << bits) * 3 < len(keys) * 4:  # at most 3/4 full
        bits += 1
    table = np.full(1 << bits, -1, np.int32)
    mask = (1 << bits) - 1
    first = np.empty(len(keys), np.int32)
    for i in range(len(keys)):
        mixed = (keys[i] ^ (keys[i] >> np.uint64(32))) * np.uint64(0x9E3779B97F4A7C15)
        slot = np.int64(mixed >> np.uint64(64 - bits))
        while table[slot] >= 0 and keys[table[slot]] != keys[i]:
            slot = (slot + 1) & mask
        if table[slot] < 0:
            table[slot] = i
        first[i] = table[slot]
    return first


@kernel
def duplicate_shares(hashes: Keys, lengths: Positions) -> tuple[float, float]:
    """Share of duplicates among pieces of text, and of their characters among all characters."""
    if len(hashes) == 0:
        return 0.0, 0.0
    first = first_occurrences(hashes)
    duplicates = 0
    duplicate_chars = 0
    chars = 0
    for i in range(len(hashes)):
        chars += lengths[i]
        if first[i] != i:
            duplicates += 1
            duplicate_chars += lengths[i]
    return duplicates / len(hashes), duplicate_chars / chars


@kernel
def ngram_shares(hashes: Keys, lengths: Positions, shares: npt.NDArray[np.float32]) -> None:
    """Fill `shares` for TOP_SIZES, then DUP_SIZES; it comes zeroed."""
    num_words = len(hashes)
    ends = np.empty(num_words + 1, np.int64)  # characters of words before each word
    ends[0] = 0
    for i in range(num_words):
        ends[i + 1] = ends[i] + lengths[i]
    word = first_occurrences(hashes)  # a name for each distinct word
    at = np.arange(num_words).astype(np.int32)  # where an n-gram may repeat, ascending
    name = word.copy()  # a name for the n-gram there
    for size in range(1, 11):
        counts = np.zeros(len(at), np.int32)
        for k in range(len(at)):
            counts[name[k]] += 1
        if size in TOP_SIZES:
            shares[size - 2] = _top_chars(at, name, counts, ends, size) / ends[num_words]
        elif size in DUP_SIZES:
            shares[size - 2] = _duplicate_chars(at, name, ends, size) / ends[num_words]
        # Places where this n-gram and the next one repeat: only there can size + 1 repeat.
        kept = 0
        keys = np.empty(len(at), np.uint64)
        for k in range(len(at) - 1):
            if at[k + 1] == at[k] + 1 and counts[name[k]] > 1 and counts[name[k + 1]] > 1:
                last = word[at[k] + size]
                keys[kept] = np.uint64(name[k]) << np.uint64(32) | np.uint64(last)
                at[kept] = at[k]
                kept += 1
        if kept == 0:
            return
        at = at[:kept]
        name = first_occurrences(keys[:kept])


@kernel
def _top_chars(
    at: Positions, name: Positions, counts: Positions, ends: npt.NDArray[np.int64], size: int
) -> int:
    """Word characters under the most frequent n-gram; of several, the one that comes first."""
    top = np.argmax(counts)
    if counts[top] < 2:
        return 0
    chars = 0
    covered = 0
    for k in range(len(at)):
        if name[k] == top:
            chars += ends[at[k] + size] - ends[max(at[k], covered)]
            covered = at[k] + size
    return chars


@kernel
def _duplicate_chars(at: Positions, name: Positions, ends: npt.NDArray[np.int64], size: int) -> int:
    """Word characters under n-grams that stood before."""
    chars = 0
    covered = 0
    for k in range(len(at)):
        if name[k] != k:
            chars += ends[at[k] + size] - ends[max(at[k], covered)]
            covered = at[k] + size
    return chars
