"""Winnowing: which stretches of a text stand for it (Schleimer, Wilkerson, Aiken 2003).

A stretch is `length` bytes from the beginning of a character on. Of every `window` of them that
begin one byte after another, the one with the least hash is taken, and it stays taken while it is
the least (their "robust" choice: a line of dots has one in a window, not all). Two texts that share
`length + window - 1` bytes or more share what is taken there, for the choice looks at those bytes
alone: nothing so long is missed, and nothing shorter than `length` is found. About 2 / `window` of
all stretches are taken.

What is taken is named by 128 bits, over its bytes.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from kernels.compile import inner_kernel, kernel
from kernels.hashing import HASH_PRIME, Bytes, load8, mix

Offsets = npt.NDArray[np.int64]
Rows = npt.NDArray[np.int64]


class Stretches(NamedTuple):
    """Stretches of texts, by text and place. `upper` and `lower` name their bytes."""

    upper: npt.NDArray[np.uint64]
    lower: npt.NDArray[np.uint64]
    rows: Rows  # which text
    starts: Rows  # first byte, counted from the beginning of the text


def sizes(min_bytes: int) -> tuple[int, int]:
    """Length and window that find all that is `min_bytes` long: two thirds of it and the rest, so
    that stretches overlap by a third and more."""
    length = 2 * min_bytes // 3
    return length, min_bytes - length + 1


def winnowed(data: Bytes, offsets: Offsets, length: int, window: int) -> Stretches:
    """The stretches that stand for the texts `data[offsets[i]:offsets[i + 1]]`; none of a text
    below `length + window - 1` bytes."""
    num = int(np.maximum(0, np.diff(offsets) - length - window + 2).sum())
    rows, starts = np.empty((2, _room(num, window)), np.int64)
    while (found := _winnow(data, offsets, length, window, rows, starts)) > len(rows):
        rows, starts = np.empty((2, found), np.int64)
    return named(data, offsets, rows[:found].copy(), starts[:found].copy(), length)


def named(data: Bytes, offsets: Offsets, rows: Rows, starts: Rows, length: int) -> Stretches:
    """Stretches of these texts at these places."""
    upper, lower = np.empty((2, len(rows)), np.uint64)
    _name(data, offsets[rows] + starts, length, upper, lower)
    return Stretches(upper, lower, rows, starts)


def _room(num: int, window: int) -> int:
    return 64 + 5 * num // (2 * window)


_BASE = np.uint64(0xD6E8FEB86659FD93)  # odd: of the polynomial that rolls, modulo 2^64
_SECOND = np.uint64(0xA0761D6478BD642F)  # odd: of the second 64 bits of a name
_NEVER = np.uint64(0xFFFFFFFFFFFFFFFF)  # the hash of what begins inside a character


@kernel
def _winnow(
    data: Bytes, offsets: Offsets, length: int, window: int, rows: Rows, starts: Rows
) -> int:
    """How many there are; those for which there is no room are only counted."""
    power = np.uint64(1)
    for _ in range(length):
        power *= _BASE
    ring = np.empty(window, np.uint64)
    num = 0
    for row in range(len(offsets) - 1):
        begin, end = offsets[row], offsets[row + 1]
        if end - begin < length + window - 1:
            continue
        rolling = np.uint64(0)
        for at in range(begin, begin + length):
            rolling = rolling * _BASE + np.uint64(data[at])
        least, taken = _NEVER, begin - 1  # the least of the window, and where it is
        slot, first = 0, begin + window - 1  # the first window ends here
        for at in range(begin, end - length + 1):
            if at > begin:
                out, new = np.uint64(data[at - 1]), np.uint64(data[at + length - 1])
                rolling = rolling * _BASE + new - out * power
            value = _NEVER
            if data[at] & np.uint8(0xC0) != np.uint8(0x80):
                value = (rolling ^ (rolling >> np.uint64(32))) * HASH_PRIME
                value ^= value >> np.uint64(29)
            ring[slot] = value
            slot += 1
            if slot == window:
                slot = 0
            changed = False
            if value < least:
                least, taken, changed = value, at, True
            elif taken <= at - window:  # the last one of those that are least
                least, changed = _NEVER, True
                for back in range(window):
                    place = slot - 1 - back
                    if place < 0:
                        place += window
                    if ring[place] < least:
                        least, taken = ring[place], at - back
            if at == first or (changed and at > first):
                if num < len(rows):
                    rows[num] = row
                    starts[num] = taken - begin
                num += 1
    return num


@kernel
def _name(
    data: Bytes,
    begins: Offsets,
    length: int,
    upper: npt.NDArray[np.uint64],
    lower: npt.NDArray[np.uint64],
) -> None:
    for i in range(len(begins)):
        upper[i], lower[i] = _name_of(data, begins[i], begins[i] + length)


@inner_kernel
def _name_of(data: Bytes, begin: int, end: int) -> tuple[np.uint64, np.uint64]:
    """Two hashes that have nothing but the bytes in common."""
    one, other = np.uint64(end - begin), _SECOND
    at = begin
    while at < end:
        chunk = load8(data, at, end)
        one = mix(one, chunk)
        other = (other + chunk) * _SECOND
        other ^= other >> np.uint64(29)
        at += 8
    one = mix(mix(one, np.uint64(0)), np.uint64(0))
    return one, (other ^ (other >> np.uint64(32))) * HASH_PRIME
