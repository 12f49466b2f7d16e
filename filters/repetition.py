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
from kernels.compile import kernel
from kernels.hashing import HASH_PRIME

TOP_SIZES = (2, 3, 4)  # the most frequent n-gram of these sizes
DUP_SIZES = (5, 6, 7, 8, 9, 10)  # all duplicate n-grams of these sizes


class Scratch(NamedTuple):
    """Room for the n-grams of one text after another; see `room` in filters/pieces.py."""

    at: Positions  # words at which an n-gram may repeat, ascending
    names: Positions  # of the n-gram there
    counts: Positions  # of each name
    heirs: Positions  # of each name: the first word to follow it
    heir_names: Positions  # ... and the name of the n-gram that ends with that word
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
        np.empty(most, np.int32),
        np.empty(most, np.int32),
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
    at, names, counts, heirs, heir_names, keys, table = scratch
    counts[:distinct] = 0
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
        heirs[:distinct] = -1
        distinct = 0
        for k in range(found):
            parent, word = names[k], words[begin + at[k] + size - 1]
            if heirs[parent] == word:
                name = int(heir_names[parent])
            elif heirs[parent] < 0:
                heirs[parent], heir_names[parent] = word, distinct
                name = distinct
            else:
                key = np.uint64(parent) << np.uint64(32) | np.uint64(word)
                name = name_of(table, bits, keys, 0, distinct, key * HASH_PRIME)
            names[k] = name
            new = name == distinct
            counts[name] = 1 if new else counts[name] + 1
            distinct += new
        if found == distinct:  # no n-gram stands twice, nor will a longer one
            return
        if size in TOP_SIZES:
            top = int(np.argmax(counts[:distinct]))
            chars = _chars(at, names, found, top, ends, begin, size)
        else:
            chars = _chars(at, names, found, -1, ends, begin, size)
        shares[size - 2] = chars / ends[end - 1]
        kept = 0
        for k in range(found - 1):
            at[kept], names[kept] = at[k], names[k]
            repeat = (counts[names[k]] > 1) & (counts[names[k + 1]] > 1)
            kept += repeat & (at[k + 1] == at[k] + 1)
        found = kept


@kernel
def _chars(
    at: Positions, names: Positions, found: int, top: int, ends: Positions, begin: int, size: int
) -> int:
    """Word characters under the n-gram `top`; where that is -1, under all that stood before."""
    chars = covered = distinct = 0
    for k in range(found):
        new = names[k] == distinct
        distinct += new
        if names[k] == top or (top < 0 and not new):
            after = at[k] + size
            first = max(at[k], covered)
            chars += ends[begin + after - 1] - (ends[begin + first - 1] if first else 0)
            covered = after
    return chars
