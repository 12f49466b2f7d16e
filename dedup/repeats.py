"""Stretches that stand in several places: which place keeps them, and how far they reach together.

All is by one order of places: that of contents (their hashes), and within a text from its beginning
on. The first place of a stretch keeps it, every other one is a repeat. A byte that goes stands also
in the place that keeps its stretch, which comes before it in that order; where that byte goes too,
it is for a place still earlier, so a byte is left of each, whatever overlaps. No order of inputs,
shards or workers changes it, and texts of equal content are one.

Stretches that follow one another in all of their places are one run, told without the other
texts: `members` is the sum of the contents of a stretch's places, `places` the sum of content times
start. A step of d bytes in all of them adds d times `members` to `places`; any other change of the
places leaves `members` as it was with probability 2^-64.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from kernels.compile import inner_kernel, kernel
from kernels.hashing import Bytes

Numbers = npt.NDArray[np.int64]
Hashes = npt.NDArray[np.uint64]
Mask = npt.NDArray[np.bool_]


class Groups(NamedTuple):
    """Of those stretches that stand in two places or more, one row for each place."""

    at: Numbers  # which of the stretches given
    copies: Numbers  # places of equal bytes; those of texts of equal content count once
    first: Mask  # this place keeps it
    members: Hashes  # sums over the places, modulo 2^64
    places: Hashes


def groups(upper: Hashes, lower: Hashes, contents: Hashes, starts: Numbers) -> Groups:
    """Group stretches by their names.

    Args:
        contents: of the text of each, uint64[n, 2].
    """
    order = np.lexsort((starts, contents[:, 1], contents[:, 0], lower, upper))
    if not len(order):
        nothing = np.empty(0, np.uint64)
        return Groups(order, order, order.astype(np.bool_), nothing, nothing)
    new_group = _changes(upper[order]) | _changes(lower[order])
    contents, starts = contents[order], starts[order]
    new = new_group | _changes(contents[:, 0]) | _changes(contents[:, 1]) | _changes(starts)
    firsts, group, member = np.flatnonzero(new_group), np.cumsum(new_group) - 1, np.cumsum(new) - 1
    copies = np.add.reduceat(new.astype(np.int64), firsts)[group]
    weights = np.where(new, contents[:, 0], np.uint64(0))
    members = np.add.reduceat(weights, firsts)[group]
    places = np.add.reduceat(weights * starts.astype(np.uint64), firsts)[group]
    first = member == member[firsts][group]
    several = copies > 1
    found = (order, copies, first, members, places)
    return Groups(*(column[several] for column in found))


def _changes(values: npt.NDArray[np.generic]) -> Mask:
    changed = np.ones(len(values), np.bool_)
    changed[1:] = values[1:] != values[:-1]
    return changed


def runs(
    rows: Numbers, starts: Numbers, members: Hashes, places: Hashes, length: int
) -> tuple[Numbers, Numbers]:
    """The first and the last stretch of each run: those of a text that have the same places but for
    a step that is the same in all of them, each reaching the next. Every text that has one stretch
    of a run has all of it."""
    base = places - starts.astype(np.uint64) * members  # no step changes it
    order = np.lexsort((starts, base, members, rows))
    begins = np.diff(starts[order], prepend=0) > length
    for values in (rows, members, base):
        begins |= _changes(values[order])
    firsts = np.flatnonzero(begins)
    lasts = np.append(firsts[1:], len(order))[: len(firsts)] - 1
    return order[firsts], order[lasts]


class Within:
    """Stretches that stand before in their own text: their bytes go whatever else is selected. So a
    text of one pattern needs nothing more than what stands around its first places."""

    def __init__(self, rows: Numbers, starts: Numbers, upper: Hashes, lower: Hashes) -> None:
        order = np.lexsort((starts, lower, upper, rows))
        again = np.ones(len(order), np.bool_)
        for values in (rows, upper, lower):
            again &= ~_changes(values[order])
        self.places = np.sort(_place(rows[order[again]], starts[order[again]]))

    def hold(self, rows: Numbers, begins: Numbers, ends: Numbers, length: int) -> Mask:
        """Does one stretch of `length` bytes hold the range?"""
        wanted = _place(rows, np.maximum(begins, 0))
        at = np.searchsorted(self.places, wanted, side="right") - 1
        nearest = np.append(self.places, -1)[at]
        return (at >= 0) & (nearest >= _place(rows, np.maximum(ends - length, 0)))


def _place(rows: Numbers, starts: Numbers) -> Numbers:
    return rows << 32 | starts


def around(
    data: Bytes,
    offsets: Numbers,
    begins: tuple[Numbers, Numbers],
    lasts: tuple[Numbers, Numbers],
    length: int,
    window: int,
) -> tuple[Numbers, Numbers]:
    """Text and place of the stretches by which runs may go on to either side: winnowing passes over
    less than `window` bytes there. They begin, or end, where a word may be cut off.

    Args:
        begins, lasts: text and place of the first stretch of each run, and of the last.
    """
    nothing = np.empty(0, np.int64)
    num = _around(data, offsets, *begins, *lasts, length, window, nothing, nothing)
    found = np.empty((2, num), np.int64)
    _around(data, offsets, *begins, *lasts, length, window, found[0], found[1])
    places = np.sort(_place(found[0], found[1]))
    places = places[_changes(places)]
    return places >> 32, places & 0xFFFFFFFF


@kernel
def _around(
    data: Bytes,
    offsets: Numbers,
    begin_rows: Numbers,
    begin_starts: Numbers,
    last_rows: Numbers,
    last_starts: Numbers,
    length: int,
    window: int,
    rows: Numbers,
    starts: Numbers,
) -> int:
    """How many there are; those for which there is no room are only counted."""
    num = 0
    for i in range(len(begin_rows)):
        begin, end = offsets[begin_rows[i]], offsets[begin_rows[i] + 1]
        here = begin + begin_starts[i]
        for at in range(max(begin, here - window + 1), here):
            if _is_cut(data, begin, end, at):
                if num < len(rows):
                    rows[num] = begin_rows[i]
                    starts[num] = at - begin
                num += 1
    for i in range(len(last_rows)):
        begin, end = offsets[last_rows[i]], offsets[last_rows[i] + 1]
        here = begin + last_starts[i] + length
        for at in range(here + 1, min(end, here + window - 1) + 1):
            if _is_cut(data, begin, end, at):
                if num < len(rows):
                    rows[num] = last_rows[i]
                    starts[num] = at - length - begin
                num += 1
    return num


def slack(length: int, window: int) -> int:
    """By how many bytes a run may be cut shorter at either end, for words to stay whole: runs that
    follow one another still touch, for they overlap by `length - window` bytes and more."""
    return min(_LONG_WORD, (length - window - 1) // 2)


def rounded(
    data: Bytes, offsets: Numbers, rows: Numbers, starts: Numbers, ends: Numbers, most: int
) -> tuple[Numbers, Numbers]:
    """Ranges of texts cut shorter, to whole words where that takes `most` bytes or less on a side,
    and to whole characters in any case. A white space at the end stays: it parts what stands on
    either side, and of a paragraph that goes it is the line feed."""
    begins, lasts = np.empty_like(starts), np.empty_like(ends)
    _round(data, offsets, rows, starts, ends, most, begins, lasts)
    return begins, lasts


@kernel
def _round(
    data: Bytes,
    offsets: Numbers,
    rows: Numbers,
    starts: Numbers,
    ends: Numbers,
    most: int,
    begins: Numbers,
    lasts: Numbers,
) -> None:
    for i in range(len(rows)):
        begin, end = offsets[rows[i]], offsets[rows[i] + 1]
        first, last = begin + starts[i], begin + ends[i]
        while first < end and data[first] & np.uint8(0xC0) == np.uint8(0x80):
            first += 1
        while last < end and data[last] & np.uint8(0xC0) == np.uint8(0x80):
            last -= 1
        begins[i], lasts[i] = first - begin, last - begin
        for at in range(first, min(first + most, last) + 1):
            if _is_cut(data, begin, end, at):
                begins[i] = at - begin
                break
        for back in range(min(most, last - first) + 1):
            if _is_cut(data, begin, end, last - back):
                lasts[i] = last - back - begin
                break
        last = begin + lasts[i]
        if first < last < end and _is_space(data[last - 1]):
            lasts[i] -= 1


@inner_kernel
def _is_space(byte: np.uint8) -> bool:
    return bool(byte == np.uint8(0x20) or byte == np.uint8(0x0A) or byte == np.uint8(0x09))


_LONG_WORD = 32  # bytes: longer ones are addresses, keys and the like, which may be cut


@inner_kernel
def _is_cut(data: Bytes, begin: int, end: int, at: int) -> bool:
    """Is a border of a character here, and not inside of a word? Between Han characters or kana
    only what is not one of them tells where a word ends."""
    if at <= begin or at >= end:
        return True
    if data[at] & np.uint8(0xC0) == np.uint8(0x80):
        return False
    here = _script(data[at], data[at + 1] if at + 1 < end else np.uint8(0))
    if here == 0:
        return True
    last = at - 1
    while last > begin and data[last] & np.uint8(0xC0) == np.uint8(0x80):
        last -= 1
    return here != _script(data[last], data[last + 1])


@inner_kernel
def _script(byte: np.uint8, second: np.uint8) -> int:
    """Of a character by its first two bytes: 1 in words between spaces, 2 of Han and kana, 0 in no
    word. Of two bytes all from U+00C0 on are letters, of three bytes those of punctuation (U+2000,
    U+3000) and full width (U+F000) are none; of four no emoji is."""
    if byte < np.uint8(0x80):
        letter = byte | np.uint8(0x20)
        is_letter = np.uint8(0x61) <= letter <= np.uint8(0x7A)
        is_digit = np.uint8(0x30) <= byte <= np.uint8(0x39)
        return int(is_letter or is_digit or byte == np.uint8(0x5F))
    if byte < np.uint8(0xE0):
        return int(byte >= np.uint8(0xC3))
    if byte < np.uint8(0xE3):
        return int(byte != np.uint8(0xE2))
    if byte < np.uint8(0xEA):
        return 2 * int(byte != np.uint8(0xE3) or second >= np.uint8(0x81))
    if byte < np.uint8(0xF0):
        return int(byte < np.uint8(0xEE))
    return 2 * int(second >= np.uint8(0xA0))
