"""Many phrases at once in many texts, through disguises, at word borders.

    found = find(texts, automaton(["色情", "make money"]))

A phrase is a row of symbols (filters/symbols.py); the text is read as one on the fly. Between two
symbols of which one is Han, up to three characters may stand that are no letters (威❤信, 加 微 信);
a space of a phrase is any run of white space. What is found begins and ends at word borders: a
letter is not beside a letter, a digit not beside a digit, and Han characters are a word by
filters/han_words.py. Of each category, the longest phrase that begins first is found, then what
begins after its end. Begins and ends are bytes of the text as it is.

A trie in a hash table is walked from where a phrase may begin: where the first two symbols are
those of some phrase, or the letters of a Latin word; both are looked up in a
small table of bits. So text without phrases costs a look a character, or a word; a walk is at most
as long as the longest phrase, so the time is linear in the text, whatever the text.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from filters.automaton import LONGEST, ORDINARY, ROOT, Automaton, Ints, Keys, slot_of
from filters.han_words import REACH, Values, is_word
from filters.names import Offsets
from filters.phrase_starts import phrase_starts
from filters.segments import Texts
from filters.symbols import BLANK, DIGIT, GAP, HAN, LETTER, NOTHING, VALUE, Symbols
from filters.text import next_char
from kernels.compile import kernel, leaf_kernel
from kernels.hashing import Bytes

MAX_GAP = 3  # characters between two symbols


class Matches(NamedTuple):
    """In the order of texts, then begins; of one begin, the longest first."""

    texts: Offsets
    entries: Offsets
    begins: Offsets  # bytes in `data` of the texts
    ends: Offsets


def find(texts: Texts, built: Automaton) -> Matches:
    """All that is found of a batch."""
    return Matches(*without_ordinary(find_all(texts.data, texts.offsets, built)))


@kernel
def find_all(data: Bytes, offsets: Offsets, built: Automaton) -> Offsets:
    """Texts, entries, begins, ends: int64[4, n]; ordinary phrases too."""
    found = np.empty((4, 64), np.int64)
    num_found = 0
    free = np.empty(built.num_categories, np.int64)
    room = _Room(
        np.empty((2, built.num_categories), np.int64),
        np.empty(LONGEST + 2 * REACH, np.uint32),
        np.empty((2, LONGEST + 2 * REACH + 1)),
    )
    starts = np.empty(1024, np.int64)
    ends = np.empty((4, 64), np.int64)
    for text in range(len(offsets) - 1):
        low, end = offsets[text], offsets[text + 1]
        if end - low > len(starts):
            starts = np.empty(end - low, np.int64)
        num_starts = phrase_starts(
            data, low, end, built.symbols, built.pairs, built.heads, built.singles, starts
        )
        ends, num_ends = _walk(
            data, end, built.symbols, built.steps, built.ends, starts[:num_starts], ends
        )
        for category in range(len(free)):
            free[category] = low
        last = 0
        while last < num_ends:  # the ends of one start
            first = last
            while last < num_ends and ends[0, last] == ends[0, first]:
                last += 1
            num_here = _accept(data, low, end, ends, first, last, built, free, room)
            while num_found + num_here > found.shape[1]:
                found = _grown(found)
            for i in range(num_here):
                found[0, num_found] = text
                found[1, num_found] = room.found[0, i]
                found[2, num_found] = ends[0, first]
                found[3, num_found] = room.found[1, i]
                num_found += 1
    return found[:, :num_found]


class _Room(NamedTuple):
    """Scratch of what follows."""

    found: Offsets  # [2, n]: entries and ends
    row: Values  # letters, digits and Han of a phrase, with the Han around
    best: npt.NDArray[np.float64]


@kernel
def _grown(found: Offsets) -> Offsets:
    grown = np.empty((4, 2 * found.shape[1]), np.int64)
    for row in range(4):
        for i in range(found.shape[1]):
            grown[row, i] = found[row, i]
    return grown


@kernel
def _walk(
    data: Bytes,
    end: int,
    table: Symbols,
    steps: Keys,
    forms: Ints,
    starts: Offsets,
    ends: Offsets,
) -> tuple[Offsets, int]:
    """Where forms end that begin at `starts`: int64[4, n], of which n; start, byte after the form,
    the form, whether a character was passed over; of one start in ascending order.
    """
    num_ends = 0
    for start in starts:
        state = depth = gap = gapped = last = 0
        at = start
        while at < end and depth < LONGEST:
            code, at = next_char(data, at)
            symbol = int(table[code])
            if symbol & NOTHING or symbol & last & BLANK:
                continue
            if depth == 0:
                state = ROOT | symbol & VALUE
            else:
                step = steps[slot_of(steps, np.uint64(state << 21 | symbol & VALUE))]
                if step == 0 or (gap and (last | symbol) & HAN == 0):
                    gap += 1
                    if symbol & GAP == 0 or gap > MAX_GAP:
                        break
                    continue
                state = int(step) & VALUE
                gapped |= gap > 0
                if forms[state] >= 0:
                    if num_ends == ends.shape[1]:
                        ends = _grown(ends)
                    ends[0, num_ends] = start
                    ends[1, num_ends] = at
                    ends[2, num_ends] = forms[state]
                    ends[3, num_ends] = gapped
                    num_ends += 1
            depth += 1
            gap = 0
            last = symbol
    return ends, num_ends


@leaf_kernel
def _accept(
    data: Bytes,
    low: int,
    end: int,
    ends: Offsets,
    first: int,
    last: int,
    built: Automaton,
    free: Offsets,
    room: _Room,
) -> int:
    """How many phrases there are of ends[:, first:last], which begin at one byte; they are in
    room.found.
    """
    num_found = 0
    begin = ends[0, first]
    for i in range(last - 1, first - 1, -1):
        after, form, gapped = ends[1, i], ends[2, i], ends[3, i]
        word = -1  # not known
        while form >= 0:
            entry = built.entries[form]
            category = built.categories[entry]
            if begin >= free[category] and (gapped or not built.gapped[form]):
                if word < 0:
                    word = _is_apart(data, low, begin, after, end, built, room)
                if word > 0 or entry == ORDINARY:
                    room.found[0, num_found] = entry
                    room.found[1, num_found] = after
                    num_found += 1
                    free[category] = after
            form = built.chain[form]
    return num_found


@leaf_kernel
def _is_apart(
    data: Bytes, low: int, begin: int, after: int, end: int, built: Automaton, room: _Room
) -> bool:
    """Does data[begin:after], of the text data[low:end], stand at word borders?"""
    table, row = built.symbols, room.row
    first = last = length = 0
    at = begin
    while at < after:
        code, at = next_char(data, at)
        symbol = int(table[code])
        if symbol & NOTHING:
            continue
        first = first if first else symbol
        last = symbol
        if symbol & (HAN | LETTER | DIGIT):
            row[REACH + length] = symbol & VALUE
            length += 1
    num_before, num_after = 0, 0
    at = begin
    while first & HAN and num_before < REACH and at > low:
        at -= 1
        while data[at] & 0xC0 == 0x80:
            at -= 1
        symbol = int(table[next_char(data, at)[0]])
        if symbol & NOTHING:
            continue
        if symbol & HAN == 0:
            break
        num_before += 1
        row[REACH - num_before] = symbol & VALUE
    at = after
    while num_after < REACH and at < end:
        code, at = next_char(data, at)
        symbol = int(table[code])
        if symbol & NOTHING:
            continue
        if symbol & last & (LETTER | DIGIT):
            return False
        if symbol & last & HAN == 0:
            break
        row[REACH + length + num_after] = symbol & VALUE
        num_after += 1
    if num_before + num_after == 0:
        return True
    around = row[REACH - num_before :]
    end_of_row = num_before + length + num_after
    return is_word(built.words, around, end_of_row, num_before, num_before + length, room.best)


@kernel
def without_ordinary(found: Offsets) -> Offsets:
    """What does not overlap an ordinary phrase, or holds it; of these none."""
    kept = np.empty_like(found)
    num_kept = 0
    ordinary = np.flatnonzero(found[1] == ORDINARY)
    low = 0
    for i in range(found.shape[1]):
        text, entry, begin, end = found[0, i], found[1, i], found[2, i], found[3, i]
        while low < len(ordinary) and (
            found[0, ordinary[low]] < text
            or (found[0, ordinary[low]] == text and found[3, ordinary[low]] <= begin)
        ):
            low += 1
        keep = entry != ORDINARY
        other = low
        while keep and other < len(ordinary):
            j = ordinary[other]
            if found[0, j] > text or found[2, j] >= end:
                break
            keep = begin <= found[2, j] and found[3, j] <= end
            keep &= end - begin > found[3, j] - found[2, j]
            other += 1
        if keep:
            for row in range(4):
                kept[row, num_kept] = found[row, i]
            num_kept += 1
    return kept[:, :num_kept]
