"""The words of the folded view (dedup/folding.py) in order, each with the bytes that it stands on;
and the n-grams that they make, of one length in any script.

An n-gram begins at a word and ends with the first word at which it weighs enough: `words` words of
letters, `characters` Han characters or kana, or of both in that proportion. So a mixed text has
n-grams too, and which they are depends on nothing but the words. Hashes of words are those of
dedup/shingles.py.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from dedup.folding import BREAK, NOTHING, ONE
from dedup.shingles import BASE, MULTIPLIER, START, Array, decode, mix
from kernels.compile import kernel


class Length(NamedTuple):
    """Of an n-gram: `words` words, or `characters` Han characters and kana."""

    words: int
    characters: int

    @property
    def longest(self) -> int:
        """Words, of either kind, that one n-gram has at most."""
        return max(self.words, self.characters)

    @property
    def powers(self) -> npt.NDArray[np.uint64]:
        """Of BASE, by exponent: what the words of an n-gram are multiplied by."""
        powers = np.full(self.longest + 1, BASE, np.uint64)
        powers[0] = 1
        return np.multiply.accumulate(powers)


@kernel
def place_words(
    data: Array,
    at: int,
    end: int,
    table: Array,
    expansions: Array,
    words: Array,
    starts: Array,
    ends: Array,
    singles: Array,
) -> int:
    """Of `data[at:end]` the hash of every word, its first byte, the byte after its last one, and
    whether it is one character; returns how many there are.

    What vanishes from the view (marks, joiners) belongs to the word that it follows, so that a span
    of words never cuts off an accent.
    """
    num = 0
    word = START
    while at < end:
        start = at
        if data[at] < 0x80:
            entry = table[data[at]]
            at += 1
            if entry > 0 and word == START:
                starts[num] = start
            while entry > 0:  # letters of an ASCII word: the short way through the loop
                word = (word ^ np.uint64(entry)) * MULTIPLIER
                ends[num] = at
                if at == end or data[at] >= 0x80:
                    break
                entry = table[data[at]]
                at += 1
            if entry == BREAK and word != START:
                words[num], singles[num] = mix(word), False
                num += 1
                word = START
            continue
        code, at = decode(data, at, end)
        entry = table[code]
        first = last = 0
        if entry < NOTHING:
            first = NOTHING - entry
            last = first + expansions[first - 1] - 1
            entry = expansions[first]
        while True:
            if 0 < entry < ONE:
                if word == START:
                    starts[num] = start
                word = (word ^ np.uint64(entry)) * MULTIPLIER
                ends[num] = at
            elif entry == NOTHING:
                if word != START:
                    ends[num] = at
                elif num > 0 and ends[num - 1] == start:
                    ends[num - 1] = at
            else:
                if word != START:
                    words[num], singles[num] = mix(word), False
                    num += 1
                    word = START
                if entry >= ONE:
                    words[num] = mix((START ^ np.uint64(entry)) * MULTIPLIER)
                    starts[num], ends[num], singles[num] = start, at, True
                    num += 1
            if first == last:
                break
            first += 1
            entry = expansions[first]
    if word != START:
        words[num], singles[num] = mix(word), False
        num += 1
    return num


@kernel
def roll_ngrams(
    words: Array,
    singles: Array,
    num: int,
    of_words: int,
    of_characters: int,
    powers: Array,
    ngrams: Array,
    sizes: Array,
) -> int:
    """The hash of every n-gram of `words[:num]`, which is that of where it begins, and its number
    of words; returns how many there are."""
    full = of_words * of_characters
    weight = end = 0
    total = np.uint64(0)
    for begin in range(num):
        while weight < full and end < num:
            weight += of_words if singles[end] else of_characters
            total = total * BASE + words[end]
            end += 1
        if weight < full:
            return begin
        size = end - begin
        ngrams[begin], sizes[begin] = mix(total + np.uint64(size)), size
        weight -= of_words if singles[begin] else of_characters
        total -= words[begin] * powers[size - 1]
    return num
