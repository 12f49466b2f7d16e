"""Words in a row that have MIN_CHARS characters together, and fewer without the last: how many of
them stand twice. They have as many words as they need, so each size of filters/repetition.py adds
its own.
"""

from __future__ import annotations

import math

import numpy as np

from filters.names import Offsets, Positions
from kernels.compile import inner_kernel, kernel

MIN_CHARS = 10


@inner_kernel
def chars_before(ends: Positions, word: int) -> int:
    """Characters of the words before this one."""
    return int(ends[word - 1]) if word else 0


@kernel
def long_words(
    words: Positions, ends: Positions, distinct: int, counts: Positions, found: Positions
) -> int:
    """Counts of the single words with MIN_CHARS that stand twice: how many, in `found`."""
    for name in range(distinct):
        counts[name] = 0
    before = 0
    for word in range(len(words)):
        counts[np.uint64(words[word])] += ends[word] - before >= MIN_CHARS
        before = ends[word]
    num_found = 0
    for name in range(distinct):
        found[num_found] = counts[name]
        num_found += counts[name] > 1
    return num_found


@kernel
def long_ngrams(
    places: Offsets,
    counts: Positions,
    distinct: int,
    size: int,
    ends: Positions,
    found: Positions,
    num_found: int,
) -> int:
    """Likewise of n-grams of a size; `places` says for each name where one stands."""
    for name in range(distinct):
        place = int(places[name])
        before = chars_before(ends, place)
        short = ends[place + size - 2] - before < MIN_CHARS
        long = ends[place + size - 1] - before >= MIN_CHARS
        found[num_found] = counts[name]
        num_found += short & long & (counts[name] > 1)
    return num_found


@kernel
def most_frequent(found: Positions, ends: Positions) -> float:
    """Of all such n-grams the share of the most frequent that stand twice, as many of them as the
    root of the number of all distinct ones."""
    total = _num_all(ends)
    occurrences = most = 0
    for count in found:
        occurrences += count
        most = max(most, count)
    left = int(math.sqrt(total - occurrences + len(found)))
    if len(found) > left:
        histogram = np.zeros(most + 1, np.int64)
        for count in found:
            histogram[count] += 1
        occurrences = 0
        for count in range(most, 1, -1):
            taken = min(left, histogram[count])
            occurrences += taken * count
            left -= taken
    return occurrences / max(total, 1)


@kernel
def _num_all(ends: Positions) -> int:
    """From how many words on there are MIN_CHARS characters."""
    last = len(ends) - 1
    while last >= 0 and ends[-1] - chars_before(ends, last) < MIN_CHARS:
        last -= 1
    return last + 1
