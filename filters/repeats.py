"""Signal group `repeats`: how many n-grams of a text stand in it more than once.

data-juicer and ChineseWebText count *occurrences*: of n words in a row that stand twice both count,
where `gopher.dup_*` counts the characters under those that stood before. So a text that is written
twice has 1 here and about .5 there, and a bound of one does not hold for the other.

BLOOM's measure of ten characters in a row looks at the most frequent ones only, as many as the root
of the number of distinct ones, so it falls slowly as a text grows. Here its ten characters are the
fewest words in a row that have ten: in Chinese that is ten Han characters, punctuation left out; in
English it is two or three words, a place in five. ChineseWebText's 13-grams of characters are 13
words; its code misses the last of a text.

An n-gram can repeat only where each of its words does, so few places cost more than a look.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from filters.columns import Signal
from filters.names import MIN_BITS, Keys, Positions, fill, longest, name_of, table_for
from filters.segments import Texts
from filters.wordruns import Words
from kernels.compile import inner_kernel, kernel
from kernels.hashing import HASH_PRIME, HASH_START, Bytes, mix

MIN_CHARS = 10  # of `char_10_gram_share`

RATIO = pa.float32()
_JUICER = "data-juicer word_repetition_filter.py"
COLUMNS: dict[str, Signal] = {
    "char_10_gram_share": Signal(
        RATIO,
        "words",
        "fewest words in a row that have 10 characters: the most frequent, root of the distinct",
        "BLOOM; data-juicer character_repetition_filter.py",
    ),
    "word_5_gram_share": Signal(RATIO, "words", "5 words in a row that stand twice", _JUICER),
    "word_10_gram_share": Signal(RATIO, "words", "10 words in a row that stand twice", _JUICER),
    "word_13_gram_share": Signal(
        RATIO, "words", "13 words in a row that stand twice", "ChineseWebText preprocess.py"
    ),
}


class Room(NamedTuple):
    """For the n-grams of one text after another."""

    names: Positions  # of the n-gram at each word, -1 where it cannot repeat
    counts: Positions  # of each name
    before: Positions  # ... of the shorter n-grams
    keys: Keys
    table: Positions


def measure(texts: Texts, columns: Mapping[str, pa.Array]) -> Mapping[str, pa.Array | np.ndarray]:
    """All columns of `COLUMNS` for a batch; no other columns are read. See filters/signals.py."""
    ratios = np.zeros((len(texts), len(COLUMNS)), np.float32)
    _measure(texts.segments.words, ratios)
    return {name: ratios[:, i].copy() for i, name in enumerate(COLUMNS)}


@kernel
def _measure(words: Words, ratios: npt.NDArray[np.float32]) -> None:
    most = longest(words.offsets)
    room = Room(
        np.empty(most, np.int32),
        np.empty(most, np.int32),
        np.empty(most, np.int32),
        np.empty(most, np.uint64),
        table_for(most),
    )
    again = np.empty(most, np.int32)
    pairs = np.empty(_pair_slots(most), np.uint8)
    for text in range(len(ratios)):
        begin, end = words.offsets[text], words.offsets[text + 1]
        length = end - begin
        if words.starts[text + 1] - words.starts[text] == length:  # no word stands twice
            continue
        _pairs_again(words.names, begin, end, pairs, again)
        row = ratios[text]
        total = max(length - 4, 0)
        found = _name_fives(words.names, begin, total, again, room)
        row[1] = _repeated(room.counts, found) / max(total, 1)
        room.before[:found] = room.counts[:found]
        total = _num_of_chars(words.ends, begin, end)
        found = _name_chars(words, begin, total, again, room)
        row[0] = _most_frequent(room.counts, found, total) / max(total, 1)
        for column, size, gap in ((2, 10, 5), (3, 13, 3)):
            total = max(length - size + 1, 0)
            found = _join(total, gap, room)
            row[column] = _repeated(room.counts, found) / max(total, 1)
            room.before[:found] = room.counts[:found]


@kernel
def _pair_slots(length: int) -> int:
    slots = 64
    while slots < 4 * length:
        slots *= 2
    return slots


@kernel
def _pairs_again(names: Positions, begin: int, end: int, pairs: Bytes, again: Positions) -> None:
    """For each word, how many pairs of neighbours from it on may stand twice, without a gap.

    A pair is counted at its hash, so that some that stand once are let through, and none is lost.
    """
    mask = _pair_slots(end - begin) - 1
    pairs[: mask + 1] = 0
    for word in range(begin, end - 1):
        pairs[_pair(names[word], names[word + 1], mask)] += 1 - (
            pairs[_pair(names[word], names[word + 1], mask)] >> 1
        )
    again[end - begin - 1] = 0
    for word in range(end - 2, begin - 1, -1):
        twice = pairs[_pair(names[word], names[word + 1], mask)] > 1
        again[word - begin] = again[word - begin + 1] + 1 if twice else 0


@kernel
def _pair(first: int, second: int, mask: int) -> int:
    value = np.uint64(first) * HASH_PRIME + np.uint64(second) * HASH_START
    return int(value >> np.uint64(40)) & mask


@kernel
def _num_of_chars(ends: Positions, begin: int, end: int) -> int:
    """From how many words on there are MIN_CHARS characters."""
    last = end - 1
    while last >= begin and ends[end - 1] - (ends[last - 1] if last > begin else 0) < MIN_CHARS:
        last -= 1
    return int(last - begin + 1)


@inner_kernel
def _count(room: Room, bits: int, found: int, key: np.uint64) -> tuple[int, int, int]:
    """Count an n-gram by its key: its name, and the room and number of names after it."""
    _, counts, _, keys, table = room
    name = name_of(table, bits, keys, 0, found, key)
    if name < found:
        counts[name] += 1
        return name, bits, found
    counts[name] = 1
    if 2 * found + 2 > 1 << bits:
        bits += 1
        fill(table, bits, keys, 0, found + 1)
    return name, bits, found + 1


@kernel
def _name_fives(words: Positions, begin: int, total: int, again: Positions, room: Room) -> int:
    """Name and count the five words that begin at each of the first `total`; how many names."""
    bits = MIN_BITS
    room.table[: 1 << bits] = -1
    found = 0
    for i in range(total):
        room.names[i] = -1
        if again[i] >= 4:
            key = _mixed(words, begin + i, 5)
            room.names[i], bits, found = _count(room, bits, found, key)
    return found


@kernel
def _name_chars(words: Words, begin: int, total: int, again: Positions, room: Room) -> int:
    """Count, for each of the first `total` words, the fewest from it on with MIN_CHARS characters:
    at most ten, from five on by the fives that cover them.
    """
    bits = MIN_BITS
    room.table[: 1 << bits] = -1
    found = after = 0
    for i in range(total):
        before = words.ends[begin + i - 1] if i else 0
        if again[i] == 0 and words.ends[begin + i] - before < MIN_CHARS:
            continue
        after = max(after, i)
        while words.ends[begin + after] - before < MIN_CHARS:
            after += 1
        size = after - i + 1
        if again[i] < size - 1:
            continue
        if size < 5:
            key = _mixed(words.names, begin + i, size)
        else:
            first, second = room.names[i], room.names[i + size - 5]
            if room.before[first] < 2 or room.before[second] < 2:
                continue
            key = mix(mix(HASH_PRIME, np.uint64(size)), np.uint64(first))
            key = mix(key, np.uint64(second))
        _, bits, found = _count(room, bits, found, key)
    return found


@kernel
def _join(total: int, gap: int, room: Room) -> int:
    """Name and count n-grams made of the one named at a word and that `gap` words on."""
    names, before = room.names, room.before
    bits = MIN_BITS
    room.table[: 1 << bits] = -1
    found = 0
    for i in range(total):
        first, second = names[i], names[i + gap]
        names[i] = -1
        if first >= 0 and second >= 0 and before[first] > 1 and before[second] > 1:
            key = (np.uint64(first) << np.uint64(32) | np.uint64(second)) * HASH_PRIME
            names[i], bits, found = _count(room, bits, found, key)
    return found


@inner_kernel
def _mixed(words: Positions, at: int, size: int) -> np.uint64:
    """A key for `size` words in a row."""
    key = HASH_START ^ np.uint64(size)
    for word in range(at, at + size):
        key = mix(key, np.uint64(words[word] + 1))
    return key


@kernel
def _repeated(counts: Positions, found: int) -> int:
    """Occurrences of n-grams that stand more than once."""
    occurrences = 0
    for name in range(found):
        occurrences += counts[name] if counts[name] > 1 else 0
    return occurrences


@kernel
def _most_frequent(counts: Positions, found: int, total: int) -> int:
    """Occurrences of the most frequent repeated n-grams, as many as the root of all distinct."""
    repeated = occurrences = most = 0
    for name in range(found):
        if counts[name] > 1:
            repeated += 1
            occurrences += counts[name]
            most = max(most, counts[name])
    distinct = total - occurrences + repeated
    left = int(math.sqrt(distinct))
    if repeated <= left:
        return occurrences
    histogram = np.zeros(most + 1, np.int64)
    for name in range(found):
        histogram[counts[name]] += 1
    chosen = 0
    for count in range(most, 1, -1):
        taken = min(left, histogram[count])
        chosen += taken * count
        left -= taken
    return chosen
