"""How many distinct contents each key has, and the lowest of them, in bounded memory.

A key that stands in 1e9 documents is kept by its MOST lowest contents: they are the lowest of all
parts in any order, so the count is exact up to MOST, and above it estimated from how densely they
lie (hashes are uniform): standard error 1 / sqrt(MOST), 0.4 %, the same however documents are cut
into parts (Bar-Yossef et al. 2002, k minimum values).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from dedup.sketches import shared

MOST = 1 << 16  # contents of a key: 512 kB
MANY = 1 << 22  # records in memory before they are closed up: 100 MB, and thrice that to sort

Numbers = npt.NDArray[np.uint64]


class Records(NamedTuple):
    """A key of 128 bits, in halves, and a content that it stands in."""

    high: Numbers
    low: Numbers
    content: Numbers

    def take(self, which: npt.NDArray[np.int64]) -> Records:
        return Records(*(column[which] for column in self))


class Counted(NamedTuple):
    """Keys of two contents or more, ascending."""

    high: Numbers
    low: Numbers
    num: Numbers  # distinct contents
    lowest: Numbers


def count(several: Iterable[Records], most: int = MOST, many: int = MANY) -> Counted:
    """Over all records."""
    waiting: list[Records] = []
    closed = size = 0
    for records in several:
        waiting.append(records)
        size += len(records.high)
        if size > max(many, 2 * closed):  # twice what is left at least: each is sorted a few times
            whole = _joined(waiting)
            alone, met = _close_up(whole, most)
            waiting = [whole.take(alone), whole.take(met)]
            closed = size = len(alone) + len(met)
    whole = _joined(waiting)
    _, met = _close_up(whole, most)
    high, low, content = whole.take(met)
    firsts = np.flatnonzero(_changes(high, low))
    num = np.diff(np.append(firsts, len(high))).astype(np.uint64)
    full = np.flatnonzero(num >= most)
    if len(full):
        largest = content[firsts[full] + most - 1].astype(np.float64)
        num[full] = np.maximum((most - 1) * 2.0**64 / np.maximum(largest, 1), most)
    several_of = num > 1
    firsts = firsts[several_of]
    return Counted(high[firsts], low[firsts], num[several_of], content[firsts])


def _joined(several: list[Records]) -> Records:
    nothing = Records(*np.empty((3, 0), np.uint64))
    return Records(*map(np.concatenate, zip(nothing, *several, strict=True)))


def _close_up(records: Records, most: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Places of the records whose upper half is that of no other; and of the others, by key and
    content, each content of a key once, the `most` lowest."""
    order = np.argsort(records.high, kind="stable")
    meets = shared(records.high[order])
    met = order[meets]
    high, low, content = records.take(met)
    met = met[np.lexsort((content, low, high))]  # a fraction: most lines stand once
    high, low, content = records.take(met)
    new_key = _changes(high, low)
    new = new_key.copy()
    new[1:] |= content[1:] != content[:-1]
    met, new_key = met[new], new_key[new]
    places = np.arange(len(met))
    rank = places - np.maximum.accumulate(np.where(new_key, places, 0))
    return order[~meets], met[rank < most]


def _changes(high: Numbers, low: Numbers) -> npt.NDArray[np.bool_]:
    """Where a key begins."""
    new = np.ones(len(high), np.bool_)
    new[1:] = (high[1:] != high[:-1]) | (low[1:] != low[:-1])
    return new
