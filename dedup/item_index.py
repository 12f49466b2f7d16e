"""The index of evaluation items: where the n-grams of their words stand, told from few cache lines.

What is indexed are entries: items with the same words are one. An n-gram that stands in more than
MAX_ENTRIES of them is what items are asked with ("choose the right answer", a shared passage), not
what they ask: it is in no entry, and words that only such n-grams hold are not counted. Of an entry
each n-gram counts where it stands first, so that a text of one repeated word costs what others do.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from dedup.folding import fold_table
from dedup.placed_words import Length, place_words, roll_ngrams
from dedup.postings import bitmap_of, mark
from dedup.shingles import Array, Hashes, Offsets
from kernels.arrow import string_buffers
from kernels.compile import kernel

# Entries up to which an n-gram is theirs. Items over one passage are some five (SQuAD, RACE); what
# stands in more is an instruction. benchmarks/decontamination.py measures it.
MAX_ENTRIES = 10
BITS = 32  # of `bitmap` for an n-gram, at least: of n-grams of others one in 32 to 64 is looked up

Numbers = npt.NDArray[np.int32]


class ItemIndex(NamedTuple):
    """The distinct n-grams of all entries by hash, and of each the entries that it stands in."""

    ngrams: Hashes  # ascending
    firsts: Numbers  # n-gram i stands at postings [firsts[i], firsts[i + 1])
    entries: Numbers  # of a posting
    places: Numbers  # ... the word of the entry with which it begins
    directory: Numbers  # n-grams with top bits b: [directory[b], directory[b + 1])
    bitmap: npt.NDArray[np.uint8]  # a bit for the top bits of each: see postings.py
    counted: Numbers  # words of each entry that an n-gram of its own holds; 0: it cannot be found
    asked: Numbers  # of them those of the question, where that has an n-gram; else 0
    questions: Numbers  # words of each entry that the question has
    length: Numbers  # of an n-gram: words, characters


def build_index(
    questions: pa.Array, others: pa.Array, length: Length, max_entries: int = MAX_ENTRIES
) -> ItemIndex:
    """Index entries; each is a question, and what goes with it (choices, an answer; or "")."""
    num = len(questions)
    both = pa.array(
        [f"{q}\n{o}" for q, o in zip(questions.to_pylist(), others.to_pylist(), strict=True)],
        pa.large_string(),
    )
    ngrams, sizes, offsets, _ = ngrams_of(both, length)
    of_questions = ngrams_of(questions, length)[3]
    entries = np.repeat(np.arange(num), np.diff(offsets))
    places = np.arange(len(ngrams)) - offsets[entries]
    order = np.lexsort((places, entries, ngrams))
    again = (np.diff(ngrams[order]) == 0) & (np.diff(entries[order]) == 0)
    order = order[np.append(True, ~again)[: len(order)]]
    _, which, counts = np.unique(ngrams[order], return_inverse=True, return_counts=True)
    order = order[counts[which] <= max_entries]
    entries, places = entries[order], places[order]
    distinct, firsts = np.unique(ngrams[order], return_index=True)
    counted, asked = _counted(entries, places, sizes[order], of_questions, num)
    bits = max(1, (len(distinct) // 2).bit_length())
    buckets = np.bincount((distinct >> np.uint64(64 - bits)).astype(np.int64), minlength=1 << bits)
    bitmap = bitmap_of(BITS * len(distinct))
    mark(distinct, bitmap)
    return ItemIndex(
        ngrams=distinct,
        firsts=np.append(firsts, len(order)).astype(np.int32),
        entries=entries.astype(np.int32),
        places=places.astype(np.int32),
        directory=np.append(0, np.cumsum(buckets)).astype(np.int32),
        bitmap=bitmap,
        counted=counted.astype(np.int32),
        asked=asked.astype(np.int32),
        questions=of_questions.astype(np.int32),
        length=np.array(length, np.int32),
    )


def ngrams_of(
    texts: pa.Array, length: Length
) -> tuple[Hashes, Numbers, Offsets, npt.NDArray[np.int64]]:
    """Of texts: the hashes of all n-grams, the words of each, where those of a text begin; and how
    many words each text has."""
    data, bounds = string_buffers(texts)
    table, expansions, words_per_byte = fold_table()
    room = words_per_byte * int(bounds[-1] - bounds[0])
    ngrams, sizes = np.empty(room, np.uint64), np.empty(room, np.int32)
    offsets, words = _ngrams(
        data, bounds, table, expansions, words_per_byte, *length, length.powers, ngrams, sizes
    )
    return ngrams[: offsets[-1]], sizes[: offsets[-1]], offsets, words


def _counted(
    entries: Array, places: Array, sizes: Array, questions: Array, num: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Words of each entry that its n-grams hold, and those of its question, where an n-gram lies
    within that."""
    ends = places + sizes
    order, fresh = first_held(entries, places, ends)
    entries, ends, fresh = entries[order], ends[order], fresh[order]
    counted = np.bincount(entries, fresh, num).astype(np.int64)
    asked = np.bincount(entries, within(fresh, ends, questions[entries]), num).astype(np.int64)
    inside = np.bincount(entries, ends <= questions[entries], num) > 0
    return counted, np.where(inside, asked, 0)


def first_held(
    groups: Array, begins: Array, ends: Array
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Ranges of a group in the order of where they begin, and of each (not in that order) how many
    of its numbers no range of its group before it holds: the last ones."""
    order = np.lexsort((begins, groups))
    base = groups[order].astype(np.int64) * (int(ends.max(initial=0)) + 1)
    reach = np.maximum.accumulate(base + ends[order])
    before = np.append(0, reach)[: len(order)] - base  # below 0 where a group begins
    fresh = np.empty(len(order), np.int64)
    fresh[order] = np.maximum(0, ends[order] - np.maximum(begins[order], before))
    return order, fresh


def within(fresh: Array, ends: Array, borders: Array) -> npt.NDArray[np.int64]:
    """How many of the last `fresh` numbers before `ends` lie below `borders`."""
    kept: npt.NDArray[np.int64] = np.maximum(0, fresh - np.maximum(0, ends - borders))
    return kept


@kernel
def _ngrams(
    data: Array,
    bounds: Array,
    table: Array,
    expansions: Array,
    words_per_byte: int,
    of_words: int,
    of_characters: int,
    powers: Array,
    ngrams: Array,
    sizes: Array,
) -> tuple[Array, Array]:
    longest = 0
    for text in range(len(bounds) - 1):
        longest = max(longest, bounds[text + 1] - bounds[text])
    words = np.empty(words_per_byte * longest, np.uint64)
    starts, ends = np.empty(len(words), np.int64), np.empty(len(words), np.int64)
    singles = np.empty(len(words), np.bool_)
    offsets = np.zeros(len(bounds), np.int64)
    nums = np.zeros(len(bounds) - 1, np.int64)
    for text in range(len(bounds) - 1):
        begin, end = bounds[text], bounds[text + 1]
        num = place_words(data, begin, end, table, expansions, words, starts, ends, singles)
        at = offsets[text]
        found = roll_ngrams(
            words, singles, num, of_words, of_characters, powers, ngrams[at:], sizes[at:]
        )
        nums[text], offsets[text + 1] = num, at + found
    return offsets, nums
