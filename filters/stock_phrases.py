"""Stock phrases of a batch, counted by kind over the words that all groups share.

Phrases are plain words in a row, in any case, whatever punctuation stands between. That takes a
look at a number per word, .5 CPU-ms a MB; filters/matching.py, which sees through disguises, takes
4 (zh) to 10 (en) for the same list.
"""

from __future__ import annotations

import functools
from pathlib import Path

import numpy as np
import numpy.typing as npt

from filters.evidence import MOST
from filters.names import longest
from filters.text import words
from filters.wordruns import Words, marked_words, word_hash
from kernels.cache import kept_arrays
from kernels.compile import inner_kernel, kernel

LIST = Path(__file__).parent / "words" / "generated.tsv"
KINDS = ("leftover", "frame", "order", "contrast", "advice", "tone", "self", "talk")
LANGUAGES = ("en", "zh")
NUM_TELLING = KINDS.index("self")  # the kinds before tell of machines, the others of people
LONGEST = 16  # words of a phrase

Hashes = npt.NDArray[np.uint64]
Numbers = npt.NDArray[np.int32]


@functools.cache
def entries() -> list[tuple[str, str, str]]:
    """Kind, language, phrase of each line of the list."""
    rows = [line.split("\t") for line in LIST.read_text(encoding="utf-8").splitlines()]
    return [(kind, language, phrase) for kind, language, phrase in rows]


def _phrases() -> tuple[Hashes, Hashes, Numbers, Hashes, Numbers]:
    """First words, sorted; for each 64 bits, one for the upper six bits of a second word;
    where its phrases begin; the words of each phrase, the longest of a first word first; its
    language, kind, number of words, and line of the list."""
    found: dict[tuple[int, ...], tuple[int, int, int, int]] = {}
    for line, (kind, language, phrase) in enumerate(entries()):
        for apostrophe in "'’":
            row = tuple(word_hash(word) for word in words(phrase.replace("'", apostrophe)))
            assert 1 <= len(row) <= LONGEST, phrase
            found[row] = (LANGUAGES.index(language), KINDS.index(kind), len(row), line)
    rows = sorted(found, key=lambda row: (row[0], -len(row), row))
    firsts = sorted({row[0] for row in rows})
    begins = np.searchsorted(
        np.array([row[0] for row in rows], np.uint64), np.array(firsts, np.uint64)
    )
    hashes = np.zeros((len(rows), LONGEST), np.uint64)
    for at, row in enumerate(rows):
        hashes[at, : len(row)] = row
    seconds = dict.fromkeys(firsts, 0)
    for row in rows:
        seconds[row[0]] |= 1 << (row[1] >> 58) if len(row) > 1 else (1 << 64) - 1
    return (
        np.array(firsts, np.uint64),
        np.array(list(seconds.values()), np.uint64),
        np.append(begins, len(rows)).astype(np.int32),
        hashes,
        np.array([found[row] for row in rows], np.int32),
    )


FIRSTS, SECONDS, BEGINS, HASHES, ROWS = kept_arrays([__file__, LIST], _phrases)
_IS_FIRST = np.zeros(1 << 16, np.bool_)
_IS_FIRST[FIRSTS & np.uint64(0xFFFF)] = True


@kernel
def count_stock(found: Words, languages: Numbers) -> tuple[Numbers, Numbers]:
    """Phrases of each text by kind, int32[n, len(KINDS)], and the rows of the first MOST
    different ones that tell of machines, or -1; `languages` are numbers of LANGUAGES, -1 for
    others, which have none. Phrases do not overlap.
    """
    counts = np.zeros((len(languages), len(KINDS)), np.int32)
    shown = np.full((len(languages), MOST), -1, np.int32)
    groups = np.empty(longest(found.starts), np.int32)  # of each distinct word, in FIRSTS, or -1
    places = np.empty(longest(found.offsets) + 1, np.int64)
    for text in range(len(languages)):
        if languages[text] < 0:
            continue
        start = found.starts[text]
        for word in range(start, found.starts[text + 1]):
            value = found.vocabulary[word]
            groups[word - start] = -1
            if _IS_FIRST[value & np.uint64(0xFFFF)]:
                place = np.searchsorted(FIRSTS, value)
                if place < len(FIRSTS) and FIRSTS[place] == value:
                    groups[word - start] = place
        end = found.offsets[text + 1]
        num_shown = free = 0  # words from `free` on stand in no phrase
        for first in range(marked_words(found, text, groups, places)):
            if places[first] < free:
                continue
            group = groups[found.names[places[first]]]
            at = places[first] + 1
            if at < end:
                second = found.vocabulary[start + found.names[at]] >> np.uint64(58)
                if SECONDS[group] >> second & np.uint64(1) == 0:
                    continue
            for row in range(BEGINS[group], BEGINS[group + 1]):
                if _stands(found, start, at, end, row) and ROWS[row, 0] == languages[text]:
                    kind = ROWS[row, 1]
                    counts[text, kind] += 1
                    is_new = num_shown < MOST and kind < NUM_TELLING
                    for i in range(num_shown):
                        is_new &= ROWS[shown[text, i], 3] != ROWS[row, 3]
                    if is_new:
                        shown[text, num_shown] = row
                        num_shown += 1
                    free = at + ROWS[row, 2] - 1
                    break
    return counts, shown


@inner_kernel
def _stands(found: Words, start: int, at: int, end: int, row: int) -> bool:
    """Do the words from `at` on go on as the phrase does after its first?"""
    length = ROWS[row, 2]
    if at - 1 + length > end:
        return False
    for i in range(1, length):
        if found.vocabulary[start + found.names[at - 1 + i]] != HASHES[row, i]:
            return False
    return True
