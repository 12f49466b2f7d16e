"""How much of a text repeats itself: lines, paragraphs, words in a row.

For the groups `gopher` (MassiveText, table A1) and `repeats`. Shares of the first are of characters
that are there: of lines (or paragraphs) after stripping, and of words for n-grams, whose joining
space Chinese does not have. So every share lies in 0..1, where datatrove's exceed 1 in Chinese
(reference formula: n-gram joined by spaces, divided by the whole text). A *duplicate* is an
occurrence after the first; an n-gram that occurs once never counts; characters under overlapping
occurrences count once. tests/filters/gopher_definition.py says the same in plain Python.

All is linear in the length of the text. An n-gram can repeat only where its first and last n-1
words do, so each size looks only at the places where the size before found repeats. An n-gram is
named by two numbers, the name of its first n-1 words and that of its last, so no two are confused.
Names are numbered as they come.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from filters.char_grams import MIN_CHARS, chars_before, long_ngrams, long_words, most_frequent
from filters.names import MIN_BITS, Keys, Offsets, Positions, fill, longest, name_of, table_for
from filters.ngram_sizes import DUP_SIZES, TOP_SIZES
from filters.wordruns import Words
from kernels.compile import inner_kernel, kernel
from kernels.hashing import HASH_PRIME, HASH_START, Bytes

TWICE_SIZES = (5, 10, 13)  # all occurrences of n-grams that stand twice

_NUM_SHARES = len(TOP_SIZES) + len(DUP_SIZES)
_ANOTHER = np.int64(0x7FFFFFFF00000000)  # an heir that is no word's

Shares = npt.NDArray[np.float32]


class Repetition(NamedTuple):
    """Of each text."""

    chars: Shares  # [n, 9]: of the characters of words, by TOP_SIZES, then DUP_SIZES
    places: Shares  # [n, 4]: of places of n-grams: of MIN_CHARS, then by TWICE_SIZES


class Scratch(NamedTuple):
    """Room for the n-grams of one text after another; see `room` in filters/pieces.py."""

    pairs: Bytes  # how often two words in a row stand, by their hash: 0, 1, 3 for twice, 7 ...
    at: Positions  # words at which an n-gram may repeat, ascending
    names: Positions  # of the n-gram there
    counts: Positions  # of each name
    heirs: Offsets  # of each name: the first word to follow it << 32 | name of the n-gram with both
    keys: Keys  # of n-grams whose last word came later
    table: Positions
    found: Positions  # counts of the n-grams of MIN_CHARS that stand twice


@kernel
def _scratch(offsets: Offsets) -> Scratch:
    """For the longest of the texts whose words `offsets` bounds."""
    most = longest(offsets)
    return Scratch(
        np.empty(1 << _pair_bits(most), np.uint8),
        np.empty(most, np.int32),
        np.empty(most, np.int32),
        np.empty(most, np.int32),
        np.empty(most, np.int64),
        np.empty(most, np.uint64),
        table_for(most),
        np.empty(most, np.int32),
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
def repeated_words(words: Words) -> Repetition:
    num_texts = len(words.offsets) - 1
    chars = np.zeros((num_texts, _NUM_SHARES), np.float32)
    places = np.zeros((num_texts, 1 + len(TWICE_SIZES)), np.float32)
    scratch = _scratch(words.offsets)
    for text in range(num_texts):
        begin, end = words.offsets[text], words.offsets[text + 1]
        distinct = words.starts[text + 1] - words.starts[text]
        if distinct < end - begin:  # a word stands twice
            _ngrams(
                words.names[begin:end],
                words.ends[begin:end],
                distinct,
                scratch,
                chars[text],
                places[text],
            )
    return Repetition(chars, places)


@kernel
def _ngrams(
    words: Positions,
    ends: Positions,
    distinct: int,
    scratch: Scratch,
    shares: Shares,
    places: Shares,
) -> None:
    """Fill both for the words of a text, named 0 to `distinct`; they come zeroed."""
    at, names, counts, heirs = scratch.at, scratch.names, scratch.counts, scratch.heirs
    keys, table, long_ones = scratch.keys, scratch.table, scratch.found
    num_long = long_words(words, ends, distinct, counts, long_ones)
    found = _pairs_again(words, scratch)
    for size in range(2, max(TWICE_SIZES) + 1):
        bits = MIN_BITS
        while 3 << bits < 4 * found:
            bits += 1
        table[: 1 << bits] = -1
        for name in range(distinct):
            heirs[name] = -1
        distinct = 0
        for k in range(found):
            parent, word = names[k], words[np.uint64(at[k]) + np.uint64(size - 1)]
            heir = (
                heirs[np.uint64(parent)] if size > 2 else _ANOTHER
            )  # a word has many: no use to look
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
            counts[np.uint64(name)] = 1 if new else counts[np.uint64(name)] + 1
            distinct += new
        if found == distinct:  # no n-gram stands twice, nor will a longer one
            break
        if size in TOP_SIZES:
            shares[size - 2] = _top_chars(scratch, size, found, distinct, ends) / ends[-1]
        if size in DUP_SIZES:
            shares[size - 2] = _dup_chars(scratch, size, found, ends) / ends[-1]
        twice, found = _still_again(scratch, found)
        if size <= MIN_CHARS:
            num_long = long_ngrams(heirs, counts, distinct, size, ends, long_ones, num_long)
        for column in range(len(TWICE_SIZES)):
            if TWICE_SIZES[column] == size:
                places[1 + column] = twice / (len(words) - size + 1)
    places[0] = most_frequent(long_ones[:num_long], ends)


@kernel
def _top_chars(scratch: Scratch, size: int, found: int, distinct: int, ends: Positions) -> int:
    """Characters under the most frequent n-gram; the first of several."""
    at, names = scratch.at, scratch.names
    top = int(np.argmax(scratch.counts[:distinct]))
    chars = covered = 0
    for k in range(found):
        if names[k] == top:
            last = ends[at[k] + size - 1]
            chars += last - max(chars_before(ends, at[k]), covered)
            covered = last
    return int(chars)


@kernel
def _pair_bits(num_words: int) -> int:
    bits = MIN_BITS
    while 1 << bits < 4 * num_words:
        bits += 1
    return bits


@inner_kernel
def _pair_slot(first: int, second: int, bits: int) -> int:
    value = np.uint64(first) * HASH_PRIME + np.uint64(second) * HASH_START
    return int(value >> np.uint64(64 - bits))


@kernel
def _pairs_again(words: Positions, scratch: Scratch) -> int:
    """At which words two in a row may stand twice, and the names of those words: how many.

    A pair is counted at its hash: some that stand once are let through, and none is lost. No
    branch: which pairs repeat cannot be predicted.
    """
    pairs, at, names = scratch.pairs, scratch.at, scratch.names
    bits = _pair_bits(len(words))
    pairs[: 1 << bits] = 0
    for word in range(len(words) - 1):
        slot = _pair_slot(words[word], words[word + 1], bits)
        pairs[slot] = pairs[slot] << 1 | 1
    found = 0
    for word in range(len(words) - 1):
        at[found], names[found] = word, words[word]
        found += pairs[_pair_slot(words[word], words[word + 1], bits)] > 1
    return found


@kernel
def _dup_chars(scratch: Scratch, size: int, found: int, ends: Positions) -> int:
    """Characters under n-grams that stood before."""
    at, names = scratch.at, scratch.names
    chars = covered = named = 0
    for k in range(found):
        new = names[k] == named
        named += new
        last = ends[at[k] + size - 1]
        fresh = last - max(chars_before(ends, at[k]), covered)
        chars += 0 if new else fresh
        covered = covered if new else last
    return int(chars)


@kernel
def _still_again(scratch: Scratch, found: int) -> tuple[int, int]:
    """How many n-grams stand twice, and at how many places, kept in `at` and `names`, one that is
    longer by a word may. In `heirs`, of each name, a place. No branch either.
    """
    at, names, counts, heirs = scratch.at, scratch.names, scratch.counts, scratch.heirs
    twice = kept = 0
    before, name = -2, 0  # the place before, if an n-gram stands there that stands twice
    for k in range(found):
        place, next_name = int(at[k]), int(names[k])
        heirs[np.uint64(next_name)] = place
        again = counts[np.uint64(next_name)] > 1
        twice += again
        at[np.uint64(kept)], names[np.uint64(kept)] = before, name
        kept += again & (place == before + 1)
        before, name = place if again else -2, next_name
    return twice, kept
