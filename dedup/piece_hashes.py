"""Hashes of pieces of a text (lines, paragraphs) by their folded view: 128 bits each.

Pieces with the same words in order have the same hash, whatever their case, width, script,
punctuation and spaces (dedup/folding.py). Both halves follow every letter by themselves: made of
hashes of words of 64 bits, two lines of a template that differ in one number would be equal with a
probability of 2^-64, and 1e11 lines of it have 5e21 pairs. So two of 1e11 pieces that differ are
equal with a probability of 6e-17 (126 bits: users take two for what a piece is).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from dedup.folding import BREAK, NOTHING, ONE, fold_table
from dedup.shingles import Array, decode, mix
from kernels.compile import inner_kernel, kernel

FIRST = np.uint64(0x9E3779B97F4A7C15)  # multipliers: 2^64 / golden ratio,
SECOND = np.uint64(0xD1342543DE82EF95)  # and of Steele & Vigna 2021; both odd
START = np.uint64(0x2545F4914F6CDD1D)
WORD = 1  # stands before each word of letters; no letter has that number
_HALF, _HALF_2 = np.uint64(32), np.uint64(29)


class Folded(NamedTuple):
    """Of each piece."""

    hashes: npt.NDArray[np.uint64]  # shape (n, 2); zeros where it has no words
    words: npt.NDArray[np.int32]  # of letters and digits
    characters: npt.NDArray[np.int32]  # Han and kana: each a word by itself

    def is_long(self, words: int, characters: int) -> npt.NDArray[np.bool_]:
        """Which have so many words, or so many Han characters, or both in that proportion."""
        weight = self.words * np.int64(characters) + self.characters * np.int64(words)
        long: npt.NDArray[np.bool_] = weight >= words * characters
        return long


def hash_pieces(
    data: npt.NDArray[np.uint8], begins: npt.NDArray[np.int64], ends: npt.NDArray[np.int64]
) -> Folded:
    """Of each `data[begins[i]:ends[i]]`, in UTF-8."""
    table, expansions, _ = fold_table()
    found = Folded(
        np.zeros((len(begins), 2), np.uint64),
        np.zeros(len(begins), np.int32),
        np.zeros(len(begins), np.int32),
    )
    _hash_pieces(data, begins, ends, table, expansions, *found)
    return found


def of_site(hashes: npt.NDArray[np.uint64], sites: npt.NDArray[np.uint64]) -> Array:
    """Of each piece and its site (both shape (n, 2)) one hash, equal where both are."""
    mixed = np.empty_like(hashes)
    _mix_all(hashes, sites, mixed)
    return mixed


@kernel
def _mix_all(hashes: Array, sites: Array, mixed: Array) -> None:
    for i in range(len(hashes)):
        for half in range(2):
            mixed[i, half] = mix(hashes[i, half] ^ sites[i, half])


@inner_kernel
def _first(state: np.uint64, entry: int) -> np.uint64:
    state = (state ^ np.uint64(entry)) * FIRST
    return state ^ (state >> _HALF)


@inner_kernel
def _second(state: np.uint64, entry: int) -> np.uint64:
    state = (state ^ np.uint64(entry)) * SECOND
    return state ^ (state >> _HALF_2)


@kernel
def _hash_pieces(
    data: Array,
    begins: Array,
    ends: Array,
    table: Array,
    expansions: Array,
    hashes: Array,
    words: Array,
    characters: Array,
) -> None:
    for piece in range(len(begins)):
        at, end = begins[piece], ends[piece]
        first = second = START
        num_words = num_characters = 0
        inside = False  # a word of letters
        while at < end:
            if data[at] < 0x80:
                entry = table[data[at]]
                at += 1
                if entry > 0 and not inside:
                    first, second = _first(first, WORD), _second(second, WORD)
                    num_words += 1
                    inside = True
                while entry > 0:  # letters of an ASCII word: the short way through the loop
                    first, second = _first(first, entry), _second(second, entry)
                    if at == end or data[at] >= 0x80:
                        break
                    entry = table[data[at]]
                    at += 1
                if entry == BREAK:
                    inside = False
                continue
            code, at = decode(data, at, end)
            entry = table[code]
            last = expanded = 0
            if entry < NOTHING:
                expanded = NOTHING - entry
                last = expanded + expansions[expanded - 1] - 1
                entry = expansions[expanded]
            while True:
                if entry >= ONE:
                    num_characters += 1
                    inside = False
                elif entry > 0 and not inside:
                    first, second = _first(first, WORD), _second(second, WORD)
                    num_words += 1
                    inside = True
                elif entry == BREAK:
                    inside = False
                if entry > 0:
                    first, second = _first(first, entry), _second(second, entry)
                if expanded == last:
                    break
                expanded += 1
                entry = expansions[expanded]
        words[piece], characters[piece] = num_words, num_characters
        if num_words + num_characters > 0:
            hashes[piece, 0], hashes[piece, 1] = mix(first), mix(second)
