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
_BITS = 13  # of a character's number
_STATE_BITS = 16
_MOST_CELLS = 1 << 16

# A state is what two characters and more begin: words by their row, then what is none. A way is
# a number of where it starts, whether it goes on, and the state where it ends.
Codes = npt.NDArray[np.int16]
Ways = npt.NDArray[np.uint32]


class Synonyms(NamedTuple):
    """Words as a trie. What follows a first character stands in `cells`, between what follows
    others (a double array: Aoki 1989), so that all of it stays in the cache.
    """

    numbers: Codes  # of a character from _FIRST, simplified, that stands in a word: from 1
    bases: npt.NDArray[np.int32]  # of a first character's number: plus the second's, the cell
    cells: Ways  # ... from the first character
    steps: npt.NDArray[np.uint64]  # state, character, then the way; at their place or after it
    weights: npt.NDArray[np.float32]  # of each row of `weights()`


class _Pairs(NamedTuple):
    """Of a text, those that begin words, as they come."""

    places: npt.NDArray[np.int32]  # of their first characters
    ways: Ways


@functools.cache
def weights() -> dict[str, float]:
    """Of each word, the most frequent first."""
    rows = (line.split("\t") for line in COUNTS.read_text(encoding="utf-8").splitlines())
    counts = {word: int(count) for word, count in rows}
    others: dict[str, set[str]] = defaultdict(set)
    for line in SETS.read_text(encoding="utf-8").splitlines():
        words = line.split()
        for word in words:
            others[word].update(words)
    found = {}
    for word in sorted(others, key=lambda word: (-counts[word], word)):
        share = counts[word] / sum(counts[other] for other in others[word])
        weight = -math.log(len(others[word]) * share)
        found[word] = min(max(weight, -MOST_WEIGHT), MOST_WEIGHT)
    return found


def _tables() -> tuple[npt.NDArray[np.generic], ...]:
    listed = list(weights())
    number = {char: place for place, char in enumerate(sorted({*"".join(listed)}), 1)}
    simplified = {chr(code): chr(code) for code in range(_FIRST, _LAST + 1)}
    simplified |= TRADITIONAL_TO_SIMPLIFIED
    numbers = [number.get(simplified[chr(code)], 0) for code in range(_FIRST, _LAST + 1)]
    begun = {word[:size] for word in listed for size in range(2, len(word))}
    states = {row: state for state, row in enumerate([*listed, *sorted(begun - {*listed})])}
    seconds: dict[int, dict[int, int]] = defaultdict(dict)
    num_steps = sum(len(row) > 2 for row in states)
    steps = np.zeros(1 << (2 * num_steps).bit_length(), np.uint64)
    for row, state in states.items():
        goes_on = (row in begun) << _STATE_BITS | state
        last = number[row[-1]]
        if len(row) == 2:
            seconds[number[row[0]]][last] = goes_on
            continue
        key = states[row[:-1]] << _BITS | last
        place = _place(key, len(steps))
        while steps[place]:
            place = (place + 1) % len(steps)
        steps[place] = np.uint64(key << (_STATE_BITS + 1) | goes_on)
    bases, cells = _cells(seconds, len(number) + 1)
    row_weights = np.array(list(weights().values()), np.float32)
    return np.array(numbers, np.int16), bases, cells, steps, row_weights


def _cells(
    seconds: dict[int, dict[int, int]], num_chars: int
) -> tuple[npt.NDArray[np.int32], Ways]:
    """Each first character at the first base where its seconds find their cells free."""
    bases = np.zeros(num_chars, np.int32)
    cells = np.full(_MOST_CELLS, 0xFFFFFFFF, np.uint32)  # from no character
    taken = np.zeros(_MOST_CELLS, np.bool_)
    for first in sorted(seconds, key=lambda first: -len(seconds[first])):
        blocked = np.zeros(_MOST_CELLS - num_chars, np.bool_)
        for second in seconds[first]:
            blocked |= taken[second : second + len(blocked)]
        bases[first] = np.argmin(blocked)
        assert not blocked[bases[first]]
        for second, goes_on in seconds[first].items():
            taken[bases[first] + second] = True
            cells[bases[first] + second] = first << (_STATE_BITS + 1) | goes_on
    return bases, cells[: bases.max() + num_chars].copy()


@functools.cache
def synonyms() -> Synonyms:
    return Synonyms(*kept_arrays([__file__, SETS, COUNTS, SIMPLIFIED], _tables))


@inner_kernel
def _place(key: int, size: int) -> int:
    return int(np.uint64(key) * HASH_PRIME >> np.uint64(32)) & (size - 1)


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
    codes = np.zeros(longest + LONGEST, np.int16)  # 0: of no word
    pairs = _Pairs(np.empty(longest, np.int32), np.empty(longest, np.uint32))
    for text in range(num_texts):
        if not asked[text]:
            continue
        num_pairs, num_han = _read(data, offsets[text], offsets[text + 1], table, codes, pairs)
        for place in range(MOST):
            best[place] = 0
        total = 0.0
        words = chars = free = 0
        for pair in range(num_pairs):
            place, way = int(pairs.places[pair]), int(np.int64(pairs.ways[pair]))
            size, row = 2, way & ((1 << _STATE_BITS) - 1)
            if way >> _STATE_BITS & 1:
                size, row = _longest_word(table, codes, place, way)
            # no branch: which words overlap, or stood before, cannot be predicted
            taken = (place >= free) & (size > 0)
            new = taken & (seen[row] != text)
            free = place + size if taken else free
            chars += size if taken else 0
            seen[row] = text if taken else seen[row]
            weight = table.weights[row]
            total += float(weight) if new else 0.0
            words += new
            if new & (weight >= TELLING) & (weight > best[MOST - 1]):
                show_heaviest(shown[text], best, row, weight)
        sums[text] = total
        counts[text, 0], counts[text, 1], counts[text, 2] = words, chars, num_han
    return sums, counts, shown


@inner_kernel
def _read(
    data: Bytes, at: int, end: int, table: Synonyms, codes: Codes, pairs: _Pairs
) -> tuple[int, int]:
    """The Han of words of a text into `codes`, other characters as 0, zeros behind; where two in a
    row begin words into `pairs`. How many pairs there are, and Han.
    """
    length = num_han = num_pairs = 0
    before = np.uint64(0)
    while at < end:
        here = np.uint64(at)  # no index may be negative: see kernels/hashing.py
        lead = data[here]
        number = np.uint64(0)
        if 0xE4 <= lead <= 0xE9:
            second, third = data[here + np.uint64(1)], data[here + np.uint64(2)]
            code = int(lead & 0x0F) << 12 | int(second & 0x3F) << 6 | int(third & 0x3F)
            at += 3
            if code >= _FIRST:
                num_han += 1
                number = np.uint64(table.numbers[np.uint64(code - _FIRST)])
                way = table.cells[np.uint64(table.bases[before]) + number]
                pairs.places[np.uint64(num_pairs)] = length - 1
                pairs.ways[np.uint64(num_pairs)] = way
                num_pairs += way >> np.uint64(_STATE_BITS + 1) == before
        else:
            at += 1
        codes[np.uint64(length)] = number
        length += 1
        before = number
    for place in range(length, length + LONGEST):
        codes[place] = 0
    return num_pairs, num_han


@inner_kernel
def _longest_word(table: Synonyms, codes: Codes, at: int, way: int) -> tuple[int, int]:
    """Characters of the longest word that begins here, and its row; 0 where none does. `way` is
    that of its first two.
    """
    size = row = 0
    last = len(table.steps) - 1
    for after in range(2, LONGEST + 1):
        state = way & ((1 << _STATE_BITS) - 1)
        if state < len(table.weights):
            size, row = after, state
        if way >> _STATE_BITS & 1 == 0:  # nothing longer begins so: most words
            break
        key = state << _BITS | int(codes[at + after])
        place = _place(key, last + 1)
        way = int(np.int64(table.steps[place]))
        while way != 0 and way >> (_STATE_BITS + 1) != key:
            place = (place + 1) & last
            way = int(np.int64(table.steps[place]))
        if way == 0:
            break
    return size, row
