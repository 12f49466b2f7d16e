"""How much of a text repeats itself: lines, paragraphs, word n-grams (MassiveText, table A1).

Shares are of characters that are there: of lines (or paragraphs) after stripping, and of words for
n-grams, whose joining space Chinese does not have. So every share lies in 0..1, where datatrove's
exceed 1 in Chinese (reference formula: n-gram joined by spaces, divided by the whole text).
A *duplicate* is an occurrence after the first; an n-gram that occurs once never counts; characters
under overlapping occurrences count once. tests/filters/gopher_definition.py says the same in plain
Python.

All is linear in the length of the text. An n-gram can repeat only where its first and last n-1
words do, so each size looks only at the places where the size before found repeats. An n-gram is
named by two numbers, the name of its first n-1 words and that of its last, so no two are confused.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from filters.names import MIN_BITS, Keys, Offsets, Positions, fill, longest, name_of, table_for
from kernels.compile import inner_kernel, kernel
from kernels.hashing import HASH_PRIME

TOP_SIZES = (2, 3, 4)  # the most frequent n-gram of these sizes
DUP_SIZES = (5, 6, 7, 8, 9, 10)  # all duplicate n-grams of these sizes

_ANOTHER = np.int64(0x7FFFFFFF00000000)  # an heir that is no word's


class Scratch(NamedTuple):
    """Room for the n-grams of one text after another; see `room` in filters/pieces.py."""

    at: Positions  # words at which an n-gram may repeat, ascending
    names: Positions  # of the n-gram there
    counts: Positions  # of each name
    heirs: Offsets  # of each name: the first word to follow it << 32 | name of the n-gram with both
    keys: Keys  # of n-grams whose last word came later
    table: Positions


@kernel
def scratch(offsets: Offsets) -> Scratch:
    """For the longest of the texts whose pieces `offsets` bounds."""
    most = longest(offsets)
    return Scratch(
        np.empty(most, np.int32),
        np.empty(most, np.int32),
        np.empty(most, np.int32),
        np.empty(most, np.int64),
        np.empty(most, np.uint64),
        table_for(most),
    )


@kernel
def duplicate_shares(
    hashes: Keys, chars: Positions, begin: int, end: int, keys: Keys, table: Positions
) -> tuple[float, float]:
    """Share of duplicates among pieces `begin` to `end`, and of their characters."""
    if end - begin < 2:
        return 0.0, 0.0
    bits = MIN_BITS
    table[: 1 << bits] = -1
    distinct = duplicate_chars = all_chars = 0
    for piece in range(begin, end):
        all_chars += chars[piece]
        name = name_of(table, bits, keys, 0, distinct, hashes[piece])
        if name < distinct:
            duplicate_chars += chars[piece]
            continue
        distinct += 1
        if distinct * 2 > 1 << bits:
            bits += 1
            fill(table, bits, keys, 0, distinct)
    return (end - begin - distinct) / (end - begin), duplicate_chars / all_chars


@kernel
def ngram_shares(
    words: Positions,
    ends: Positions,
    begin: int,
    end: int,
    distinct: int,
    scratch: Scratch,
    shares: npt.NDArray[np.float32],
) -> None:
    """Fill `shares` for TOP_SIZES, then DUP_SIZES, of the words `begin` to `end`, named 0 to
    `distinct`; it comes zeroed.
    """
    if end == begin:
        return
    at, names, counts, heirs, keys, table = scratch
    for name in range(distinct):
        counts[name] = 0
    for word in range(begin, end):
        counts[words[word]] += 1
    found = 0
    for word in range(begin, end - 1):  # no branch: which words repeat cannot be predicted
        at[found], names[found] = word - begin, words[word]
        found += (counts[words[word]] > 1) & (counts[words[word + 1]] > 1)
    for size in range(2, 11):
        bits = MIN_BITS
        while 3 << bits < 4 * found:
            bits += 1
        table[: 1 << bits] = -1
        for name in range(distinct):
            heirs[name] = -1
        distinct = chars = covered = 0
        for k in range(found):
            parent, word = names[k], words[begin + at[k] + size - 1]
            heir = heirs[parent] if size > 2 else _ANOTHER  # a word has many: no use to look
            if heir >> 32 == word:
                name = int(heir & 0xFFFFFFFF)
            elif heir < 0:
                heirs[parent] = np.int64(word) << 32 | distinct
                name = distinct
            else:
                key = np.uint64(parent) << np.uint64(32) | np.uint64(word)
                name = name_of(table, bits, keys, 0, distinct, key * HASH_PRIME)
            names[k] = name
            new = name == distinct
            counts[name] = 1 if new else counts[name] + 1
            distinct += new
            if size in DUP_SIZES and not new:
                chars += _fresh_chars(at[k], size, covered, ends, begin)
                covered = at[k] + size
        if found == distinct:  # no n-gram stands twice, nor will a longer one
            return
        if size in TOP_SIZES:
            top = int(np.argmax(counts[:distinct]))
            for k in range(found):
                if names[k] == top:
                    chars += _fresh_chars(at[k], size, covered, ends, begin)
                    covered = at[k] + size
        shares[size - 2] = chars / ends[end - 1]
        kept = 0
        for k in range(found - 1):
            at[kept], names[kept] = at[k], names[k]
            repeat = (counts[names[k]] > 1) & (counts[names[k + 1]] > 1)
            kept += repeat & (at[k + 1] == at[k] + 1)
        found = kept


@inner_kernel
def _fresh_chars(at: int, size: int, covered: int, ends: Positions, begin: int) -> int:
    """Characters of the words `at` to `at + size` that lie behind word `covered`."""
    first = max(at, covered)
    return int(ends[begin + at + size - 1] - (ends[begin + first - 1] if first else 0))
