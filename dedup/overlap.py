"""Evaluation items inside documents: how much of each stands where.

An item stands at a place of a document when they share n-grams there, with at most as many words
between one and the next as the longest n-gram has: so a changed word, or letters before choices,
part nothing, and what stands far apart is not added up. Its share is that of its words that these
n-grams hold, or of those of its question alone, whichever is more.

A document that shares nothing costs its words and one look-up for each.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from dedup.folding import fold_table
from dedup.item_index import ItemIndex, first_held, within
from dedup.placed_words import Length, place_words, roll_ngrams
from dedup.postings import shift_of
from dedup.shingles import Array
from kernels.compile import kernel

Numbers = npt.NDArray[np.int64]

# Columns of what the kernel finds: an n-gram of a document that an entry has too.
DOCUMENT, ENTRY, AT, SIZE, PLACE, BEGIN, END = range(7)


class Found(NamedTuple):
    """Entries at places of documents, by document, entry, place. Bytes count from the beginning of
    the document, on borders of characters."""

    documents: Numbers
    entries: Numbers
    shares: npt.NDArray[np.float32]  # in 0..1, above 0
    starts: Numbers
    ends: Numbers


def find(index: ItemIndex, data: Array, offsets: Array) -> Found:
    """All entries of which an n-gram stands in a document. Linear in words and hits."""
    length = Length(*index.length.tolist())
    for array in index:  # one kind of array for the kernel, mapped from a file or not
        array.setflags(write=False)
    table, expansions, words_per_byte = fold_table()
    hits = _hits(
        data,
        offsets,
        table,
        expansions,
        words_per_byte,
        *length,
        length.powers,
        *index[:6],
    )
    return _places(index, hits, length.longest)


def _places(index: ItemIndex, hits: Array, gap: int) -> Found:
    hits = hits[np.lexsort((hits[:, AT], hits[:, ENTRY], hits[:, DOCUMENT]))]
    documents, entries, at, begins = hits[:, DOCUMENT], hits[:, ENTRY], hits[:, AT], hits[:, PLACE]
    new = np.append(True, (np.diff(documents) != 0) | (np.diff(entries) != 0))[: len(hits)]
    new[1:] |= np.diff(at) > hits[:-1, SIZE] + gap
    (firsts,) = np.nonzero(new)
    place = np.cumsum(new) - 1
    ends = begins + hits[:, SIZE]
    _, fresh = first_held(place, begins, ends)
    entry, num = entries[firsts], len(firsts)
    whole = np.bincount(place, fresh, num) / index.counted[entry]
    of_question = np.bincount(place, within(fresh, ends, index.questions[entries]), num)
    asked = index.asked[entry]
    question = np.where(asked > 0, of_question / np.maximum(asked, 1), 0)
    last = np.maximum.reduceat(hits[:, END], firsts) if num else np.zeros(0, np.int64)
    shares = np.maximum(whole, question).astype(np.float32)
    return Found(documents[firsts], entry, shares, hits[firsts, BEGIN], last)


@kernel
def _hits(
    data: Array,
    offsets: Array,
    table: Array,
    expansions: Array,
    words_per_byte: int,
    of_words: int,
    of_characters: int,
    powers: Array,
    known: Array,
    firsts: Array,
    entries: Array,
    places: Array,
    directory: Array,
    bitmap: Array,
) -> Array:
    longest = 0
    for document in range(len(offsets) - 1):
        longest = max(longest, offsets[document + 1] - offsets[document])
    words = np.empty(words_per_byte * longest, np.uint64)
    starts, ends = np.empty(len(words), np.int64), np.empty(len(words), np.int64)
    singles = np.empty(len(words), np.bool_)
    ngrams, sizes = np.empty(len(words), np.uint64), np.empty(len(words), np.int32)
    marked = np.empty(len(words), np.int64)
    bit_shift, shift = shift_of(8 * len(bitmap)), shift_of(len(directory) - 1)
    found = np.empty((16, 7), np.int64)
    num_found = 0
    for document in range(len(offsets) - 1):
        base = offsets[document]
        num = place_words(
            data, base, offsets[document + 1], table, expansions, words, starts, ends, singles
        )
        num = roll_ngrams(words, singles, num, of_words, of_characters, powers, ngrams, sizes)
        num_marked = 0
        for at in range(num):  # without a branch: see contamination.py
            bit = ngrams[at] >> bit_shift
            marked[num_marked] = at
            is_set = bitmap[bit >> np.uint64(3)] >> np.uint8(bit & np.uint64(7)) & 1
            num_marked = int(num_marked + is_set)
        for at in marked[:num_marked]:
            ngram = ngrams[at]
            bucket = ngram >> shift
            for k in range(directory[bucket], directory[bucket + np.uint64(1)]):
                if known[k] != ngram:
                    continue
                for posting in range(firsts[k], firsts[k + 1]):
                    if num_found == len(found):
                        found = np.concatenate((found, found))
                    row = found[num_found]
                    row[0], row[1] = document, entries[posting]
                    row[2], row[3] = at, sizes[at]
                    row[4] = places[posting]
                    row[5], row[6] = starts[at] - base, ends[at + sizes[at] - 1] - base
                    num_found += 1
    return found[:num_found].copy()
