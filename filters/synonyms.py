"""Chinese words that have others of their meaning, and how unusual each choice is.

words/synonyms.tsv has sets of words of one meaning; benchmarks/spinning.py makes it. Of a word w of
the sets S that it stands in,

    weight = log(1 / |S|) - log(count of w / count of all words of S)

with jieba's counts (words/han_words.tsv): how much better w is explained by a program that draws
any word of S than by people, who take the usual one. Within ±MOST_WEIGHT, so that no one word
decides.
"""

from __future__ import annotations

import functools
import math
from collections import defaultdict
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from filters.evidence import MOST
from filters.han_words import WORDS as COUNTS
from filters.names import Offsets
from filters.style_grams import show_heaviest
from kernels.cache import kept_arrays
from kernels.compile import inner_kernel, kernel
from kernels.han import SIMPLIFIED, TRADITIONAL_TO_SIMPLIFIED
from kernels.hashing import HASH_PRIME, Bytes

SETS = Path(__file__).with_name("words") / "synonyms.tsv"
LONGEST = 4  # characters of a word
MOST_WEIGHT = 4.0
TELLING = 1.0  # a word of this weight is evidence: e times rarer than if it were drawn
_FIRST, _LAST = 0x4E00, 0x9FFF
_BITS = 15  # of a character: _LAST - _FIRST + 1 < 2 ** 15
_PAIR_BITS = 19
# A state is a first character, or from _LONGER on what two characters and more begin: words by
# their row, then what is none. A step has the key (state, character), whether it begins more, and
# the state after it.
_STATE_BITS = 17
_LONGER = 1 << _BITS

Codes = npt.NDArray[np.int64]
Steps = npt.NDArray[np.uint64]


class Synonyms(NamedTuple):
    steps: Steps  # state, character after it and what comes of them, at their place or after it
    weights: npt.NDArray[np.float32]  # of each row of `weights()`
    pairs: npt.NDArray[np.uint64]  # a bit for the first two characters of each word
    folded: npt.NDArray[np.int16]  # of a character from _FIRST: its number, simplified, from 1


@functools.cache
def weights() -> dict[str, float]:
    """Of each word, sorted."""
    rows = (line.split("\t") for line in COUNTS.read_text(encoding="utf-8").splitlines())
    counts = {word: int(count) for word, count in rows}
    others: dict[str, set[str]] = defaultdict(set)
    for line in SETS.read_text(encoding="utf-8").splitlines():
        words = line.split()
        for word in words:
            others[word].update(words)
    found = {}
    for word in sorted(others):
        share = counts[word] / sum(counts[other] for other in others[word])
        weight = -math.log(len(others[word]) * share)
        found[word] = min(max(weight, -MOST_WEIGHT), MOST_WEIGHT)
    return found


def _tables() -> tuple[npt.NDArray[np.generic], ...]:
    folded = np.arange(1, _LAST - _FIRST + 2).astype(np.int16)
    for traditional, simplified in TRADITIONAL_TO_SIMPLIFIED.items():
        if _FIRST <= ord(traditional) <= _LAST and _FIRST <= ord(simplified) <= _LAST:
            folded[ord(traditional) - _FIRST] = ord(simplified) - _FIRST + 1
    pairs = np.zeros(1 << (_PAIR_BITS - 6), np.uint64)
    listed = [tuple(int(folded[ord(char) - _FIRST]) for char in word) for word in weights()]
    states = {codes: row for row, codes in enumerate(listed)}
    begun = {codes[:size] for codes in listed for size in range(2, len(codes))}
    for number, codes in enumerate(sorted(begun - states.keys()), len(listed)):
        states[codes] = number
    steps = np.zeros(1 << (2 * len(states)).bit_length(), np.uint64)
    for codes, state in states.items():
        bit = _pair(codes[0], codes[1])
        pairs[bit >> 6] |= np.uint64(1 << (bit & 63))
        before = states[codes[:-1]] + _LONGER if len(codes) > 2 else codes[0]
        key = before << _BITS | codes[-1]
        place = _place(key, len(steps))
        while steps[place]:
            place = (place + 1) % len(steps)
        steps[place] = np.uint64((key << 1 | (codes in begun)) << _STATE_BITS | state)
    return steps, np.array(list(weights().values()), np.float32), pairs, folded


@functools.cache
def synonyms() -> Synonyms:
    return Synonyms(*kept_arrays([__file__, SETS, COUNTS, SIMPLIFIED], _tables))


@inner_kernel
def _place(key: int, size: int) -> int:
    return int(np.uint64(key) * HASH_PRIME >> np.uint64(32)) & (size - 1)


@inner_kernel
def _pair(first: int, second: int) -> int:
    return (first * 0x9E3779B1 + second * 0x85EBCA6B >> 7) & ((1 << _PAIR_BITS) - 1)


@kernel
def weigh_choices(
    data: Bytes, offsets: Offsets, asked: npt.NDArray[np.bool_], table: Synonyms
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int32], npt.NDArray[np.int32]]:
    """Of each text that is asked for: the sum of the weights of its different words that have
    others of their meaning; how many these are, the characters of all such words, and all Han; the
    rows of the MOST of them that weigh most, or -1. Words are read from the left, the longest
    first; one counts once, for what a manual is about it says on every page.
    """
    num_texts = len(offsets) - 1
    sums = np.zeros(num_texts, np.float64)
    counts = np.zeros((num_texts, 3), np.int32)
    shown = np.full((num_texts, MOST), -1, np.int32)
    best = np.zeros(MOST, np.float32)
    seen = np.full(len(table.weights), -1, np.int32)  # the last text with each word
    longest = 0
    for text in range(num_texts):
        if asked[text]:
            longest = max(longest, offsets[text + 1] - offsets[text])
    codes = np.zeros(longest + LONGEST, np.int64)  # 0: no Han
    for text in range(num_texts):
        if not asked[text]:
            continue
        length, num_han = _read(data, offsets[text], offsets[text + 1], table.folded, codes)
        for place in range(MOST):
            best[place] = 0
        total = 0.0
        words = chars = at = 0
        while at < length:
            bit = _pair(codes[at], codes[at + 1])
            if codes[at] == 0 or table.pairs[bit >> 6] >> np.uint64(bit & 63) & np.uint64(1) == 0:
                at += 1
                continue
            size, row = _longest_word(table, codes, at)
            if size == 0:
                at += 1
                continue
            chars += size
            at += size
            if seen[row] == text:
                continue
            seen[row] = text
            weight = table.weights[row]
            total += weight
            words += 1
            if weight >= TELLING and weight > best[MOST - 1]:
                show_heaviest(shown[text], best, row, weight)
        sums[text] = total
        counts[text, 0], counts[text, 1], counts[text, 2] = words, chars, num_han
    return sums, counts, shown


@inner_kernel
def _read(
    data: Bytes, at: int, end: int, folded: npt.NDArray[np.int16], codes: Codes
) -> tuple[int, int]:
    """The Han of a text into `codes`, each row of other characters as one 0, and zeros behind."""
    length = num_han = 0
    while at < end:
        lead = data[at]
        if 0xE4 <= lead <= 0xE9:
            code = (int(lead) & 15) << 12 | (int(data[at + 1]) & 63) << 6 | int(data[at + 2]) & 63
            at += 3
            if code >= _FIRST:
                codes[length] = folded[code - _FIRST]
                length += 1
                num_han += 1
                continue
        else:
            at += 1
        if length > 0 and codes[length - 1] != 0:
            codes[length] = 0
            length += 1
    for place in range(length, length + LONGEST):
        codes[place] = 0
    return length, num_han


@inner_kernel
def _longest_word(table: Synonyms, codes: Codes, at: int) -> tuple[int, int]:
    """Characters of the longest word that begins here, and its row; 0 where none does."""
    size = row = 0
    state = codes[at]
    last = len(table.steps) - 1
    for after in range(1, LONGEST):
        if codes[at + after] == 0:
            break
        key = state << _BITS | codes[at + after]
        place = _place(key, last + 1)
        step = np.int64(table.steps[place])
        while step != 0 and step >> (_STATE_BITS + 1) != key:
            place = (place + 1) & last
            step = np.int64(table.steps[place])
        if step == 0:
            break
        found = int(step) & ((1 << _STATE_BITS) - 1)
        if found < len(table.weights):
            size, row = after + 1, found
        if step >> _STATE_BITS & 1 == 0:  # nothing longer begins so: most words
            break
        state = _LONGER + found
    return size, row
